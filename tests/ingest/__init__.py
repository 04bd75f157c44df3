"""Ingest, tested: objects to views, watches to sessions, on the model world and the real control plane."""

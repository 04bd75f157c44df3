"""Decisions made visible: plans, pins, status, events, and what a crash leaves behind."""

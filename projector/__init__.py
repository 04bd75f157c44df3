"""Decisions, made visible: what was decided becomes writes that are safe to repeat."""

"""Measurements: what is fast, beside what it could be at best; no test depends on them."""

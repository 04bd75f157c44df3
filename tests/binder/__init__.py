"""The binder: what the heart decides, and that its shell keeps it."""

"""The vocabulary: every name, label, key, subject, event, decision and reason, spelled once."""

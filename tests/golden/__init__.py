"""Yesterday's logs: what an earlier version wrote is read, proven and replayed to the same state by every later one."""

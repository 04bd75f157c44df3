"""The heart that decides, pure and replayable, and the one shell that feeds it."""

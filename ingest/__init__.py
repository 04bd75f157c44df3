"""The world, written down: watches of the API server become events on the stream."""

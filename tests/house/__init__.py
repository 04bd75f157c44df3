"""The house keeps itself: form, map, imports and packaging, each complaint with its remedy."""

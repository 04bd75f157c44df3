"""The vocabulary, tested: amounts, entries, messages and the shapes of our own kinds."""

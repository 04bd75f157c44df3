"""The composition root: the command line, the local stack and the model world."""

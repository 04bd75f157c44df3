"""What the composition root starts: servers, the command line, the model world."""

"""What can happen in a world: each act names what it is about by number, and does nothing where that is not there."""

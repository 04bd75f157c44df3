"""What must hold, told in the order a newcomer should read it."""

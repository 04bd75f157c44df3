"""Laws of the simulated world: checkers that share nothing with the program, and know only what must hold."""

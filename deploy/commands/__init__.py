"""The command line, one module a command or pair of commands."""

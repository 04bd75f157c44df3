"""Stories: each rule of the heart told in plain text, and what is decided in it."""

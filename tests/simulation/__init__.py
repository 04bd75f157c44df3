"""One seed is one world: the production code on a model cluster, held to laws after every step."""

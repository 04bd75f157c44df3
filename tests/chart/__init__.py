"""The chart: what it renders, and a real cluster that it is installed into, upgraded on and removed from."""

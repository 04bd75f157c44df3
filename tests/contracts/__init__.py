"""The contract of the door to Kubernetes: one set of promises for the model and for a real server."""

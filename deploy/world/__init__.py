"""The model world: small models of the API server, of KubeVirt and of the kubelets, event by event."""

"""Tests of the model world: the API server, KubeVirt and the kubelets it plays."""

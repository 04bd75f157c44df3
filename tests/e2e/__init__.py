"""The whole program on a real control plane and a real NATS, KubeVirt emulated: VMs from request to GPU."""

"""The real control plane, the KubeVirt emulator and the tests that need them."""

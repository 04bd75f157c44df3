"""What was observed, as tables of views by kind and key: the part of the state that watches fill."""

import msgspec

from schemas.objects import (
    AnyView,
    BudgetView,
    ClaimView,
    ClassView,
    KubeVirtView,
    NamespaceView,
    NodeView,
    PodView,
    PvcView,
    PvView,
    SettingsView,
    TenantView,
    VmiView,
    VmView,
)


class Tables(msgspec.Struct, omit_defaults=True):
    """Views by plural and key."""

    objects: dict[str, dict[str, AnyView]] = {}

    def node(self, name: str) -> NodeView | None:
        """Return the node of that name."""
        return self.objects["nodes"].get(name)  # type: ignore[return-value]  # the table holds its own kind

    def pod(self, key: str) -> PodView | None:
        """Return the pod `namespace/name`."""
        return self.objects["pods"].get(key)  # type: ignore[return-value]  # the table holds its own kind

    def pv(self, name: str) -> PvView | None:
        """Return the persistent volume of that name."""
        return self.objects["persistentvolumes"].get(name)  # type: ignore[return-value]  # its own kind

    def pvc(self, key: str) -> PvcView | None:
        """Return the persistent volume claim `namespace/name`."""
        return self.objects["persistentvolumeclaims"].get(key)  # type: ignore[return-value]  # its own kind

    def gpu_class(self, name: str) -> ClassView | None:
        """Return the class of that name."""
        return self.objects["gpuclasses"].get(name)  # type: ignore[return-value]  # its own kind

    def claim(self, key: str) -> ClaimView | None:
        """Return the observed claim `namespace/name`."""
        return self.objects["gpuclaims"].get(key)  # type: ignore[return-value]  # its own kind

    def vmi(self, key: str) -> VmiView | None:
        """Return the VMI `namespace/name`."""
        return self.objects["virtualmachineinstances"].get(key)  # type: ignore[return-value]  # its own kind

    def vm(self, key: str) -> VmView | None:
        """Return the VM `namespace/name`."""
        return self.objects["virtualmachines"].get(key)  # type: ignore[return-value]  # its own kind

    def namespace(self, name: str) -> NamespaceView | None:
        """Return the namespace of that name."""
        return self.objects["namespaces"].get(name)  # type: ignore[return-value]  # its own kind

    def budget(self, key: str) -> BudgetView | None:
        """Return the budget `namespace/name`."""
        return self.objects["gpubudgets"].get(key)  # type: ignore[return-value]  # its own kind

    def tenant(self, key: str) -> TenantView | None:
        """Return the tenant's HelmRelease `namespace/name`."""
        return self.objects["helmreleases"].get(key)  # type: ignore[return-value]  # its own kind

    def kubevirts(self) -> list[KubeVirtView]:
        """Return the KubeVirt CRs by key."""
        return [view for _, view in sorted(self.objects["kubevirts"].items())]  # type: ignore[misc]  # its own kind

    def settings_view(self) -> SettingsView | None:
        """Return the settings ConfigMap, of which ingest publishes one alone."""
        for _, view in sorted(self.objects["configmaps"].items()):
            return view  # type: ignore[return-value]  # its own kind
        return None

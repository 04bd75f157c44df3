"""What the emulated KubeVirt is told by its CR and by whoever starts it."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from deploy.world.manifests import Obj, dig
from deploy.world.virt_names import LIVE_UPDATE

LAUNCHER_IMAGE = "quay.io/kubevirt/virt-launcher:v1.9.0"


class Config(msgspec.Struct, frozen=True):
    """The parts of `spec.configuration` that decide what KubeVirt does with GPUs and VMs.

    `permitted`: device names; None where the CR has no permittedHostDevices at all, and nothing is checked.
    `mediated`: those of them that live migration can carry (one GPU, feature gate VGPULiveMigration).
    """

    permitted: frozenset[str] | None = None
    mediated: frozenset[str] = frozenset()
    gates: frozenset[str] = frozenset()
    live_update: bool = True
    eviction: str = "None"
    node_selector: tuple[tuple[str, str], ...] = ()
    image: str = LAUNCHER_IMAGE

    def gate(self, name: str) -> bool:
        """Say whether a feature gate is on; GPU is generally available."""
        return name == "GPU" or name in self.gates


def read_config(kubevirt: Obj | None) -> Config:
    """Return the configuration of a KubeVirt CR; without one, KubeVirt's defaults."""
    configuration: Mapping[str, Any] = dig(kubevirt or {}, "spec", "configuration") or {}
    table: Mapping[str, Any] | None = configuration.get("permittedHostDevices")
    return Config(
        permitted=None if table is None else frozenset(_names(table, ("pciHostDevices", "mediatedDevices", "usb"))),
        mediated=frozenset(_names(table or {}, ("mediatedDevices",))),
        gates=frozenset(dig(configuration, "developerConfiguration", "featureGates") or ()),
        # Unset means LiveUpdate, whatever the field's comment says.
        live_update=(configuration.get("vmRolloutStrategy") or LIVE_UPDATE) == LIVE_UPDATE,
        eviction=configuration.get("evictionStrategy") or "None",
        node_selector=tuple(
            sorted((dig(kubevirt or {}, "spec", "workloads", "nodePlacement", "nodeSelector") or {}).items())
        ),
    )


def _names(table: Mapping[str, Any], lists: Sequence[str]) -> list[str]:
    return [device["resourceName"] for one in lists for device in table.get(one) or ()]

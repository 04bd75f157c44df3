"""DataVolumes of a workload: while one is not filled, the workload does not work, whatever its pods say.

As cozystack judges them: phases that CDI still works in are listed, so that a phase nobody knows counts as settled.
"""

from typing import Final

import msgspec

from projector.mirror import Head, Mirrored

IN_FLIGHT: Final = (
    "Pending",
    "PVCBound",
    "ImportScheduled",
    "ImportInProgress",
    "CloneScheduled",
    "CloneInProgress",
    "SnapshotForSmartCloneInProgress",
    "CloneFromSnapshotSourceInProgress",
    "SmartClonePVCInProgress",
    "CSICloneInProgress",
    "PrepClaimInProgress",
    "RebindInProgress",
    "ExpansionInProgress",
    "NamespaceTransferInProgress",
    "UploadScheduled",
    "UploadReady",
)
"""CDI is at work; a disk rests in `WaitForFirstConsumer` and `PendingPopulation`, which are none of these."""

BROKEN: Final = ("", "Failed", "Unknown")
"""It will not be filled, or nobody knows; one without a phase could not even be begun."""


class Disk(Mirrored, frozen=True, kw_only=True):
    """A DataVolume, as far as it tells whether its workload works."""

    labels: dict[str, str]
    phase: str

    @property
    def trouble(self) -> str:
        """Say what is wrong with it, '' where it is filled or rests."""
        if not self.phase:
            return f"DataVolume {self.name} has no phase"
        return f"DataVolume {self.name} is {self.phase}" if self.phase in (*IN_FLIGHT, *BROKEN) else ""


class _Status(msgspec.Struct, frozen=True):
    phase: str = ""


class _DataVolume(msgspec.Struct, frozen=True):
    metadata: Head
    status: _Status = _Status()


_decoder = msgspec.json.Decoder(_DataVolume)


def read_disk(raw: msgspec.Raw | bytes) -> Disk:
    """Read a DataVolume."""
    found = _decoder.decode(raw)
    metadata = found.metadata
    return Disk(
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
        rv=metadata.resource_version,
        labels=metadata.labels or {},
        phase=found.status.phase,
    )

"""What workload accounting knows of monitors and of what they track, and what follows: records and counts (W2)."""

from enum import StrEnum

from projector.disks import Disk
from projector.mirror import Mirrored
from projector.records import Record, record_name
from schemas import names
from schemas.kinds import POD, PVC, SERVICE, Resource
from schemas.labels import label_value
from schemas.workloads import MonitorSpec, MonitorStatus, WorkloadStatus
from schemas.writes import BlockingOwner


class Sort(StrEnum):
    """What can be tracked; a record's name begins so."""

    POD = names.POD_RECORD_PREFIX
    PVC = names.PVC_RECORD_PREFIX
    SERVICE = names.SERVICE_RECORD_PREFIX


KINDS: dict[Sort, Resource] = {Sort.POD: POD, Sort.PVC: PVC, Sort.SERVICE: SERVICE}


class Tracked(Mirrored, frozen=True, kw_only=True):
    """One object that a monitor may select. `marks`: labels that only its record gets."""

    sort: Sort
    labels: dict[str, str]
    marks: dict[str, str] = {}  # noqa: RUF012 - a struct copies it
    resources: dict[str, int | str]
    operational: bool

    @property
    def record(self) -> str:
        """Return the name of its record."""
        return record_name(self.sort, self.name)


class Monitor(Mirrored, frozen=True, kw_only=True):
    """A WorkloadMonitor. `marks`: those of its labels that its records get too."""

    spec: MonitorSpec
    status: MonitorStatus
    marks: dict[str, str]

    def selects(self, labels: dict[str, str]) -> bool:
        """Say whether an object with these labels is the monitor's."""
        return self.spec.selector.items() <= labels.items()

    @property
    def label(self) -> str:
        """Return what names the monitor on its records: its name, cut with a hash where no label value is so long."""
        return label_value(self.name)


def record_for(tracked: Tracked, monitors: list[Monitor]) -> Record | None:
    """Return the record an object has under the monitor that selects it; of several the first by name."""
    selecting = [one for one in monitors if one.selects(tracked.labels)]
    if not selecting:
        return None
    monitor = min(selecting, key=lambda one: one.name)
    kind = KINDS[tracked.sort]
    return Record(
        namespace=tracked.namespace,
        name=tracked.record,
        owner=BlockingOwner(kind.api_version, kind.kind, tracked.name, tracked.uid, block=True),
        status=WorkloadStatus(monitor.spec.kind, tracked.resources, monitor.spec.type, operational=tracked.operational),
        # The object's own labels win over the monitor's, but whose record it is they do not say.
        labels=monitor.marks | tracked.labels | {names.MONITOR_LABEL: monitor.label} | tracked.marks,
    )


def troubles_of(monitor: Monitor, disks: list[Disk]) -> str:
    """Name the monitor's disks that are not filled, '' where there is none."""
    return "; ".join(sorted(disk.trouble for disk in disks if disk.trouble and monitor.selects(disk.labels)))


def counted(monitor: Monitor, pods: list[Tracked], troubles: str | None) -> MonitorStatus:
    """Return what the monitor's status must say of these pods, and of its disks (`troubles_of`).

    None: disks were not listed yet; what was said of them last still holds.
    """
    selected = [pod for pod in pods if monitor.selects(pod.labels)]
    available = sum(1 for pod in selected if pod.operational)
    enough = monitor.spec.min_replicas is None or available >= monitor.spec.min_replicas
    said = (monitor.status.message, monitor.status.reason)
    message, reason = said if troubles is None else (troubles, names.DATA_VOLUME_REASON if troubles else "")
    return MonitorStatus(enough and not message, available, len(selected), message, reason)

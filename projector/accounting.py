"""Workload accounting: a record for each object a WorkloadMonitor selects, and how many of its pods are ready (W1-W3).

As cozystack's controllers keep it, and in their place: only one of the two may run. Records that a GPU claim
owns are left to that owner (F3).
"""

import asyncio
from typing import Final

import msgspec
import structlog

from binder.kube import ApiError, Kube, PatchKind
from projector.disks import Disk, read_disk
from projector.mirror import Mirror
from projector.reads import read
from projector.records import Records, SeenRecord, read_record, shows
from projector.rounds import Looked, Rounds
from projector.tracked import KINDS, Monitor, Sort, Tracked, counted, record_for, troubles_of
from projector.tracked_objects import READERS, read_monitor
from projector.verdicts import Kind, Verdict, judged
from schemas.kinds import DATA_VOLUME, GPU_CLAIM, WORKLOAD, WORKLOAD_MONITOR

LOOK_AGAIN_S: Final = 30.0
"""How often the record of an object that is being deleted is looked at (W3)."""

_RECORD, _MONITOR = "record", "monitor"

log = structlog.get_logger()


class Accounting:
    """`run()` keeps records and monitors true for ever. Needs no log: what it counts are no decisions."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._monitors = Mirror(kube, WORKLOAD_MONITOR, read_monitor, self._monitor_changed, self._all)
        self._seen = Mirror(kube, WORKLOAD, read_record, self._record_changed, self._all)
        self._tracked: dict[Sort, Mirror[Tracked]] = {
            sort: Mirror(kube, KINDS[sort], READERS[sort], self._tracked_changed, self._all) for sort in Sort
        }
        self._disks = Mirror(kube, DATA_VOLUME, read_disk, self._disk_changed, self._all_monitors)
        self._named: dict[tuple[str, str], tuple[Sort, str]] = {}
        self._records = Records(kube, self._seen)
        self._rounds = Rounds(self._look)
        self._refused: dict[str, str] = {}
        self._awaited: set[str] = set()
        self._served = asyncio.Event()

    async def run(self) -> None:
        """Count for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._monitors.run())
            tasks.create_task(self._seen.run())
            # A cluster without monitors is not asked for all its pods.
            await self._served.wait()
            for mirror in self._tracked.values():
                tasks.create_task(mirror.run())
            tasks.create_task(self._disks.run())
            tasks.create_task(self._rounds.run())

    @property
    def _synced(self) -> bool:
        tracked = all(mirror.synced for mirror in self._tracked.values())
        return tracked and self._monitors.synced and self._seen.synced

    def _all(self) -> None:
        """Look at everything: nothing is written before all kinds are known, lest what is not listed yet seem gone."""
        if self._monitors.synced:
            self._served.set()
        if self._synced:
            self._all_monitors()
            for record in self._seen.everything():
                self._put_record(record.namespace, record.name)
            for mirror in self._tracked.values():
                for tracked in mirror.everything():
                    self._put_record(tracked.namespace, tracked.record)

    def _all_monitors(self) -> None:
        for monitor in self._monitors.everything():
            self._put_monitor(monitor)

    def _put_monitor(self, monitor: Monitor) -> None:
        self._rounds.put(f"{_MONITOR}/{monitor.namespace}/{monitor.name}")

    def _put_record(self, namespace: str, name: str) -> None:
        self._rounds.put(f"{_RECORD}/{namespace}/{name}")

    def _monitor_changed(self, before: Monitor | None, after: Monitor | None) -> None:
        """Look at the monitor, at its records, and at what it selects now or did."""
        one = after or before
        assert one is not None
        if after is not None:
            self._put_monitor(after)
            if before is not None and (before.spec, before.marks) == (after.spec, after.marks):
                return
        for record in self._seen.within(one.namespace):
            if record.monitor == one.label:
                self._put_record(record.namespace, record.name)
        for mirror in self._tracked.values():
            for tracked in mirror.within(one.namespace):
                if one.selects(tracked.labels):
                    self._put_record(tracked.namespace, tracked.record)

    def _tracked_changed(self, before: Tracked | None, after: Tracked | None) -> None:
        one = after or before
        assert one is not None
        place = (one.namespace, one.record)
        if after is not None:
            self._named[place] = (after.sort, after.name)
        else:
            self._named.pop(place, None)
        self._put_record(*place)
        if one.sort is Sort.POD:
            states = [state for state in (before, after) if state is not None]
            for monitor in self._monitors.within(one.namespace):
                if any(monitor.selects(state.labels) for state in states):
                    self._put_monitor(monitor)

    def _disk_changed(self, before: Disk | None, after: Disk | None) -> None:
        states = [state for state in (before, after) if state is not None]
        for monitor in self._monitors.within(states[0].namespace):
            if any(monitor.selects(state.labels) for state in states):
                self._put_monitor(monitor)

    def _troubles(self, monitor: Monitor) -> str | None:
        """Return what is wrong with a monitor's disks; None while they are not known. Without CDI there are none."""
        known = self._disks.synced or self._disks.absent
        disks = self._disks.within(monitor.namespace) if self._disks.synced else []
        return troubles_of(monitor, disks) if known else None

    def _record_changed(self, before: SeenRecord | None, after: SeenRecord | None) -> None:
        one = after or before
        assert one is not None
        self._put_record(one.namespace, one.name)

    async def _look(self, key: str) -> Looked:
        sort, namespace, name = key.split("/", 2)
        if not self._synced:
            return Looked.DONE
        try:
            if sort == _MONITOR:
                return await self._count(namespace, name)
            return await self._account(namespace, name)
        except ApiError as error:
            return self._told(key, judged(error))

    async def _count(self, namespace: str, name: str) -> Looked:
        """Have a monitor's status say how many of its pods are ready, and which of its disks are not filled."""
        monitor = self._monitors.get(namespace, name)
        if monitor is None:
            return Looked.DONE
        status = counted(monitor, self._tracked[Sort.POD].within(namespace), self._troubles(monitor))
        if status == monitor.status:
            return Looked.DONE
        shown = {
            "operational": status.operational,
            "availableReplicas": status.available_replicas,
            "observedReplicas": status.observed_replicas,
            "message": status.message or None,
            "reason": status.reason or None,
        }
        # On condition of the version whose pods were counted: minReplicas may have changed.
        body = msgspec.json.encode({"metadata": {"resourceVersion": monitor.rv}, "status": shown})
        try:
            stored = await self._kube.patch(
                WORKLOAD_MONITOR, namespace, name, body, kind=PatchKind.MERGE, subresource="status"
            )
        except ApiError as error:
            if error.code == 404:
                return Looked.DONE
            if error.code == 409:
                return Looked.AGAIN
            raise
        self._monitors.put(stored)
        return Looked.WROTE

    async def _account(self, namespace: str, name: str) -> Looked:
        """Have an object's record be as it must, and one of nothing be gone."""
        seen = self._seen.get(namespace, name)
        if seen is not None and (seen.deleting or _is_claims(seen)):
            return Looked.DONE
        sort, object_name = self._named.get((namespace, name), (None, ""))
        tracked = self._tracked[sort].get(namespace, object_name) if sort is not None else None
        record = record_for(tracked, self._monitors.within(namespace)) if tracked is not None else None
        if tracked is None or record is None:
            return await self._sweep(seen) if seen is not None else Looked.DONE
        if tracked.deleting and await self._is_over(tracked):
            return await self._sweep(seen) if seen is not None else Looked.DONE
        if seen is not None and shows(seen, record):
            return Looked.DONE
        return self._told(f"{_RECORD}/{namespace}/{name}", await self._records.write(record))

    def _told(self, key: str, verdict: Verdict) -> Looked:
        """Log a refusal once for each reason; return what becomes of the key."""
        if verdict.kind is not Kind.REFUSED:
            self._refused.pop(key, None)
        elif self._refused.get(key) != verdict.reason:
            self._refused[key] = verdict.reason
            log.warning(
                "accounting was refused", key=key, code=verdict.code, reason=verdict.reason, field=verdict.field
            )
        match verdict.kind:
            case Kind.LANDED:
                return Looked.WROTE
            case Kind.SETTLED | Kind.BEHIND:
                return Looked.DONE
            case Kind.AGAIN | Kind.REFUSED:
                return Looked.AGAIN

    async def _is_over(self, tracked: Tracked) -> bool:
        """Ask whether an object that goes is gone; if not, have it looked at again, whatever the watch says (W3)."""
        if await read(self._kube, KINDS[tracked.sort], tracked.namespace, tracked.name, msgspec.Raw) is None:
            return True
        key = f"{_RECORD}/{tracked.namespace}/{tracked.record}"
        if key not in self._awaited:
            self._awaited.add(key)
            asyncio.get_running_loop().call_later(LOOK_AGAIN_S, self._look_again, key)
        return False

    def _look_again(self, key: str) -> None:
        self._awaited.discard(key)
        self._rounds.put(key)

    async def _sweep(self, seen: SeenRecord) -> Looked:
        """Delete a record that belongs to nothing, once a fresh look says so too (T21)."""
        if await self._belongs(seen):
            return Looked.DONE
        try:
            await self._records.delete(seen)
        except ApiError as error:
            if error.code == 409:
                return Looked.AGAIN
            raise
        return Looked.WROTE

    async def _belongs(self, seen: SeenRecord) -> bool:
        """Say whether the record's monitor exists and selects the object that the record is of."""
        if not seen.monitor:
            return False
        known = next((one.name for one in self._monitors.within(seen.namespace) if one.label == seen.monitor), "")
        found = await read(self._kube, WORKLOAD_MONITOR, seen.namespace, known or seen.monitor, msgspec.Raw)
        if found is None:
            return False
        sort = next((one for one in Sort if seen.name.startswith(one)), None)
        if sort is None:
            # Of a kind that is not tracked here; its monitor lives.
            return True
        name = self._named.get((seen.namespace, seen.name), (sort, seen.name.removeprefix(sort)))[1]
        body = await read(self._kube, KINDS[sort], seen.namespace, name, msgspec.Raw)
        try:
            tracked = READERS[sort](body) if body is not None else None
            return tracked is not None and read_monitor(found).selects(tracked.labels)
        except (msgspec.DecodeError, ValueError):
            # What can't be read now is no proof; the mirror has told of it.
            return True


def _is_claims(seen: SeenRecord) -> bool:
    """Say whether a GPU claim owns the record: then it is that claim's affair, whatever labels it carries (F3)."""
    return any((one.api_version, one.kind) == (GPU_CLAIM.api_version, GPU_CLAIM.kind) for one in seen.owners)

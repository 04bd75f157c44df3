"""Looking at a log to take it over while somebody leads it: what is decided meanwhile is no loss (T4)."""

import msgspec
import pytest
from typing_extensions import override

from binder.anchor import Anchor
from binder.journal import StreamInfo
from binder.kube import PatchKind
from binder.logbook import append_genesis, open_epoch
from binder.memory_journal import MemoryJournal
from deploy.adopt import cluster_id, tip_of
from deploy.cluster_in_memory import Cluster
from deploy.takeover import Stands, beginning
from schemas.frames import Epoch, Genesis
from schemas.kinds import GPU_CLASS
from schemas.streams import DECISIONS

HOME = "gpubinder"


class Led(MemoryJournal):
    """A journal whose leader decides something, and has it anchored and shown, as soon as somebody asks for its end."""

    cluster: Cluster | None = None

    @override
    async def info(self, stream: str) -> StreamInfo:
        """Return the bounds as they were before."""
        bounds, cluster = await super().info(stream), self.cluster
        if stream == DECISIONS and cluster is not None:
            self.cluster = None
            await open_epoch(self, Epoch("mylog", 1, "a", "n", "test", 1, 0, (1,)))
            await Anchor(cluster.api, HOME).advance(await tip_of(self, 2))
            body = msgspec.json.encode({"status": {"stamp": {"generation": 1, "sequence": 1, "entry": 0}}})
            await cluster.api.patch(GPU_CLASS, "", "a", body, kind=PatchKind.MERGE, subresource="status")
        return bounds


async def test_a_log_that_is_led_on_while_it_is_looked_at_stands() -> None:
    """T4: what anchor and objects say is read before the log: who decides meanwhile has lost nothing."""
    here, journal = Cluster(()), Led()
    here.api.writes.seed_namespace(HOME)
    spec = {"resourceName": "gpu/a", "mode": "Passthrough"}
    body = {"apiVersion": GPU_CLASS.api_version, "kind": GPU_CLASS.kind, "metadata": {"name": "a"}, "spec": spec}
    await here.api.create(GPU_CLASS, "", msgspec.json.encode(body))
    await append_genesis(journal, Genesis("mylog", 1, await cluster_id(here.api), "test"))
    await Anchor(here.api, HOME).create(await tip_of(journal, 1))
    journal.cluster = here

    with pytest.raises(Stands, match="log mylog stands"):
        await beginning(here.api, journal, HOME)

    assert (await journal.info(DECISIONS)).last == 2
    await here.api.close()

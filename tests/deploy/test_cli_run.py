"""`gpubinder adopt` and `run` against a real API server: a log begins once, roles serve it, and leave in order."""

import asyncio
import json
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path

import pytest

from binder.access import Access
from binder.anchor import Anchor
from binder.jetstream import connect
from binder.kube_client import KubeClient
from binder.stream_journal import JetStreamJournal
from deploy.child import Child, fetch, free_ports
from deploy.local import LocalNats, find_nats_server
from schemas.admission import (
    CONFIGURATION_NAME,
    ORDER_WEBHOOK,
    POLICY_BINDING,
    START_WEBHOOK,
    VALIDATING_CONFIGURATION,
)
from schemas.names import ANCHOR_CONFIGMAP
from schemas.streams import EVENTS, EVENTS_TICK
from tests.cluster.api import Api
from tests.cluster.controlplane import ControlPlane
from tests.cluster.fixtures import nothing_of_ours
from tests.cluster.users import GPUBINDER
from tests.deploy.command import PROGRAM, Ran, gpubinder
from tests.deploy.waiting import SECONDS, until
from tests.webhooks.guarding import remove_policies

CONFIGURATION = f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{CONFIGURATION_NAME}"


class Served:
    """One NATS and one namespace of a real cluster, for the commands of a test."""

    def __init__(self, plane: ControlPlane, api: Api, nats: LocalNats, namespace: str, directory: Path) -> None:
        self.api, self.nats, self.namespace, self.directory = api, nats, namespace, directory
        self.status_port, self.webhook_port = free_ports(2)
        # An installer begins the log; the program runs under its own account.
        self.installer = plane.kubeconfig()
        self.account = plane.kubeconfig(GPUBINDER)
        self.child: Child | None = None

    def words(self, kubeconfig: Path) -> list[str]:
        """Return the options that say where everything is."""
        return ["--nats", self.nats.url, "--kubeconfig", str(kubeconfig), "--namespace", self.namespace]

    async def adopt(self, *more: str) -> Ran:
        """Run `gpubinder adopt`."""
        return await asyncio.to_thread(gpubinder, "adopt", *more, *self.words(self.installer))

    async def run(self, *more: str) -> Ran:
        """Run `gpubinder run` until it ends by itself."""
        ports = ["--status-port", str(self.status_port), "--webhook-port", str(self.webhook_port)]
        return await asyncio.to_thread(gpubinder, "run", *ports, *self.words(self.account), *more)

    def start(self, *more: str) -> Child:
        """Start `gpubinder run` beside the test."""
        ports = ["--status-port", str(self.status_port), "--webhook-port", str(self.webhook_port)]
        data = ["--data", str(self.directory / "data"), "--log-format", "json"]
        argv: list[str | Path] = [PROGRAM, "run", *ports, *data, *self.words(self.account), *more]
        self.child = Child("gpubinder run", argv, self.directory / "run.log")
        self.child.spawn()
        return self.child

    async def page(self, path: str, code: int = 200) -> str:
        """Wait until the status page answers with this code, and return what it says."""

        async def look() -> tuple[str] | None:
            try:
                status, body = await asyncio.to_thread(fetch, self.status_port, path)
            except OSError:
                status, body = 0, b""
            if status != code and self.child is not None and not self.child.running:
                raise self.child.failure("ended")
            return (body.decode(),) if status == code else None

        return (await until(look))[0]


@pytest.fixture
async def served(
    control_plane: ControlPlane, api: Api, nats: LocalNats, namespace: str, tmp_path: Path
) -> AsyncIterator[Served]:
    """NATS without streams, a namespace without anchor."""
    here = Served(control_plane, api, nats, namespace, tmp_path)
    # What other tests left goes with their namespaces, a little later; adopt rightly refuses until then.
    await nothing_of_ours(api)
    yield here
    if here.child is not None:
        here.child.kill()
    if await api.find(CONFIGURATION) is not None:
        await api.delete(CONFIGURATION)
        await api.delete(VALIDATING_CONFIGURATION.path(name=CONFIGURATION_NAME))
        await remove_policies(api)


async def test_a_log_begins_once(served: Served) -> None:
    """T4: adopt says what it would do, does it, and refuses to do it again; run checks and never makes streams."""
    early = await served.run("--role", "binder")
    planned = await served.adopt("--fresh", "--dry-run")
    begun = await served.adopt("--fresh", "--json")
    again = await served.adopt("--fresh")

    assert (early.code, planned.code, begun.code, again.code) == (1, 0, 0, 1)
    assert f"stream {EVENTS} does not exist: `gpubinder adopt` creates it" in early.err
    assert "nothing stands in the way" in planned.out
    anchor = await served.api.get(f"/api/v1/namespaces/{served.namespace}/configmaps/{ANCHOR_CONFIGMAP}")
    assert anchor["data"]["logId"] == begun.json["log"]
    assert f"an anchor of log {begun.json['log']} stands in namespace {served.namespace}" in again.err


async def test_a_server_that_acknowledges_before_fsync_is_refused(served: Served) -> None:
    """Where its monitoring page may be asked, no log is begun or served on NATS that fsyncs later."""
    port, monitor = free_ports(2)
    config = served.directory / "lax.conf"
    config.write_text(
        f"listen: 127.0.0.1:{port}\nhttp: 127.0.0.1:{monitor}\n"
        f"max_payload: 4MB\njetstream {{ store_dir: '{served.directory}/lax' }}\n"
    )
    lax = Child("lax", [find_nats_server(), "-c", config], served.directory / "lax.log")
    await asyncio.to_thread(lax.spawn)
    try:
        url = f"http://127.0.0.1:{monitor}"
        await asyncio.to_thread(
            lax.await_answer, lambda: fetch(monitor, "/healthz")[0] == HTTPStatus.OK, what="healthy", seconds=SECONDS
        )
        refused = [await served.adopt("--fresh", "--nats-monitor", url), await served.run("--nats-monitor", url)]
    finally:
        await asyncio.to_thread(lax.stop)

    assert [(ran.code, "sync_interval: always" in ran.err) for ran in refused] == [(1, True)] * 2


async def test_there_is_nothing_to_take_over_of_an_empty_cluster_or_of_a_log_that_stands(served: Served) -> None:
    """T4: adopt without --fresh begins no first log, and leaves one alone that its anchor vouches for."""
    empty = await served.adopt()
    await served.adopt("--fresh")
    whole = await served.adopt()

    assert (empty.code, whole.code) == (1, 1)
    assert "say --fresh" in empty.err
    assert "there is nothing to take over, `gpubinder run`" in whole.err


async def test_a_log_cut_between_genesis_and_anchor_is_begun_to_the_end(served: Served) -> None:
    """T4: an adopt that died before it wrote the anchor is finished by the next one, under the same log id."""
    first = (await served.adopt("--fresh", "--json")).json["log"]
    await served.api.delete(f"/api/v1/namespaces/{served.namespace}/configmaps/{ANCHOR_CONFIGMAP}")

    again = await served.adopt("--fresh", "--json")

    assert again.code == 0, again.err
    assert again.json["log"] == first


async def leading(served: Served, *roles: str) -> bool:
    """Say whether the process leads in all of these roles."""
    page = await served.page("/metrics")
    return all(f'gpubinder_leading{{role="{role}"}} 1.0' in page for role in roles)


async def test_roles_serve_and_leave_in_order(served: Served) -> None:
    """All roles in one process: health, metrics, webhooks, policies; SIGTERM gives each lease back and ends with 0."""
    await served.adopt("--fresh")
    child = served.start("--register-webhooks", f"https://127.0.0.1:{served.webhook_port}")
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{served.namespace}/leases"

    roles = ("binder", "ingest", "projector", "accounting")
    await until(lambda: leading(served, *roles))
    assert await served.page("/healthz") == await served.page("/readyz") == "ok\n"
    assert "gpubinder_inputs_folded" in await served.page("/metrics")
    configuration = await served.api.get(CONFIGURATION)
    assert configuration["webhooks"][0]["clientConfig"]["url"].startswith(f"https://127.0.0.1:{served.webhook_port}/")
    validating = await served.api.get(VALIDATING_CONFIGURATION.path(name=CONFIGURATION_NAME))
    assert {START_WEBHOOK, ORDER_WEBHOOK} <= {one["name"] for one in validating["webhooks"]}
    policy = await served.api.get(POLICY_BINDING.path(name="status.gpubinder.cozystack.io"))
    assert policy["spec"]["paramRef"]["namespace"] == served.namespace
    held = (await served.api.get(leases))["items"]
    assert {lease["metadata"]["name"] for lease in held} == {f"gpubinder-{role}" for role in roles}

    await asyncio.to_thread(child.stop, SECONDS)
    assert child.code == 0
    assert not any(lease["spec"].get("holderIdentity") for lease in (await served.api.get(leases))["items"])
    lines = [json.loads(line) for line in child.log.read_text().splitlines()]
    assert lines[-1]["event"] == "stopped"
    assert not [line for line in lines if line["level"] in {"error", "critical"}]


async def test_accounting_can_be_switched_off(served: Served) -> None:
    """Where cozystack's own controller keeps the records of workloads, ours does not even stand for election."""
    await served.adopt("--fresh")
    served.start("--no-accounting")
    await until(lambda: leading(served, "binder", "ingest", "projector"))

    leases = f"/apis/coordination.k8s.io/v1/namespaces/{served.namespace}/leases"
    assert "accounting" not in await served.page("/metrics")
    assert "gpubinder-accounting" not in {one["metadata"]["name"] for one in (await served.api.get(leases))["items"]}


async def test_accounting_wanted_and_not_wanted_is_wrong_usage(served: Served) -> None:
    """A role that is asked for and switched off at once is a mistake, and named."""
    ran = await served.run("--role", "accounting", "--no-accounting")

    assert ran.code == 2
    assert "--no-accounting" in ran.err


async def test_a_log_that_is_not_this_clusters_ends_the_process(served: Served) -> None:
    """T4: a cluster without an anchor, over a log with content: run ends with 3, a sentence and the remedy."""
    await served.adopt("--fresh")
    await served.api.delete(f"/api/v1/namespaces/{served.namespace}/configmaps/{ANCHOR_CONFIGMAP}")

    ran = await served.run("--role", "binder")

    assert ran.code == 3
    assert "no anchor stands in the cluster" in ran.err
    assert "gpubinder adopt" in ran.err
    assert "Traceback" not in ran.err


async def test_an_unknown_message_ends_the_process_with_the_way_out(served: Served) -> None:
    """T6: a message of tomorrow's version stops the binder, which names it and `gpubinder void`."""
    await served.adopt("--fresh")
    connection = await connect(Access((served.nats.url,)), lambda _why: None)
    unknown = await JetStreamJournal(connection).append(
        EVENTS, EVENTS_TICK, b'{"type":"tick","version":2}', message_id="x"
    )
    await connection.close()

    ran = await served.run("--role", "binder")

    assert ran.code == 3
    assert f"EVENTS message {unknown}" in ran.err
    assert f"`gpubinder void {unknown} --why TEXT`" in ran.err


async def test_a_log_replaced_under_the_anchor_ends_the_process(served: Served) -> None:
    """T4: another log under the same URL is not taken for ours: run ends with 3 and names both."""
    ours = (await served.adopt("--fresh", "--json")).json["log"]
    kube = await KubeClient.connect(kubeconfig=str(served.installer))
    found = await Anchor(kube, served.namespace).read()
    await kube.close()
    assert found is not None
    path = f"/api/v1/namespaces/{served.namespace}/configmaps/{ANCHOR_CONFIGMAP}"
    await served.api.patch(path, {"data": {"logId": "another"}})

    ran = await served.run("--role", "binder")

    assert ran.code == 3
    assert f"the anchor names log another generation 1, NATS holds {ours} generation 1" in ran.err


async def test_verify_reads_the_anchor_of_the_cluster(served: Served) -> None:
    """T4: the proof includes the anchor where a cluster is at hand."""
    await served.adopt("--fresh")

    ran = await asyncio.to_thread(gpubinder, "verify", "--json", *served.words(served.installer))

    assert ran.code == 0, ran.err
    assert ran.json["anchored"] is True


async def test_a_port_that_is_taken_is_named(served: Served) -> None:
    """A port somebody listens on ends the process with its number and the option that chooses another."""
    await served.adopt("--fresh")
    taken = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", served.status_port)

    ran = await served.run("--role", "binder")

    taken.close()
    assert ran.code == 1
    assert f"port {served.status_port}" in ran.err
    assert "--status-port" in ran.err

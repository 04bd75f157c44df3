"""The embedded NATS is a real server: durable, with the limits we count on, and as mortal as a real one."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nats as client
import pytest
from nats.aio.client import Client
from nats.js.api import StreamConfig

from deploy import local
from deploy.child import Child, ChildFailed, free_ports
from deploy.local import MAX_PAYLOAD, LocalNats, LocalNatsCluster, NatsServerMissing, find_nats_server


async def connect(*urls: str) -> Client:
    """A client that comes back whenever a server does, and complains to nobody meanwhile."""

    async def silent(error: Exception) -> None:
        """Outages are what these tests make."""

    return await client.connect(list(urls), max_reconnect_attempts=-1, reconnect_time_wait=0.05, error_cb=silent)


async def publish(connection: Client, body: bytes) -> int:
    """Publish until it is acknowledged; the sequence. A retry after an unclear answer may store it twice."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return (await connection.jetstream().publish("log.a", body, timeout=1)).seq
        except (client.errors.Error, TimeoutError):
            if time.monotonic() > deadline:
                raise


async def test_it_confirms_what_the_log_needs(nats: LocalNats) -> None:
    """Every write is fsynced, a message may have 4 MB, and streams can be made."""
    page = await nats.server.page("/varz")

    assert page["jetstream"]["config"]["sync_always"] is True
    assert page["max_payload"] == MAX_PAYLOAD == 4 * 1024 * 1024
    connection = await connect(nats.url)
    stream = await connection.jetstream().add_stream(StreamConfig(name="LOG", subjects=["log.>"]))
    body = b"x" * (3 * 1024 * 1024)
    acknowledged = await connection.jetstream().publish("log.a", body)
    stored = await connection.jetstream().get_msg("LOG", acknowledged.seq)
    await connection.close()
    assert stream.config.name == "LOG"
    assert stored.data == body


@pytest.mark.parametrize("orderly", [True, False])
async def test_what_was_acknowledged_outlives_the_process(nats: LocalNats, orderly: bool) -> None:
    """Stopped or killed with -9, the server comes back on the same port with the same messages."""
    connection = await connect(nats.url)
    await connection.jetstream().add_stream(StreamConfig(name="LOG", subjects=["log.>"]))
    await publish(connection, b"before")
    url = nats.url
    if orderly:
        await nats.server.stop()
    else:
        nats.server.kill()
    assert not nats.server.child.running
    await nats.server.start()

    assert nats.url == url
    last = await publish(connection, b"after")
    bodies = [(await connection.jetstream().get_msg("LOG", number)).data for number in (1, last)]
    await connection.close()
    assert bodies == [b"before", b"after"]


async def test_a_paused_server_answers_once_it_goes_on(nats: LocalNats) -> None:
    """A frozen server keeps its connections; what was asked meanwhile is answered when it goes on."""
    connection = await connect(nats.url)
    nats.server.pause()
    ping = asyncio.ensure_future(connection.flush(timeout=30))
    finished, _ = await asyncio.wait([ping], timeout=0.2)
    nats.server.resume()

    await ping
    await connection.close()
    assert not finished


@pytest.mark.nats
async def test_a_directory_of_ones_own_is_kept_and_ours_is_removed(tmp_path: Path) -> None:
    """A given directory outlives the server; without one nothing is left behind."""
    async with LocalNats(tmp_path / "mine"):
        pass
    async with LocalNats() as temporary:
        own = temporary.server.directory
        assert own.is_dir()

    assert (tmp_path / "mine" / "data").is_dir()
    assert not own.exists()


async def test_a_cluster_survives_its_leader(nats_cluster: LocalNatsCluster) -> None:
    """Three members keep three copies; with the stream's leader killed writing goes on and nothing is lost."""
    connection = await connect(*nats_cluster.urls)
    streams = connection.jetstream(timeout=20)
    made = await streams.add_stream(StreamConfig(name="LOG", subjects=["log.>"], num_replicas=3))
    assert made.cluster is not None
    assert made.cluster.leader is not None
    first = await publish(connection, b"before")
    leader = nats_cluster.named(made.cluster.leader)
    leader.kill()
    last = await publish(connection, b"without")
    await leader.start()
    await nats_cluster.healthy()

    bodies = [(await streams.get_msg("LOG", number)).data for number in (first, last)]
    assert (await nats_cluster.leader()) in nats_cluster.servers
    await connection.close()
    assert bodies == [b"before", b"without"]


@pytest.mark.nats
async def test_a_server_that_cannot_start_shows_its_log(tmp_path: Path) -> None:
    """A start that fails is an error with the end of the server's own log in it."""
    blocker = tmp_path / "nats" / "data"
    blocker.parent.mkdir()
    blocker.write_text("a file where the store should be")

    with pytest.raises(ChildFailed, match=r"(?s)ended with code 1 before it was healthy.*Can't start JetStream"):
        async with LocalNats(tmp_path / "nats"):
            pass


async def test_a_taken_port_is_given_up_for_another(nats: LocalNats, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that somebody took between choosing and binding costs a second attempt, not the start."""
    offers = [[nats.server.port, nats.server.monitor_port]]
    monkeypatch.setattr(local, "free_ports", lambda count: offers.pop() if offers else free_ports(count))
    async with LocalNats() as second:
        assert second.url != nats.url
    assert not offers


def test_a_missing_server_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the wheel and with nothing on the PATH the error says what to install."""
    real = find_nats_server()
    monkeypatch.setattr(local, "_PACKAGE", "no-such-distribution")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NatsServerMissing, match="pip install"):
        find_nats_server()

    monkeypatch.setenv("PATH", str(real.parent))
    assert find_nats_server() == real


def test_children_do_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    """When the parent is killed with -9, its servers go too."""
    script = (
        "import sys, time; from pathlib import Path; from deploy.child import Child\n"
        f"child = Child('sleeper', [{shutil.which('sleep')!r}, '600'], Path({str(tmp_path / 'log')!r}))\n"
        "child.spawn(); print(child.pid, flush=True); time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    deadline = time.monotonic() + 30
    while _alive(pid):
        assert time.monotonic() < deadline, f"process {pid} lives on"


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_child_that_will_not_stop_is_killed(tmp_path: Path) -> None:
    """A process that ignores the request to end is killed after the grace."""
    ready = tmp_path / "ready"
    script = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        f"open({str(ready)!r}, 'w'); time.sleep(600)"
    )
    child = Child("deaf", [sys.executable, "-c", script], tmp_path / "log")
    child.spawn()
    child.await_answer(ready.exists, what="deaf", seconds=30)
    pid = child.pid
    child.stop(grace=0.05)

    assert not child.running
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
    with pytest.raises(ChildFailed, match="not running"):
        _ = child.pid

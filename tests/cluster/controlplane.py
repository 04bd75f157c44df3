"""A real Kubernetes control plane on loopback: etcd, API server, controller manager and scheduler.

There is no kubelet, no network and no node-lifecycle controller: nodes and pod status are what a test
writes. Each component can be killed, paused and started again; etcd keeps its data until the end.
"""

import asyncio
import base64
import http.client
import ssl
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from deploy.child import Child, free_ports
from tests.cluster import users
from tests.cluster.admin import Admin, exchange
from tests.cluster.build import COMPONENTS, Programs, obtain
from tests.cluster.certificates import Authority, key_pem, private_key
from tests.cluster.users import User

_START_SECONDS = 180.0
_REQUEST_SECONDS = 30.0
_UNTHROTTLED = ("--kube-api-qps=5000", "--kube-api-burst=5000")
_ETCD, _APISERVER, _CONTROLLERS, _SCHEDULER = COMPONENTS
_SERVICE_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


class ControlPlane:
    """`with ControlPlane() as cluster:` starts one, ready to use, and removes it with its data at the end.

    `kubeconfig(user)` is a file for the client under test; `log(component)` shows what a component said.
    """

    def __init__(self, programs: Programs | None = None, kinds: Sequence[Path] = ()) -> None:
        """Take the programs from `tests.cluster.build` unless given. Raises ControlPlaneUnavailable.

        `kinds`: files of CustomResourceDefinitions that are served before the controllers start. The garbage
        collector looks for kinds at its start and then every 30 s: until it knows one, its dependents stay.
        """
        self._commands = (programs or obtain()).commands
        self._kinds = tuple(kinds)
        self._temporary = tempfile.TemporaryDirectory(prefix="gpubinder-cluster-")
        self.directory = Path(self._temporary.name)
        self._etcd_port, self._port, self._controllers_port, self._scheduler_port = free_ports(4)
        self.server = f"https://127.0.0.1:{self._port}"
        self.authority = Authority.new()
        self._tls = ssl.create_default_context(cadata=self.authority.pem.decode())
        self.admin = Admin(self.server, self._tls, self._write_secrets())
        flags = {
            _ETCD: self._etcd_flags(),
            _APISERVER: self._apiserver_flags(),
            _CONTROLLERS: self._controllers_flags(),
            _SCHEDULER: self._scheduler_flags(),
        }
        self._children = {
            name: Child(name, [*self._commands[name], *flags[name]], self.directory / f"{name}.log")
            for name in COMPONENTS
        }

    def _write_secrets(self) -> str:
        """Write certificates, keys, tokens and kubeconfigs; return the administrator's token."""
        (self.directory / "ca.crt").write_bytes(self.authority.pem)
        self.authority.issue_files(self.directory / "tls", "kubernetes.default.svc")
        (self.directory / "sa.key").write_bytes(key_pem(private_key()))
        tokens = users.make_tokens(self.directory / "tokens.csv")
        for user in users.USERS:
            users.write_kubeconfig(
                self.kubeconfig(user),
                server=self.server,
                authority=self.authority.pem,
                user=user.name,
                token=tokens[user.key],
            )
        return tokens[users.ADMIN.key]

    def kubeconfig(self, user: User = users.ADMIN) -> Path:
        """The kubeconfig file of one of `tests.cluster.users.USERS`."""
        return self.directory / f"{user.key}.kubeconfig"

    def _etcd_flags(self) -> list[str]:
        url = f"http://127.0.0.1:{self._etcd_port}"
        return [
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            "--listen-peer-urls=http://127.0.0.1:0",
            # A test's cluster need not survive the machine; killed processes lose nothing by it.
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _serving_flags(self, port: int) -> list[str]:
        tls = self.directory / "tls"
        return [
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={tls / 'tls.crt'}",
            f"--tls-private-key-file={tls / 'tls.key'}",
        ]

    def _apiserver_flags(self) -> list[str]:
        return [
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            *self._serving_flags(self._port),
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.directory / 'sa.key'}",
            f"--service-account-signing-key-file={self.directory / 'sa.key'}",
            "--authorization-mode=RBAC",
            f"--token-auth-file={self.directory / 'tokens.csv'}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--allow-privileged",
        ]

    def _controllers_flags(self) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig()}",
            f"--service-account-private-key-file={self.directory / 'sa.key'}",
            f"--root-ca-file={self.directory / 'ca.crt'}",
            "--leader-elect=false",
            # Nobody renews the heartbeats of nodes that have no kubelet.
            "--controllers=*,-node-lifecycle-controller",
            # At its default of 20 requests a second a test would wait for garbage collection.
            *_UNTHROTTLED,
            *self._serving_flags(self._controllers_port),
        ]

    def _scheduler_flags(self) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig()}",
            "--leader-elect=false",
            # Its default of 50 requests a second would hide every other figure.
            *_UNTHROTTLED,
            *self._serving_flags(self._scheduler_port),
        ]

    def start(self) -> None:
        """Start everything and wait until it is ready to use. Raises ChildFailed with the end of a log."""
        try:
            self._children[_ETCD].spawn()
            self._await_ready(_ETCD)
            self._children[_APISERVER].spawn()
            self._await_ready(_APISERVER)
            self.admin.install(self._kinds)
            self._children[_CONTROLLERS].spawn()
            self._children[_SCHEDULER].spawn()
            for user in users.USERS:
                if user.role:
                    self.admin.bind(user, user.role)
            # The controllers' first visible act: from here on pods can be created in `default`.
            self._await(_CONTROLLERS, lambda: self.admin.request("GET", _SERVICE_ACCOUNT)[0] == 200)
            self._await_ready(_SCHEDULER)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Kill all components and remove their directory."""
        for name in reversed(COMPONENTS):
            self._children[name].kill()
        self._temporary.cleanup()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def kill(self, component: str) -> None:
        """Kill -9 one of `COMPONENTS`; its data stays."""
        self._children[component].kill()

    async def revive(self, component: str) -> None:
        """Start a killed component again with the same flags and wait until it answers."""
        self._children[component].spawn()
        await asyncio.to_thread(self._await_ready, component)

    def heal(self) -> None:
        """Let paused components go on and start dead ones: what a test broke must not break the next."""
        for component in COMPONENTS:
            self.resume(component)
            if not self._children[component].running:
                self._children[component].spawn()
                self._await_ready(component)

    def _await_ready(self, component: str) -> None:
        ready: dict[str, Callable[[], bool]] = {
            _ETCD: self._etcd_healthy,
            _APISERVER: self._apiserver_ready,
            _CONTROLLERS: lambda: self._healthz(self._controllers_port),
            _SCHEDULER: lambda: self._healthz(self._scheduler_port),
        }
        self._await(component, ready[component])

    async def restart(self, component: str) -> None:
        """Kill -9 and start again."""
        self.kill(component)
        await self.revive(component)

    def pause(self, component: str) -> None:
        """Freeze a component: its connections stay open and nobody answers."""
        self._children[component].pause()

    def resume(self, component: str) -> None:
        """Let a paused component go on."""
        self._children[component].resume()

    @property
    def pids(self) -> dict[str, int]:
        """The process id of each component, by its name."""
        return {name: child.pid for name, child in self._children.items()}

    def log(self, component: str) -> str:
        """The end of a component's log."""
        return self._children[component].tail()

    async def compact(self) -> int:
        """Let etcd forget all revisions before the present one, which is returned.

        The API server goes on serving older ones from its own memory: see `forget`.
        """
        return await asyncio.to_thread(self._compact)

    async def forget(self) -> int:
        """Compact and restart the API server: watches, exact lists and continue tokens from before get 410."""
        revision = await self.compact()
        await self.restart(_APISERVER)
        return revision

    def _compact(self) -> int:
        key = base64.b64encode(b"compaction").decode()
        revision = int(self._etcd("/v3/kv/range", {"key": key})["header"]["revision"])
        self._etcd("/v3/kv/compaction", {"revision": revision, "physical": True})
        return revision

    def _etcd(self, path: str, body: object) -> dict[str, Any]:
        """One request to etcd's JSON gateway, where keys are base64."""
        code, answer = exchange(self._etcd_connection(), "POST", path, body)
        assert code == 200, f"etcd {path}: {code} {answer}"
        return answer

    def _etcd_connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._etcd_port, timeout=_REQUEST_SECONDS)

    def _etcd_healthy(self) -> bool:
        code, answer = exchange(self._etcd_connection(), "GET", "/health")
        return code == 200 and answer.get("health") == "true"

    def _apiserver_ready(self) -> bool:
        # `default` is made by a controller inside the API server, shortly after it calls itself ready.
        return (
            self.admin.request("GET", "/readyz")[0] == 200
            and self.admin.request("GET", "/api/v1/namespaces/default")[0] == 200
        )

    def _healthz(self, port: int) -> bool:
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=_REQUEST_SECONDS, context=self._tls)
        return exchange(connection, "GET", "/healthz")[0] == 200

    def _await(self, component: str, ready: Callable[[], bool]) -> None:
        self._children[component].await_answer(ready, what="ready", seconds=_START_SECONDS)

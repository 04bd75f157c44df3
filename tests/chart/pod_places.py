"""What a pod of the chart names, as it is on this machine: ports, files, environment, the account it signs in with.

Names of NATS pods become loopback ports, mounts become folders. The members of the NATS cluster reach each other by
wires that a test can cut, and a part can be given ways of its own to NATS.
"""

import base64
import itertools
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from deploy.child import free_ports
from tests.cluster.api import Api, Object
from tests.cluster.controlplane import ControlPlane
from tests.cluster.users import write_kubeconfig
from tests.wire import Wire

NATS_PODS = tuple(f"gpubinder-nats-{index}" for index in range(3))
CLIENTS, ROUTES, MONITOR = 4222, 6222, 8222
_TOKEN_SECONDS = 3600
_NOBODY = 9
"""A port at which nothing listens: what members tell each other of a third one would lead past the wires."""


class Places:
    """Of the pods of one namespace. `nats`: of each NATS pod, the port here by its port there.

    `ways`: of a component, the port by which it reaches the clients' port of a NATS pod, where that is not the pod's.
    """

    def __init__(self, plane: ControlPlane, api: Api, namespace: str, directory: Path) -> None:
        self._plane, self._api, self._namespace, self._directory = plane, api, namespace, directory
        known = (CLIENTS, ROUTES, MONITOR)
        self.nats = {name: dict(zip(known, free_ports(len(known)), strict=True)) for name in NATS_PODS}
        self.ways: dict[str, dict[str, int]] = {}
        self._wires = {
            (one, other): Wire(self.nats[other][ROUTES]) for one, other in itertools.permutations(NATS_PODS, 2)
        }

    @asynccontextmanager
    async def wired(self) -> AsyncIterator[None]:
        """Hold the wires between the members of the NATS cluster for the length of the block."""
        async with AsyncExitStack() as stack:
            for wire in self._wires.values():
                await stack.enter_async_context(wire)
            yield

    def part(self, member: str) -> None:
        """Have a member of the NATS cluster hear no other; its clients still reach it, and nobody is told."""
        for names, wire in self._wires.items():
            if member in names:
                wire.cut()

    def mend(self) -> None:
        """Have all members hear each other again."""
        for wire in self._wires.values():
            wire.mend()

    def folder(self, pod: str) -> Path:
        """Return where a pod's files are."""
        return self._directory / pod

    def ports(self, pod: str, component: str) -> dict[int, int]:
        """Return a loopback port for each port of the pod; those of a NATS pod are its name's for ever."""
        if component == "nats":
            return self.nats[pod]
        return dict(zip((8080, 8443), free_ports(2), strict=True))

    def moved(
        self,
        text: str,
        files: Mapping[str, Path],
        ports: Mapping[int, int] | None = None,
        *,
        pod: str = "",
        component: str = "",
    ) -> str:
        """Return a text of the pod with what it names as it is here."""
        for name in NATS_PODS:
            here = dict(self.nats[name])
            if name in self.ways.get(component, {}):
                here[CLIENTS] = self.ways[component][name]
            if (pod, name) in self._wires:
                here[ROUTES] = self._wires[pod, name].port
            for there, port in here.items():
                text = text.replace(f"{name}.gpubinder-nats.{self._namespace}.svc:{there}", f"127.0.0.1:{port}")
        mounts = "|".join(re.escape(mount) for mount in sorted(files, key=len, reverse=True))
        text = re.sub(rf"(?<![\w/])({mounts})(?![\w-])", lambda found: str(files[found[1]]), text)
        for there, port in (ports or {}).items():
            text = text.replace(f"-port={there}", f"-port={port}")
        return text

    def nats_config(self, pod: str, files: Mapping[str, Path]) -> Path:
        """Write the configuration of a NATS pod as it is here."""
        text = (files["/etc/nats"] / "nats.conf").read_text()
        for there, here in self.nats[pod].items():
            text = text.replace(f"0.0.0.0:{there}", f"127.0.0.1:{here}")
        text = text.replace("cluster {", f'cluster {{\n  advertise: "127.0.0.1:{_NOBODY}"')
        moved = self.folder(pod) / "moved.conf"
        moved.write_text(text.replace("store_dir: /data", f"store_dir: {files['/data']}"))
        return moved

    async def files(self, spec: Mapping[str, Any], container: Mapping[str, Any], pod: str) -> dict[str, Path]:
        """Lay out what the container mounts: mount path -> folder."""
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        found: dict[str, Path] = {}
        for mount in container["volumeMounts"]:
            if mount["mountPath"].startswith("/var/run/secrets"):
                continue
            folder = self.folder(pod) / mount["name"]
            folder.mkdir(parents=True, exist_ok=True)
            found[mount["mountPath"]] = folder
            volume = volumes.get(mount["name"], {})
            if "secret" in volume:
                data = (await self._object("secrets", volume["secret"]["secretName"]))["data"]
                for item in volume["secret"].get("items") or [{"key": key, "path": key} for key in data]:
                    (folder / item["path"]).write_bytes(base64.b64decode(data[item["key"]]))
            elif "configMap" in volume:
                for key, text in (await self._object("configmaps", volume["configMap"]["name"]))["data"].items():
                    (folder / key).write_text(text)
        return found

    async def environment(self, container: Mapping[str, Any], pod: str) -> dict[str, str]:
        """Return the container's environment as kubelet makes it."""
        env: dict[str, str] = {}
        for one in container.get("env") or []:
            source = one.get("valueFrom", {})
            if "secretKeyRef" in source:
                data = (await self._object("secrets", source["secretKeyRef"]["name"]))["data"]
                env[one["name"]] = base64.b64decode(data[source["secretKeyRef"]["key"]]).decode()
            elif "fieldRef" in source:
                env[one["name"]] = pod
            else:
                value = one.get("value", "")
                for name, known in env.items():
                    value = value.replace(f"$({name})", known)
                env[one["name"]] = value
        return env

    async def kubeconfig(self, account: str, pod: str) -> Path:
        """Sign in as the pod's service account, with a token as kubelet gets it."""
        path = f"/api/v1/namespaces/{self._namespace}/serviceaccounts/{account}/token"
        issued = await self._api.create(path, {"spec": {"expirationSeconds": _TOKEN_SECONDS, "audiences": []}})
        file = self.folder(pod) / "kubeconfig"
        authority, token = self._plane.authority.pem, issued["status"]["token"]
        write_kubeconfig(file, server=self._plane.server, authority=authority, user=account, token=token)
        return file

    async def _object(self, plural: str, name: str) -> Object:
        return await self._api.get(f"/api/v1/namespaces/{self._namespace}/{plural}/{name}")

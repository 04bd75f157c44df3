"""A kubelet of processes: the chart's pods, as the API server shows them, run as processes of this machine.

No container engine is needed: a pod's command, arguments, environment, files and service account become those of a
process. Its names of NATS pods become loopback ports, its mounts folders. Pods show Running, Ready and Succeeded as
they would, so that Deployments roll, Jobs complete and `helm --wait` returns. A forwarder plays the Service.
"""

import asyncio
import base64
import contextlib
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.child import Child, ChildFailed, fetch, free_ports
from deploy.local import find_nats_server
from tests.cluster.api import Api, Object, Refused
from tests.cluster.controlplane import ControlPlane
from tests.cluster.users import write_kubeconfig

_LOOK_SECONDS = 0.2
_COMPONENT = "app.kubernetes.io/component"
_TOKEN_SECONDS = 3600
_DENIED = re.compile(r"Forbidden|forbidden|permission missing|Permissions Violation")


@dataclass
class Pod:
    """A pod that runs here. `ports`: what stands for its container's ports; `restarts`: its policy."""

    name: str
    component: str
    child: Child
    ports: dict[int, int]
    probe: str
    restarts: str
    argv: list[str]
    env: dict[str, str]
    ready: bool = False


class Kubelet:
    """Runs the pods of one namespace. `pods`: by uid; `service_port`: where the webhooks' Service is reached."""

    def __init__(self, plane: ControlPlane, api: Api, namespace: str, directory: Path) -> None:
        self._plane, self._api, self._namespace, self._directory = plane, api, namespace, directory
        self._nats_ports: dict[str, dict[int, int]] = {}
        (self.service_port,) = free_ports(1)
        self.pods: dict[str, Pod] = {}
        self.ended: list[Pod] = []

    @property
    def _pods_path(self) -> str:
        return f"/api/v1/namespaces/{self._namespace}/pods"

    def of(self, component: str) -> list[Pod]:
        """Return the pods of one part."""
        return [pod for pod in self.pods.values() if pod.component == component]

    async def exec(self, component: str, *words: str) -> str:
        """Run a command in a pod of a part, as `kubectl exec` does; return what it prints. Fails where it fails."""
        pod = self.of(component)[0]
        argv = [str(Path(pod.argv[0]).parent / words[0]), *words[1:]]
        ran = await asyncio.to_thread(subprocess.run, argv, capture_output=True, text=True, env=pod.env, check=False)
        assert ran.returncode == 0, ran.stderr
        return str(ran.stdout)

    async def lose_volumes(self, component: str) -> None:
        """Have the pods of a part lose what is on their volumes; their processes start anew on empty ones."""
        for pod in self.of(component):
            await asyncio.to_thread(pod.child.stop, 10.0)
            await asyncio.to_thread(shutil.rmtree, self._directory / pod.name / "data")
            (self._directory / pod.name / "data").mkdir()

    def tails(self) -> str:
        """Return the end of every log: what a failing test shows."""
        return "\n".join(f"--- {pod.name} ---\n{pod.child.tail()}" for pod in (*self.ended, *self.pods.values()))

    def nobody_was_denied(self, *, ended: bool = True) -> None:
        """Fail if a pod was ever refused something by the API server's RBAC or by NATS: its part needs it.

        Without `ended` those that run are looked at alone: who is taken away may lose its rights before it ends.
        """
        for pod in (*(self.ended if ended else ()), *self.pods.values()):
            lines = [line for line in pod.child.log.read_text().splitlines() if _DENIED.search(line)]
            assert not lines, f"{pod.name}: {lines}"

    async def run(self) -> None:
        """Look after the pods for ever."""
        while True:
            # The namespace may be gone, the API server may be restarted.
            with contextlib.suppress(Refused, OSError):
                await self._look()
            await asyncio.sleep(_LOOK_SECONDS)

    async def stop(self) -> None:
        """End all processes, orderly."""
        await asyncio.gather(*(asyncio.to_thread(pod.child.stop, 5.0) for pod in self.pods.values()))

    async def _look(self) -> None:
        listed = (await self._api.get(self._pods_path))["items"]
        there = {body["metadata"]["uid"]: body for body in listed if "deletionTimestamp" not in body["metadata"]}
        for uid in [uid for uid in self.pods if uid not in there]:
            pod = self.pods.pop(uid)
            self.ended.append(pod)
            await asyncio.to_thread(pod.child.stop, 10.0)
        for uid, body in there.items():
            if uid not in self.pods and body["status"].get("phase") == "Pending":
                self.pods[uid] = await self._start(body)
        for uid in there:
            if uid in self.pods:
                await self._tend(self.pods[uid])

    async def _tend(self, pod: Pod) -> None:
        if pod.child.running:
            ready = await asyncio.to_thread(_answers, pod)
            if ready != pod.ready:
                pod.ready = ready
                await self._show(pod, "Running")
        elif pod.restarts != "Always" and pod.child.code == 0:
            await self._show(pod, "Succeeded")
        elif pod.restarts == "Never":
            await self._show(pod, "Failed")
        else:
            pod.ready = False
            pod.child.spawn()

    async def _show(self, pod: Pod, phase: str) -> None:
        condition = {"type": "Ready", "status": str(pod.ready), "lastTransitionTime": None}
        status = {"phase": phase, "conditions": [condition]}
        await self._api.patch(f"{self._pods_path}/{pod.name}/status", {"status": status})

    async def _start(self, body: Object) -> Pod:
        name, spec = body["metadata"]["name"], body["spec"]
        component = body["metadata"]["labels"][_COMPONENT]
        container = spec["containers"][0]
        place = self._directory / name
        place.mkdir(parents=True, exist_ok=True)
        ports = self._ports(name, component)
        files = await self._files(spec, container, place)
        words = [*container.get("command", ["gpubinder"]), *container.get("args", [])]
        env = await self._environment(container, name)
        env = {key: self._moved(value, files) for key, value in env.items()}
        if component == "nats":
            argv = [str(find_nats_server()), "-c", str(self._nats_config(place, files, ports))]
            probe = container["readinessProbe"]["httpGet"]["path"]
        else:
            argv = [
                str(Path(sys.executable).parent / words[0]),
                *(self._moved(word, files, ports) for word in words[1:]),
            ]
            # By it the program knows that it runs in a pod; the kubeconfig says where the API server is.
            env["KUBERNETES_SERVICE_HOST"] = "127.0.0.1"
            env["KUBECONFIG"] = str(await self._kubeconfig(spec["serviceAccountName"], place))
            if "GPUBINDER_STATUS_PORT" in env:
                env["GPUBINDER_STATUS_PORT"] = str(ports[8080])
            probe = container.get("readinessProbe", {}).get("httpGet", {}).get("path", "")
        child = Child(name, argv, place / "log", env)
        child.spawn()
        return Pod(name, component, child, ports, probe, spec["restartPolicy"], argv, env)

    def _ports(self, name: str, component: str) -> dict[int, int]:
        """Return a loopback port for each port of the pod; those of a NATS pod are its name's for ever."""
        if component == "nats":
            return self._nats(name)
        return dict(zip((8080, 8443), free_ports(2), strict=True))

    def _nats(self, name: str) -> dict[int, int]:
        if name not in self._nats_ports:
            self._nats_ports[name] = dict(zip((4222, 6222, 8222), free_ports(3), strict=True))
        return self._nats_ports[name]

    def _moved(self, text: str, files: Mapping[str, Path], ports: Mapping[int, int] | None = None) -> str:
        """Return a text of the pod with what it names as it is here."""
        for index in range(3):
            name = f"gpubinder-nats-{index}"
            for port, here in self._nats(name).items():
                text = text.replace(f"{name}.gpubinder-nats.{self._namespace}.svc:{port}", f"127.0.0.1:{here}")
        mounts = "|".join(re.escape(mount) for mount in sorted(files, key=len, reverse=True))
        text = re.sub(rf"(?<![\w/])({mounts})(?![\w-])", lambda found: str(files[found[1]]), text)
        for port, here in (ports or {}).items():
            text = text.replace(f"-port={port}", f"-port={here}")
        return text

    def _nats_config(self, place: Path, files: Mapping[str, Path], ports: Mapping[int, int]) -> Path:
        text = (files["/etc/nats"] / "nats.conf").read_text()
        for port, here in ports.items():
            text = text.replace(f"0.0.0.0:{port}", f"127.0.0.1:{here}")
        moved = place / "moved.conf"
        moved.write_text(text.replace("store_dir: /data", f"store_dir: {files['/data']}"))
        return moved

    async def _files(self, spec: Mapping[str, Any], container: Mapping[str, Any], place: Path) -> dict[str, Path]:
        """Lay out what the container mounts: mount path -> folder."""
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        found: dict[str, Path] = {}
        for mount in container["volumeMounts"]:
            if mount["mountPath"].startswith("/var/run/secrets"):
                continue
            folder = place / mount["name"]
            folder.mkdir(exist_ok=True)
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

    async def _environment(self, container: Mapping[str, Any], pod: str) -> dict[str, str]:
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

    async def _kubeconfig(self, account: str, place: Path) -> Path:
        """Sign in as the pod's service account, with a token as kubelet gets it."""
        path = f"/api/v1/namespaces/{self._namespace}/serviceaccounts/{account}/token"
        issued = await self._api.create(path, {"spec": {"expirationSeconds": _TOKEN_SECONDS, "audiences": []}})
        file = place / "kubeconfig"
        authority, token = self._plane.authority.pem, issued["status"]["token"]
        write_kubeconfig(file, server=self._plane.server, authority=authority, user=account, token=token)
        return file

    async def _object(self, plural: str, name: str) -> Object:
        return await self._api.get(f"/api/v1/namespaces/{self._namespace}/{plural}/{name}")

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass a connection on to a ready pod of the webhooks, as a Service does."""
        ready = [pod for pod in self.of("webhooks") if pod.ready]
        try:
            if not ready:
                return
            back, out = await asyncio.open_connection("127.0.0.1", ready[0].ports[8443])
            await asyncio.gather(_pipe(reader, out), _pipe(back, writer))
        except OSError:
            return
        finally:
            writer.close()


def _answers(pod: Pod) -> bool:
    if not pod.probe:
        return True
    try:
        return fetch(pod.ports.get(8080) or pod.ports[8222], pod.probe)[0] == 200
    except OSError:
        return False


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def kubelet(plane: ControlPlane, api: Api, namespace: str, directory: Path) -> AsyncIterator[Kubelet]:
    """Run the namespace's pods, and its Service on `service_port`, for the length of the block."""
    here = Kubelet(plane, api, namespace, directory)
    server = await asyncio.start_server(here.forward, "127.0.0.1", here.service_port)
    work = asyncio.create_task(here.run())
    try:
        yield here
        if work.done():
            await work
    except BaseException as error:
        error.add_note(here.tails())
        raise
    finally:
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError, ChildFailed):
            await work
        server.close()
        await here.stop()

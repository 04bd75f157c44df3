"""A kubelet of processes: the chart's pods, as the API server shows them, run as processes of this machine.

No container engine is needed: a pod's command, arguments, environment, files and service account become those of a
process. Pods show Running, Ready and Succeeded as they would, so that Deployments roll, Jobs complete and
`helm --wait` returns. A forwarder plays the Service: ready pods are asked in turn.
"""

import asyncio
import contextlib
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from deploy.child import Child, ChildFailed, fetch, free_ports
from deploy.local import find_nats_server
from tests.chart.pod_places import Places
from tests.cluster.api import Api, Object, Refused
from tests.cluster.controlplane import ControlPlane

_LOOK_SECONDS = 0.2
_GRACE_SECONDS = 15.0
_COMPONENT = "app.kubernetes.io/component"
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
    """Runs the pods of one namespace. `pods`: by uid; `service_port`: where the webhooks' Service is reached.

    `held`: components of which no pod is started, as where no machine has room; what runs runs on.
    """

    def __init__(self, plane: ControlPlane, api: Api, namespace: str, directory: Path) -> None:
        self._api, self._namespace = api, namespace
        self.places = Places(plane, api, namespace, directory)
        (self.service_port,) = free_ports(1)
        self.pods: dict[str, Pod] = {}
        self.ended: list[Pod] = []
        self.held: set[str] = set()
        self._ending: dict[str, asyncio.Task[None]] = {}
        self._turn = 0

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
            await asyncio.to_thread(shutil.rmtree, self.places.folder(pod.name) / "data")
            (self.places.folder(pod.name) / "data").mkdir()

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
        running = [asyncio.to_thread(pod.child.stop, 5.0) for pod in self.pods.values()]
        await asyncio.gather(*self._ending.values(), *running)

    async def _look(self) -> None:
        listed = (await self._api.get(self._pods_path))["items"]
        there = {body["metadata"]["uid"]: body for body in listed if "deletionTimestamp" not in body["metadata"]}
        for uid in [uid for uid in self.pods if uid not in there]:
            pod = self.pods.pop(uid)
            self.ended.append(pod)
            self._ending[pod.name] = asyncio.create_task(asyncio.to_thread(pod.child.stop, _GRACE_SECONDS))
        self._ending = {name: task for name, task in self._ending.items() if not task.done()}
        for uid, body in there.items():
            if uid not in self.pods and body["status"].get("phase") == "Pending" and self._may_start(body):
                self.pods[uid] = await self._start(body)
        for uid in there:
            if uid in self.pods:
                await self._tend(self.pods[uid])

    def _may_start(self, body: Object) -> bool:
        """Say whether a pod may start: its component is not held, and none of its name still ends."""
        metadata = body["metadata"]
        return metadata["labels"][_COMPONENT] not in self.held and metadata["name"] not in self._ending

    async def _tend(self, pod: Pod) -> None:
        if pod.child.running:
            ready = await asyncio.to_thread(_answers, pod)
            if ready != pod.ready:
                pod.ready = ready
                await self._show(pod, "Running")
        elif pod.component in self.held:
            if pod.ready:
                pod.ready = False
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
        self.places.folder(name).mkdir(parents=True, exist_ok=True)
        ports = self.places.ports(name, component)
        files = await self.places.files(spec, container, name)
        words = [*container.get("command", ["gpubinder"]), *container.get("args", [])]
        env = await self.places.environment(container, name)
        env = {key: self.places.moved(value, files, pod=name, component=component) for key, value in env.items()}
        if component == "nats":
            argv = [str(find_nats_server()), "-c", str(self.places.nats_config(name, files))]
            probe = container["readinessProbe"]["httpGet"]["path"]
        else:
            argv = [
                str(Path(sys.executable).parent / words[0]),
                *(self.places.moved(word, files, ports) for word in words[1:]),
            ]
            # By it the program knows that it runs in a pod; the kubeconfig says where the API server is.
            env["KUBERNETES_SERVICE_HOST"] = "127.0.0.1"
            env["KUBECONFIG"] = str(await self.places.kubeconfig(spec["serviceAccountName"], name))
            if "GPUBINDER_STATUS_PORT" in env:
                env["GPUBINDER_STATUS_PORT"] = str(ports[8080])
            probe = container.get("readinessProbe", {}).get("httpGet", {}).get("path", "")
        child = Child(name, argv, self.places.folder(name) / "log", env)
        child.spawn()
        return Pod(name, component, child, ports, probe, spec["restartPolicy"], argv, env)

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass a connection on to a ready pod of the webhooks, as a Service does."""
        ready = [pod for pod in self.of("webhooks") if pod.ready]
        try:
            if not ready:
                return
            self._turn += 1
            back, out = await asyncio.open_connection("127.0.0.1", ready[self._turn % len(ready)].ports[8443])
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
    async with here.places.wired():
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

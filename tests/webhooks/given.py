"""A front desk on its feet: the model API server, a journal in memory, a clerk who answers as the binder does."""

import asyncio
import base64
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec

from binder.journal import Journal
from binder.memory_journal import MemoryJournal
from binder.rules.admission import answer_pod, answer_vmi
from binder.rules.starts import answer_start, refusal
from deploy import roles
from deploy.world.patches import json_patch
from schemas.answers import Answer, encode_answer
from schemas.decisions import Decision, SetBooked, StartHeld, TemplateClaim
from schemas.events import MESSAGE_KINDS, AnyEvent, PodRequest, StartRequest, VmiRequest, decode_event
from schemas.frames import Entry, Epoch, Frame, encode_record
from schemas.kinds import GPU_CLASS, KUBEVIRT, POD, VMI, Resource
from schemas.names import VGPU_LABEL
from schemas.reasons import Hold, Refusal
from schemas.streams import DECISIONS, DECISIONS_EPOCH, DECISIONS_FRAME, EVENTS
from tests.webhooks.busy import Busy
from webhooks.service import Patience, Webhooks

Obj = dict[str, Any]

CARD = "nvidia.com/AD102GL_L40S"
SLICE = "nvidia.com/NVIDIA_L40S-24C"
GPU_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
PARTITION = {"key": "partition", "value": "gpu"}
KUBEVIRT_USER = "system:serviceaccount:cozy-kubevirt:kubevirt-controller"
SECONDS = 120.0
"""How long a test waits for what must come; it never decides by time."""

READERS = roles.READERS

_uids = (f"00000000-0000-4000-8000-{number:012}" for number in itertools.count(1))


def gpus(*entries: Mapping[str, object]) -> str:
    """Return the annotation's text."""
    return msgspec.json.encode(entries).decode()


def vmi(text: str = '[{"className":"l40s-24c","count":2}]', **fields: Any) -> Obj:  # noqa: ANN401 - any JSON
    """Return a VMI that refers to GPUs, as KubeVirt's controller posts it; `fields` are its spec.domain."""
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {
            "name": "vm1",
            "namespace": "tenant-a",
            "labels": {"cozystack.io/gpu-reference": "true", "app": "x"},
            "annotations": {"cozystack.io/gpus": text},
        },
        "spec": {
            "domain": {"memory": {"guest": "8Gi"}, "devices": {"disks": [{"name": "root", "disk": {}}]}, **fields},
            "volumes": [{"name": "init", "cloudInitNoCloud": {"userData": "#cloud-config\npassword: hunter2"}}],
        },
    }


def launcher(text: str = '[{"className":"l40s-24c","count":2}]', policy: str = "Wait") -> Obj:
    """Return a launcher as virt-controller posts it: without name, namespace and uid (C47)."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "virt-launcher-vm1-",
            "labels": {"cozystack.io/gpu-reference": "true", "kubevirt.io": "virt-launcher"},
            "annotations": {"cozystack.io/gpus": text, "cozystack.io/gpu-start-policy": policy},
            "ownerReferences": [
                {
                    "apiVersion": "kubevirt.io/v1",
                    "kind": "VirtualMachineInstance",
                    "name": "vm1",
                    "uid": "u1",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {"containers": [{"name": "compute", "image": "virt-launcher"}]},
    }


def review(obj: Obj, resource: Resource, **changes: Any) -> Obj:  # noqa: ANN401 - any JSON
    """Return the AdmissionReview of a create; `changes` go into the request."""
    named = {"name": obj["metadata"]["name"]} if "name" in obj["metadata"] else {}
    request = {
        "uid": next(_uids),
        "kind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "resource": {"group": resource.group, "version": resource.version, "resource": resource.plural},
        "namespace": "tenant-a",
        "operation": "CREATE",
        "userInfo": {"username": KUBEVIRT_USER, "groups": ["system:authenticated"]},
        "object": obj,
        "oldObject": None,
        "dryRun": False,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {**request, **named, **changes}}


class Said(msgspec.Struct, frozen=True):
    """A response: allowed or not, the status, the object as the patch makes it, what the patch adds."""

    uid: str
    allowed: bool
    obj: Obj
    patch: tuple[Obj, ...] = ()
    code: int = 0
    reason: str = ""
    message: str = ""
    warnings: tuple[str, ...] = ()


def said(body: bytes, obj: Obj) -> Said:
    """Read an answer and apply its patch to a copy of the object, as the API server does."""
    whole = msgspec.json.decode(body)
    assert (whole["apiVersion"], whole["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response = whole["response"]
    patch = []
    if "patch" in response:
        assert response["patchType"] == "JSONPatch"
        patch = msgspec.json.decode(base64.b64decode(response["patch"]))
    status = response.get("status", {})
    return Said(
        uid=response["uid"],
        allowed=response["allowed"],
        obj=json_patch(msgspec.json.decode(msgspec.json.encode(obj)), patch),
        patch=tuple(patch),
        code=status.get("code", 0),
        reason=status.get("reason", ""),
        message=status.get("message", ""),
        warnings=tuple(response.get("warnings", ())),
    )


class Clerk:
    """Answers requests on the stream by the rules alone. `silent`: reads and says nothing.

    `books`: whether starts have a place; `holds`: what they wait for instead.
    """

    def __init__(self, journal: Journal, policy: str = "Wait") -> None:
        self.journal, self.policy = journal, policy
        self.silent = False
        self.warm = True
        self.books = True
        self.holds: Hold | None = None
        self.instead: Decision | None = None
        self.says_nothing_of: set[str] = set()
        self.asked: list[VmiRequest | PodRequest] = []

    async def open_epoch(self, versions: tuple[int, ...] = (1,), kinds: tuple[str, ...] = MESSAGE_KINDS) -> None:
        """Announce which versions and kinds of messages are read."""
        last = (await self.journal.info(EVENTS)).last
        epoch = Epoch("log", 1, "clerk", "n", "test", 1, last, versions, message_kinds=kinds)
        await self.journal.append(DECISIONS, DECISIONS_EPOCH, encode_record(epoch), message_id="")

    async def run(self) -> None:
        """Answer for ever."""
        async for run in self.journal.read(EVENTS, 1):
            for message in run:
                if not self.silent:
                    await self.answer(message.sequence, decode_event(message.body))

    async def answer(self, sequence: int, event: AnyEvent) -> None:
        """Write the frame that covers one input."""
        decision = self.decide(event)
        decisions = (decision,) if decision and getattr(event, "request", "") not in self.says_nothing_of else ()
        entries = (Entry(sequence, decisions),) if decisions else ()
        frame = Frame("log", 1, 1, 1, "test", "", sequence, sequence, "", "", entries)
        await self.journal.append(DECISIONS, DECISIONS_FRAME, encode_record(frame), message_id="")

    def decide(self, event: AnyEvent) -> Decision | None:
        """Return the answer to a request."""
        if isinstance(event, VmiRequest | PodRequest):
            self.asked.append(event)
        if self.instead is not None:
            return self.instead
        if isinstance(event, VmiRequest):
            return answer_vmi(event, self.policy)
        if isinstance(event, StartRequest):
            return answer_start(event) or self._place(event)
        return answer_pod(event) if isinstance(event, PodRequest) else None

    def _place(self, event: StartRequest) -> Decision:
        vmi = event.vmi
        if self.holds is not None:
            return StartHeld(event.request, vmi, self.holds)
        if not self.books:
            return refusal(event, Refusal.NO_ROOM, "can't start now: no room")
        return SetBooked(event.request, vmi, (TemplateClaim("c", "l40s-24c", 2, SLICE),), "n1", {SLICE: 2})

    async def ask(self, body: bytes) -> bytes:
        """Answer a dry run, as a warm binder does over request/reply; a cold one has nothing to say."""
        found = self.decide(decode_event(body))
        if not self.warm or not isinstance(found, Answer):
            return b""
        return encode_answer(found)


class Desk:
    """The webhooks and everything they lean on."""

    def __init__(self, api: Busy, journal: MemoryJournal, clerk: Clerk, webhooks: Webhooks) -> None:
        self.api, self.journal, self.clerk, self.webhooks = api, journal, clerk, webhooks

    async def vmi(self, obj: Obj, **changes: Any) -> Said:  # noqa: ANN401 - any JSON
        """Put a VMI create under review."""
        return said(await self.webhooks.review_vmi(msgspec.json.encode(review(obj, VMI, **changes))), obj)

    async def pod(self, obj: Obj, **changes: Any) -> Said:  # noqa: ANN401 - any JSON
        """Put a pod create under review."""
        return said(await self.webhooks.review_pod(msgspec.json.encode(review(obj, POD, **changes))), obj)

    async def create(self, resource: Resource, name: str, body: Obj, namespace: str = "") -> None:
        """Store an object."""
        head = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}
        await self.api.create(resource, namespace, msgspec.json.encode(head | body))

    def events(self) -> list[bytes]:
        """Return the bodies on EVENTS."""
        return [message.body for message in self.journal.streams[EVENTS].messages]


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Poll until it holds. Raises `TimeoutError` where it does not come true."""
    async with asyncio.timeout(SECONDS):
        while not await holds():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def opened(
    patience: Patience | None = None, *, clerk: Callable[[MemoryJournal], Clerk] | None = None
) -> AsyncIterator[Desk]:
    """Open the desk with the classes l40s and l40s-24c and KubeVirt in cozy-kubevirt, the clerk at work."""
    api = Busy()
    journal = MemoryJournal()
    hired = (clerk or Clerk)(journal)
    desk = Desk(api, journal, hired, Webhooks(api, journal, hired, READERS, patience=patience))
    for name in ("cozy-kubevirt", "tenant-a"):
        api.writes.seed_namespace(name, {VGPU_LABEL: "true"})
    card = {"resourceName": CARD, "mode": "Passthrough", "tolerations": [GPU_TAINT]}
    await desk.create(GPU_CLASS, "l40s", {"spec": card})
    part = {"resourceName": SLICE, "mode": "VGPU", "maxCount": 2, "tolerations": [GPU_TAINT, PARTITION]}
    await desk.create(GPU_CLASS, "l40s-24c", {"spec": part})
    await desk.create(KUBEVIRT, "kubevirt", {"spec": {"configuration": {}}}, "cozy-kubevirt")
    await hired.open_epoch()
    tasks = [asyncio.create_task(part) for part in (hired.run(), desk.webhooks.run())]
    try:
        yield desk
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


async def asked_over(desk: Desk, journal: Journal, clerk: Clerk, patience: Patience | None = None) -> Said:
    """Put one VMI under review at webhooks of their own over this journal."""
    webhooks = Webhooks(desk.api, journal, clerk, READERS, patience=patience)
    following = asyncio.create_task(webhooks.run())
    working = asyncio.create_task(clerk.run())
    try:
        return said(await webhooks.review_vmi(msgspec.json.encode(review(vmi(), VMI))), vmi())
    finally:
        for task in (following, working):
            task.cancel()
        await asyncio.gather(following, working, return_exceptions=True)

"""`python -m tests.world.traces DIR`: the emulator beside recorded traces of the real KubeVirt.

Each scene does to the model what was done to the real one, and the two stories are compared:
for every object of every life the order of its phases, nodes, conditions, finalizers and activePods,
without repeats. A real controller that skipped a step in between (its queue folded two rounds into
one) told the same story; a step that the trace has and the emulator lacks is a difference. Renderings
beside the traces (`DIR/../render-in`, `render-out`) are compared field by field.
"""

import asyncio
import logging
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import looptime
import msgspec
import structlog
import yaml

from deploy.world.launcher import launcher_pod
from deploy.world.launcher_resources import NotRenderable
from deploy.world.manifests import Obj, deleting, dig, meta
from deploy.world.virt_api import mutate_vmi_create
from deploy.world.virt_config import read_config
from schemas.kinds import VMI
from tests.world.scenes import SCENES, play

Story = dict[str, list[str]]
"""For each told aspect of each kind, its values in order."""

KINDS = ("VirtualMachine", "VirtualMachineInstance", "Pod", "VirtualMachineInstanceMigration")
# What the recorded cluster showed in passing. A VM without a status is Stopped by a default of its full CRD.
# A pod without a grace is marked as going and gone in two writes there, in one in the model.
PASSING = {("VirtualMachine", "printable"): {"Stopped", "None"}, ("Pod", "life"): {"going"}}


def story(events: Iterable[tuple[str, Obj]]) -> Story:
    """Return what each object went through, aspect by aspect; objects are numbered as they appear."""
    told: Story = {}
    names: dict[str, str] = {}
    for kind, obj in events:
        if obj["kind"] not in KINDS:
            continue
        count = sum(name.startswith(f"{obj['kind']}#") for name in names.values())
        name = names.setdefault(meta(obj)["uid"], f"{obj['kind']}#{count + 1}")
        for aspect, value in aspects(kind, obj).items():
            values = told.setdefault(f"{name} {aspect}", [])
            if not values or values[-1] != value:
                values.append(value)
    return told


def aspects(kind: str, obj: Obj) -> dict[str, str]:
    """Return the told values of one version of an object."""
    status = obj.get("status") or {}
    life = "gone" if kind == "DELETED" else ("going" if deleting(obj) else "here")
    found = {
        "life": life,
        "phase": str(status.get("phase")),
        "finalizers": str([one.rpartition("/")[2] for one in meta(obj).get("finalizers") or ()]),
    }
    for one in status.get("conditions") or ():
        found[f"condition {one['type']}"] = f"{one['status']} {one.get('reason') or ''}".strip()
    if obj["kind"] == "VirtualMachine":
        failure = dig(status, "startFailure", "consecutiveFailCount")
        found |= {"printable": str(status.get("printableStatus")), "failed starts": str(failure)}
    if obj["kind"] == "VirtualMachineInstance":
        active = sorted("bound" if node else "unbound" for node in (status.get("activePods") or {}).values())
        placed = [field for field in ("affinity", "nodeSelector", "tolerations") if obj["spec"].get(field)]
        found |= {"activePods": str(active), "node": str(bool(status.get("nodeName"))), "placement": str(placed)}
        found["node label"] = str("kubevirt.io/nodeName" in (meta(obj).get("labels") or {}))
    if obj["kind"] == "Pod":
        found["gates"] = str(bool(obj["spec"].get("schedulingGates")))
        found["node"] = str(bool(obj["spec"].get("nodeName")))
    return found


def missing(want: Sequence[str], have: Sequence[str]) -> list[str]:
    """Return the values of `want` that `have` does not show in this order."""
    lost = []
    rest = iter(have)
    for value in want:
        if not any(value == shown for shown in rest):
            lost.append(value)
            rest = iter(have[_after(want[: want.index(value)], have) :])
    return lost


def _after(prefix: Sequence[str], have: Sequence[str]) -> int:
    index = 0
    for value in prefix:
        found = next((at for at in range(index, len(have)) if have[at] == value), None)
        index = index if found is None else found + 1
    return index


def differences(want: Story, have: Story) -> list[str]:
    """Return what the trace tells and the emulator does not, in words."""
    found = []
    for aspect, values in sorted(want.items()):
        kind, _, what = aspect.partition(" ")
        passing = PASSING.get((kind.partition("#")[0], what), set())
        wanted = [value for value in values if value not in passing]
        shown = [value for value in have.get(aspect, []) if value not in passing]
        if missing(wanted, shown):
            found.append(f"{aspect}: recorded {wanted}, emulated {shown}")
    return found


def recorded(path: Path) -> list[tuple[str, Obj]]:
    """Return a trace's watch events."""
    lines = [msgspec.json.decode(line) for line in path.read_bytes().splitlines() if line.strip()]
    return [(line["type"], line["object"]) for line in lines]


def rendering_differences(folder: Path) -> list[str]:
    """Compare virt-api's defaults and the launcher pod with KubeVirt's own renderings."""
    found: list[str] = []
    configuration = yaml.safe_load((folder / "render-in" / "kv-config.yaml").read_text())
    for path in sorted((folder / "render-in").glob("vmi-*.yaml")):
        told = dict(configuration)
        if path.stem == "vmi-nopermitted":
            del told["permittedHostDevices"]
        config = read_config({"spec": {"configuration": told}})
        new = mutate_vmi_create(yaml.safe_load(path.read_text()), config, now=0.0)
        del new["status"]["phaseTransitionTimestamps"]
        want = yaml.safe_load((folder / "render-out" / f"{path.stem}.mutated.yaml").read_text())
        found += [f"{path.stem} defaults: {one}" for one in compared(new, want) if "firmware.uuid" not in one]
        for kind, temporary in (("pod", False), ("temp-pod", True)):
            golden = folder / "render-out" / f"{path.stem}.{kind}.yaml"
            if not golden.exists():
                continue
            want_pod = yaml.safe_load(golden.read_text())
            want_pod.pop("status", None)
            del want_pod["metadata"]["namespace"]
            try:
                pod = launcher_pod(want | {"kind": VMI.kind}, config, temporary=temporary)
            except NotRenderable as error:
                found.append(f"{path.stem} {kind}: {error}")
                continue
            # The first argument is a time limit that KubeVirt draws by lot.
            found += [f"{path.stem} {kind}: {one}" for one in compared(pod, want_pod) if ".args[1]" not in one]
    return found


def compared(have: Any, want: Any, path: str = "") -> list[str]:  # noqa: ANN401 - JSON has any shape
    """Return where two JSON values differ."""
    if isinstance(have, dict) and isinstance(want, dict):
        names = sorted(have.keys() | want.keys())
        return [line for name in names for line in compared(have.get(name), want.get(name), f"{path}.{name}")]
    if isinstance(have, list) and isinstance(want, list) and len(have) == len(want):
        pairs = enumerate(zip(have, want, strict=True))
        return [line for index, (one, other) in pairs for line in compared(one, other, f"{path}[{index}]")]
    return [] if have == want else [f"{path}: {have!r}, recorded {want!r}"]


def silence() -> None:
    """Keep the emulator's notes on refusals, which some scenes are about, off the terminal."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))


def main(folder: Path) -> int:
    """Compare every scene that has a trace, and the renderings; return the number of differences."""
    silence()
    total = 0
    for prefix, scene in SCENES.items():
        for path in sorted(folder.glob(f"{prefix}*.jsonl")):
            with asyncio.Runner(loop_factory=looptime.new_event_loop) as runner:
                written = runner.run(play(scene))
            found = differences(story(recorded(path)), story(written))
            total += len(found)
            sys.stdout.write(f"{path.stem}: {'as recorded' if not found else ''}\n")
            sys.stdout.writelines(f"  {line}\n" for line in found)
    if (folder.parent / "render-out").is_dir():
        found = rendering_differences(folder.parent)
        total += len(found)
        sys.stdout.write(f"renderings: {'as recorded' if not found else ''}\n")
        sys.stdout.writelines(f"  {line}\n" for line in found)
    return total


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tests.world.traces DIR   (a folder of *.jsonl watch traces)")
    sys.exit(1 if main(Path(sys.argv[1])) else 0)

"""`gpubinder demo`: the main job, seen from the terminal."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import deploy
from tests.deploy.command import gpubinder
from tests.deploy.logs import Kept

pytestmark = pytest.mark.nats

EXAMPLES = Path(deploy.__file__).parent / "examples"


def _example(kind: str) -> list[dict[str, Any]]:
    """Return the example's objects of a kind."""
    documents = [one for file in sorted(EXAMPLES.glob("*.yaml")) for one in yaml.safe_load_all(file.read_text())]
    return [item for document in documents for item in document["items"] if item["kind"] == kind]


@pytest.mark.parametrize("columns", [80, 100, 160])
def test_the_demo_is_told_within_the_terminal(columns: int) -> None:
    """Placements, who waits and why, one that starts when another ends, and the proof: no line wraps."""
    ran = gpubinder("demo", columns=columns)

    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert max(len(line.rstrip()) for line in lines) <= columns
    assert [line for line in lines if line and not line.startswith((" ", "all of it"))] == [
        "The cluster",
        "Who got what",
        "Why tenant-umbra/batch waits",
        "One VM stops",
        "The log, replayed from its first message",
    ]
    words = " ".join(ran.out.split())
    assert "tenant-acme/training 2 x l40s gpu-b1 runs" in words
    assert "tenant-umbra/batch 2 x l40s-24c - waits: NoRoom" in words
    assert re.search(
        r"tenant-umbra/desktop is stopped; [\d.]+ m?s later tenant-umbra/batch has its place on gpu-a2", words
    )
    assert "the same as it was lived, digest for digest" in words
    assert "…" not in ran.out


def test_the_demo_for_machines(demo_log: Kept) -> None:
    """JSON: every VM explained, what changed, the audit, and that it agrees."""
    told = demo_log.told.json

    phases = {one["name"]: one["phase"] for one in told["vms"]}
    assert phases["training"] == "Placed"
    assert phases["batch"] == phases["archive"] == phases["research"] == "Waiting"
    assert phases["spare"] == "NotStarted"
    assert told["change"]["started"] == ["tenant-umbra", "batch"]
    assert told["log"]["whole"] is told["agrees"] is True
    assert told["log"]["anchored"] is True
    assert told["log"]["rederived"] > 20
    assert told["state"]["live"] == told["state"]["replayed"]


def test_a_dump_of_ones_own(tmp_path: Path) -> None:
    """A JSON list of somebody's cluster: kinds that nobody knows and claims of another log are left out, and said."""
    running = json.loads(json.dumps(_example("Pod")[0]))
    stranger = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    claim = {"apiVersion": "cozystack.io/v1alpha1", "kind": "GPUClaim", "metadata": {"name": "c", "namespace": "a"}}
    kinds = ("Node", "GPUClass", "Namespace", "KubeVirt", "VirtualMachine")
    items = [running, stranger, claim, *(item for kind in kinds for item in _example(kind))]
    (tmp_path / "dump.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))

    ran = gpubinder("demo", "--cluster", tmp_path)

    words = " ".join(ran.out.split())
    assert ran.code == 0, ran.err
    assert "left out: 1 Widget: kind unknown to the model" in words
    assert "left out: 1 GPUClaim: decided in another log" in words
    # The pod of the dump holds a card; KubeVirt makes no launcher for a VM whose disk is not in the dump.
    assert "gpu-b1 l40s 3 4" in words
    assert "tenant-umbra/archive - - not started" in words


def test_what_runs_in_a_dump_runs_in_the_demo(tmp_path: Path) -> None:
    """A VMI with its running launcher is taken as it is: not started again, and its units are not given away."""
    vm = next(one for one in _example("VirtualMachine") if one["metadata"]["name"] == "render-1")
    owner = {"kind": "VirtualMachine", "name": "render-1", "uid": vm["metadata"]["uid"]}
    owner |= {"apiVersion": vm["apiVersion"], "controller": True, "blockOwnerDeletion": True}
    marks = vm["spec"]["template"]["metadata"]
    vmi: dict[str, Any] = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {
            "name": "render-1",
            "namespace": "tenant-acme",
            "uid": "0e9a3f7c-0000-4000-8000-000000000001",
            "labels": marks["labels"],
            "annotations": marks["annotations"],
            "ownerReferences": [owner],
        },
        "spec": vm["spec"]["template"]["spec"],
        "status": {
            "phase": "Running",
            "nodeName": "gpu-a2",
            "activePods": {"0e9a3f7c-0000-4000-8000-000000000002": "gpu-a2"},
        },
    }
    pod = json.loads(json.dumps(_example("Pod")[0]))
    pod["metadata"] |= {"name": "virt-launcher-render-1-abcde", "namespace": "tenant-acme"}
    pod["metadata"] |= {"uid": "0e9a3f7c-0000-4000-8000-000000000002"}
    pod["metadata"]["labels"] = {"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": vmi["metadata"]["uid"]}
    pod["metadata"]["ownerReferences"] = [
        {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "render-1", "controller": True}
        | {"uid": vmi["metadata"]["uid"], "blockOwnerDeletion": True}
    ]
    container = pod["spec"]["containers"][0]
    container["name"] = "compute"
    container["resources"] = {"requests": {"nvidia.com/NVIDIA_L40S-24C": "2"}}
    pod["spec"]["nodeName"] = "gpu-a2"
    pod["status"]["containerStatuses"] = [{"name": "compute", "state": {"running": {}}, "image": "i", "ready": True}]
    items = [vmi, pod, *(item for kind in ("Node", "GPUClass", "Namespace", "KubeVirt") for item in _example(kind))]
    items += [one for one in _example("VirtualMachine") if one["metadata"]["name"] in {"render-1", "render-2"}]
    (tmp_path / "dump.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))

    ran = gpubinder("demo", "--cluster", tmp_path / "dump.yaml")

    words = " ".join(ran.out.split())
    assert ran.code == 0, ran.err
    assert "gpu-a2 l40s-24c 2 4" in words
    # The fullest node with room is the one where the dump's launcher runs.
    assert "tenant-acme/render-2 2 x l40s-24c gpu-a2 runs" in words


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("kind: [", "not YAML or JSON"),
        ("just: text", "it has no kind"),
        ("kind: Node\napiVersion: v1\nmetadata: {}", "Node without metadata.name"),
        ("apiVersion: v1\nkind: Node\napiVersion: v1\nkind: Pod\n", "put a line `---` between them"),
    ],
)
def test_a_bad_manifest_is_refused_with_a_sentence(tmp_path: Path, content: str, why: str) -> None:
    """What can't be read as objects names the file and what is wrong there."""
    file = tmp_path / "bad.yaml"
    file.write_text(content)

    ran = gpubinder("demo", "--cluster", file)

    assert ran.code == 1
    assert f"{file}" in ran.err
    assert why in ran.err
    assert "Traceback" not in ran.err


def test_a_directory_without_manifests(tmp_path: Path) -> None:
    """A directory with nothing to read is named."""
    ran = gpubinder("demo", "--cluster", tmp_path)

    assert ran.code == 1
    assert str(tmp_path) in ran.err


def test_a_kept_log_is_never_written_over(demo_log: Kept) -> None:
    """A demo begins a log of its own: where one stands, it refuses."""
    ran = gpubinder("demo", "--keep", demo_log.directory)

    assert ran.code == 2
    assert "not empty" in re.sub(r"[\s│]+", " ", ran.err)


def test_the_examples_ship_with_the_package() -> None:
    """The manifests stand inside the package that the wheel ships, as kubectl prints them: lists, with uids."""
    kinds = {
        item["kind"]
        for file in EXAMPLES.glob("*.yaml")
        for d in yaml.safe_load_all(file.read_text())
        for item in d["items"]
    }
    vms = _example("VirtualMachine")

    assert {"Node", "GPUClass", "VirtualMachine", "PersistentVolume", "PersistentVolumeClaim", "KubeVirt"} <= kinds
    assert all(vm["metadata"]["uid"] and vm["metadata"]["creationTimestamp"] and vm["status"] for vm in vms)

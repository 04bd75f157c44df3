"""The chart where much is there already: cozystack's kinds and accounting, and a NATS of the operator's."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typing_extensions import override

from deploy.local import NatsServer
from deploy.nats_rights import PERMISSIONS
from schemas.kinds import CRD, GPU_CLAIM, GPU_CLASS, SECRET, VMI, WORKLOAD, WORKLOAD_MONITOR
from tests.chart.kubelet import kubelet
from tests.chart.release import NAMESPACE, SECONDS, TENANT, Release, tenant
from tests.cluster.api import Api, Object
from tests.cluster.build import obtain
from tests.cluster.certificates import Authority
from tests.cluster.controlplane import ControlPlane
from tests.cluster.fixtures import KUBEVIRT_KINDS, OUR_KINDS
from tests.cluster.nodes import L40S, Nodes
from tests.e2e.tenant import eventually
from tests.nats_accounts import Accounts

SHARED = {f"{kind.plural}.{kind.group}" for kind in (WORKLOAD, WORKLOAD_MONITOR)}
"""Kinds that cozystack serves: here they stand before the chart comes, as somebody else made them."""


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """A control plane of this module's own, with the kinds of KubeVirt and of cozystack."""
    theirs = [path for path in OUR_KINDS if yaml.safe_load(path.read_text())["metadata"]["name"] in SHARED]
    assert len(theirs) == len(SHARED)
    with ControlPlane(obtain(), [*KUBEVIRT_KINDS, *theirs]) as running:
        yield running


class TheirNats(NatsServer):
    """A server of the operator's: users by credentials files, TLS on both sides."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.accounts, self.authority = Accounts(), Authority.new()
        self.authority.issue_files(directory)
        (directory / "ca.crt").write_bytes(self.authority.pem)

    @override
    def config(self) -> str:
        """What is there for one server, with accounts and TLS."""
        files = [f'{key}: "{self.directory}/{name}"' for key, name in _FILES.items()]
        return f"{super().config()}{self.accounts.config}tls {{ {', '.join(files)}, verify: true }}\n"

    def secrets(self) -> dict[str, dict[str, bytes]]:
        """Return what an operator puts into Secrets: credentials of each part, and TLS."""
        files = {part: self.accounts.credentials_of(part, self.directory / f"{part}.creds") for part in PERMISSIONS}
        certificate, key = self.authority.issue("client")
        return {
            "nats-credentials": {f"{part}.creds": file.read_bytes() for part, file in files.items()},
            "nats-tls": {"ca.crt": self.authority.pem, "tls.crt": certificate, "tls.key": key},
        }


_FILES = {"cert_file": "tls.crt", "key_file": "tls.key", "ca_file": "ca.crt"}


async def _shared(api: Api) -> list[Object]:
    """Return the kinds of cozystack as they stand."""
    return [await api.get(CRD.path(name=name)) for name in sorted(SHARED)]


async def test_on_cozystack_with_a_nats_of_the_operators(
    control_plane: ControlPlane, api: Api, nodes: Nodes, helm_home: Path, tmp_path: Path
) -> None:
    """I1, R2: their kinds stay theirs, their NATS is used with a user for each part; a VM starts, all is removed."""
    theirs = TheirNats(tmp_path / "nats")
    await theirs.start()
    try:
        await _secrets(api, theirs.secrets())
        kinds = await _shared(api)
        async with kubelet(control_plane, api, NAMESPACE, tmp_path / "pods") as pods:
            release = Release(control_plane, api, helm_home, pods)
            await release.install(
                crds={"workloads": False, "keep": False},
                accounting={"enabled": False},
                nats={
                    "server": {"enabled": False},
                    "urls": [f"tls://127.0.0.1:{theirs.port}"],
                    "replicas": 1,
                    "store": "900MB",
                    "credentialsSecret": "nats-credentials",
                    "tls": {"secretName": "nats-tls", "clientCertificate": True},
                    "monitors": [f"http://127.0.0.1:{theirs.monitor_port}"],
                },
            )
            assert not pods.of("nats")
            assert not pods.of("accounting")
            await _one_runs(release, control_plane, nodes, tmp_path / "virt")
        assert await _shared(api) == kinds
    finally:
        await theirs.stop()


async def _one_runs(release: Release, plane: ControlPlane, nodes: Nodes, place: Path) -> None:
    """A VM has its GPU and its record; then it goes, and the release; nothing of ours waits for anybody."""
    api = release.api
    async with tenant(plane, api, nodes, place) as (one, _):
        await one.gpu_class("l40s", L40S)
        await one.node("n1", {L40S: 1})
        await one.vm("vm", [("l40s", 1)])
        assert await one.running("vm", SECONDS) == "n1"
        assert await one.bound("vm") == ["n1"]

        async def recorded() -> bool:
            return len((await api.get(WORKLOAD.path(TENANT)))["items"]) == 1

        await eventually(recorded, "the claim has its record", SECONDS)
        assert json.loads(await release.pods.exec("binder", "gpubinder", "verify", "--json"))["anchored"]
        release.pods.nobody_was_denied()
        await one.delete("vm")
        await api.until(VMI.path(TENANT, "vm"), lambda found: found is None, SECONDS)
        await release.uninstall()
        # Kinds that are not kept go with all that is of them.
        for kind in (GPU_CLAIM, GPU_CLASS):
            name = f"{kind.plural}.{kind.group}"
            await api.until(CRD.path(name=name), lambda found: found is None, SECONDS)


async def _secrets(api: Api, secrets: dict[str, dict[str, bytes]]) -> None:
    await api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for name, data in secrets.items():
        told = {key: base64.b64encode(value).decode() for key, value in data.items()}
        await api.create(SECRET.path(NAMESPACE), {"metadata": {"name": name}, "data": told})

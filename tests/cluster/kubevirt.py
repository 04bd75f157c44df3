"""KubeVirt on a real control plane: its CR, virt-api's webhooks, the emulator and its kubelets."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from binder.kube_client import KubeClient
from deploy.world.kubevirt import KubeVirt, emulator
from schemas.kinds import KUBEVIRT, NAMESPACE
from tests.cluster.api import Api
from tests.cluster.controlplane import ControlPlane
from tests.cluster.nodes import H100, L40S, L40S_24C
from tests.cluster.users import KUBEVIRT as KUBEVIRT_USER
from tests.cluster.virt_api import virt_api

PERMITTED = {
    "pciHostDevices": [
        {"pciVendorSelector": "10DE:26B9", "resourceName": L40S, "externalResourceProvider": True},
        {"pciVendorSelector": "10DE:2331", "resourceName": H100, "externalResourceProvider": True},
    ],
    "mediatedDevices": [{"mdevNameSelector": "NVIDIA L40S-24C", "resourceName": L40S_24C}],
}
HOME = "kubevirt"


@asynccontextmanager
async def kubevirt_on(
    control_plane: ControlPlane,
    api: Api,
    namespace: str,
    directory: Path,
    configuration: Mapping[str, Any] | None = None,
    *,
    admission: bool = True,
    **options: Any,  # noqa: ANN401 - the emulator's own
) -> AsyncIterator[KubeVirt]:
    """Run KubeVirt for the length of a test: the namespaces' VMs start, run on nodes, end.

    `configuration`: of its CR. `admission`: with virt-api's webhooks; without them a write costs the API
    server half as much, and VMIs are not defaulted. `options`: `KubeVirt`'s.
    """
    home = NAMESPACE.path(name=HOME)
    if await api.find(home) is None:
        await api.create(NAMESPACE.path(), {"metadata": {"name": HOME}})
    custom = {
        "apiVersion": KUBEVIRT.api_version,
        "kind": KUBEVIRT.kind,
        "metadata": {"name": "kubevirt"},
        "spec": {"configuration": {"permittedHostDevices": PERMITTED} | dict(configuration or {})},
    }
    await api.create(KUBEVIRT.path(HOME), custom)
    kube = await KubeClient.connect(kubeconfig=str(control_plane.kubeconfig(KUBEVIRT_USER)), connections=64)
    try:
        async with emulator(KubeVirt(kube, namespace=HOME, **options)) as kubevirt, AsyncExitStack() as stack:
            if admission:
                await stack.enter_async_context(virt_api(api, kubevirt, directory / "virt-api", namespace))
            yield kubevirt
    finally:
        await api.delete(KUBEVIRT.path(HOME, "kubevirt"))
        await kube.close()

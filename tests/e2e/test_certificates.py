"""The serving certificate and its authority change while VMs start: no start notices, no replica is restarted (C46)."""

import asyncio
import base64
import ssl
from pathlib import Path

from cryptography import x509

from deploy.child import free_ports
from schemas.admission import CONFIGURATION_NAME, VALIDATING_CONFIGURATION
from tests.cluster.certificates import Authority
from tests.cluster.nodes import L40S
from tests.e2e.asking import asking
from tests.e2e.stack import CONFIGURATIONS, Stack
from tests.e2e.tenant import eventually


def _serial(port: int) -> int:
    """Return the serial number of the certificate that a replica serves now, 0 where it does not serve yet."""
    try:
        served = ssl.get_server_certificate(("127.0.0.1", port))
    except ConnectionError:
        return 0
    return x509.load_pem_x509_certificate(served.encode()).serial_number


async def _served(ports: tuple[int, ...], certificate: Path) -> None:
    """Wait until every replica serves what stands in the file."""
    wanted = x509.load_pem_x509_certificate(certificate.read_bytes()).serial_number

    async def everywhere() -> bool:
        return all([await asyncio.to_thread(_serial, port) == wanted for port in ports])

    await eventually(everywhere, "every replica serves the new certificate")


async def _trusted(program: Stack, *authorities: Authority) -> None:
    """Have the API server trust these authorities."""
    for path in (f"{CONFIGURATIONS}/{CONFIGURATION_NAME}", VALIDATING_CONFIGURATION.path(name=CONFIGURATION_NAME)):
        stands = await program.api.get(path)
        for hook in stands["webhooks"]:
            hook["clientConfig"]["caBundle"] = base64.b64encode(b"".join(one.pem for one in authorities)).decode()
        await program.api.replace(path, stands)


async def test_certificate_and_authority_change_under_load(parts: Stack, tmp_path: Path) -> None:
    """C46: the pair is replaced, then who signs it: two replicas serve the new ones without a restart."""
    program, files, old = parts, tmp_path / "tls", parts.plane.authority
    await program.apart()
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 2})
    [second] = free_ports(1)
    program.processes.start("webhooks-2", ["webhooks"], port=second)
    ports = (program.processes.port, second)
    await _served(ports, files / "tls.crt")
    children = {name: child.pid for name, child in program.processes.children.items()}

    async with asking(program) as refused:
        certificate, _ = old.issue_files(files, "localhost")
        await _served(ports, certificate)
        new = Authority.new()
        await _trusted(program, old, new)
        await program.vm("between", [("l40s", 1)])
        await program.running("between")
        new.issue_files(files, "localhost")
        await _served(ports, certificate)
        await _trusted(program, new)
        await program.vm("after", [("l40s", 1)])
        await program.running("after")

    assert not refused
    assert {name: child.pid for name, child in program.processes.children.items()} == children

"""The serving certificate on real sockets: exchanged under load, never half, with or without a server name."""

import asyncio
import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.webhooks.given import until
from tests.webhooks.made import rotate
from tests.webhooks.standing import HOSTS, Stand, ask
from webhooks.certificates import new_authority, serving_pair
from webhooks.tls import ServingCertificate, UnusableCertificate


@pytest.mark.parametrize("host", HOSTS)
async def test_a_server_name_is_not_needed(stand: Stand, host: str) -> None:
    """With and without a server name in the handshake (an address has none) the pair is served."""
    assert (await stand.meet(host))["serialNumber"]


async def test_certificates_are_exchanged_under_load(stand: Stand) -> None:
    """Ten new pairs while requests run on kept and on new connections: every request is answered."""
    answered, over = 0, False

    async def load(*, keep_alive: bool) -> None:
        nonlocal answered
        async with stand.client(keep_alive=keep_alive) as client:
            while not over:
                assert (await ask(client, stand.url)).allowed
                answered += 1

    running = [asyncio.create_task(load(keep_alive=keep)) for keep in (True, True, False, False)]
    seen = {await stand.served()}
    for _ in range(10):
        (stand.files / "tls.crt").unlink()
        rotate(stand.files, HOSTS, datetime.now(UTC))

        async def changed() -> bool:
            return await stand.served() not in seen

        await until(changed)
        seen.add(await stand.served())
    over = True
    await asyncio.gather(*running)

    assert len(seen) == 11
    assert answered >= 4


async def test_another_authority_is_followed(stand: Stand) -> None:
    """After the authority is replaced, a client with the new bundle is served; one with the old one alone is not."""
    old = stand.bundle
    (stand.files / "ca.key").unlink()
    (stand.files / "tls.crt").unlink()
    before = await stand.served()
    stand.bundle = rotate(stand.files, HOSTS, datetime.now(UTC))

    async def changed() -> bool:
        return await stand.served() != before

    await until(changed)
    stand.bundle = old
    with pytest.raises(ssl.SSLCertVerificationError):
        await stand.served()


async def test_half_a_pair_is_not_served(stand: Stand) -> None:
    """A key that does not fit, or files that vanish: the former pair stays, and readiness tells the trouble."""
    before = await stand.served()
    other = serving_pair(new_authority(datetime.now(UTC)), HOSTS, datetime.now(UTC))
    key = (stand.files / "tls.key").read_bytes()
    async with stand.client() as client:

        async def certificate() -> tuple[int, str]:
            async with client.get(f"{stand.url}/readyz") as response:
                return response.status, (await response.json())["certificate"]

        async def troubled() -> bool:
            return (await certificate())[1] != "ok"

        async def well() -> bool:
            return not await troubled()

        (stand.files / "tls.key").write_bytes(other.key)
        await until(troubled)
        assert (await certificate())[0] == 200
        (stand.files / "tls.key").unlink()
        await until(troubled)
        assert await stand.served() == before
        (stand.files / "tls.key").write_bytes(key)
        await until(well)


def test_files_that_cannot_be_served_are_named(tmp_path: Path) -> None:
    """A start without usable files fails with their names."""
    with pytest.raises(UnusableCertificate, match=r"tls.crt and .*tls.key can't be served: No such file"):
        ServingCertificate(tmp_path / "tls.crt", tmp_path / "tls.key")

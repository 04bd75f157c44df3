"""With an authority for clients, reviews are taken from the API server alone; probes need no certificate."""

import ssl
from pathlib import Path

import aiohttp
import msgspec
import pytest

from schemas.kinds import VMI
from tests.cluster.certificates import Authority
from tests.webhooks.given import Desk, review, until, vmi
from tests.webhooks.standing import Stand, standing
from webhooks.tls import ServingCertificate, UnusableCertificate

BODY = msgspec.json.encode(review(vmi(), VMI))


def client(stand: Stand, files: tuple[Path, Path] | None) -> aiohttp.ClientSession:
    """Return a client that shows this certificate, or none."""
    trust = ssl.create_default_context(cadata=stand.bundle.decode())
    if files is not None:
        trust.load_cert_chain(*files)
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust, force_close=True))


async def posted(stand: Stand, files: tuple[Path, Path] | None) -> int:
    """Post a review and return the status."""
    async with client(stand, files) as session, session.post(f"{stand.url}/mutate/vmis", data=BODY) as response:
        return response.status


async def test_reviews_need_the_api_servers_certificate(desk: Desk, tmp_path: Path) -> None:
    """Signed by the authority: answered. Without one: 401, and nothing is asked of the binder. Probes pass."""
    authority, stranger = Authority.new(), Authority.new()
    (tmp_path / "clients.crt").write_bytes(authority.pem)
    known = authority.issue_files(tmp_path / "api-server")
    unknown = stranger.issue_files(tmp_path / "stranger")

    async with standing(desk, tmp_path / "serving", client_ca=tmp_path / "clients.crt") as stand:
        assert await posted(stand, None) == 401
        with pytest.raises((aiohttp.ClientError, OSError)):
            await posted(stand, unknown)
        assert desk.clerk.asked == []
        assert await posted(stand, known) == 200
        async with client(stand, None) as session, session.get(f"{stand.url}/readyz") as response:
            assert response.status == 200


async def test_a_new_authority_is_taken_up(desk: Desk, tmp_path: Path) -> None:
    """The file is read again when it changes, as the serving pair is (C46)."""
    old, new = Authority.new(), Authority.new()
    file = tmp_path / "clients.crt"
    file.write_bytes(old.pem)
    files = new.issue_files(tmp_path / "api-server")

    async with standing(desk, tmp_path / "serving", client_ca=file) as stand:
        file.write_bytes(old.pem + new.pem)

        async def taken() -> bool:
            try:
                return await posted(stand, files) == 200
            except (aiohttp.ClientError, OSError):
                return False

        await until(taken)


def test_a_file_that_names_nobody_is_told(tmp_path: Path) -> None:
    """No authority in the file: the program says which file, and does not serve without it."""
    files = Authority.new().issue_files(tmp_path)
    (tmp_path / "clients.crt").write_text("nothing")

    with pytest.raises(UnusableCertificate, match=r"clients\.crt names nobody who signs for clients"):
        ServingCertificate(*files, tmp_path / "clients.crt")

"""One licence write at a time: what is overwritten, what is left alone, and what a refusal tells."""

import base64
from typing import Any

import msgspec
import pytest

from binder.kube import ApiError
from deploy.world.apiserver import ApiServer
from ingest.digest_key import DigestKey
from ingest.secrets import SecretReader
from projector.effects import CopyLicence, DropLicence
from projector.licences import LicenceWriter
from projector.verdicts import BEHIND, LANDED, SETTLED, Kind
from schemas.decisions import VmiId
from schemas.kinds import SECRET
from schemas.objects import Stamp

HOME, TENANT, NAME = "gpubinder", "tenant-a", "gpu-licence-l40s"
TOKEN, CONF = "client_configuration_token.tok", "gridd.conf"
VALUE = base64.b64encode(b"very secret").decode()


class Ground:
    """A model API server with a source, and what ingest reads of it."""

    def __init__(self) -> None:
        self.api = ApiServer()
        for name in (HOME, TENANT):
            self.api.writes.seed_namespace(name)
        self.key = DigestKey(self.api, HOME)
        self.reader = SecretReader(self.key)
        self.writer = LicenceWriter(self.api, HOME, lambda: "2026-01-01T00:00:00Z")

    async def begin(self) -> "Ground":
        """Make the key and the source."""
        await self.key.obtain()
        await self.put(HOME, "lic", {TOKEN: VALUE, "more": VALUE})
        return self

    async def put(self, namespace: str, name: str, data: dict[str, str], **metadata: Any) -> None:  # noqa: ANN401 - any JSON
        """Store a Secret."""
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, **metadata}, "data": data}
        await self.api.create(SECRET, namespace, msgspec.json.encode(body))

    async def effect(self, sequence: int = 5) -> CopyLicence:
        """Return the copy of the source as it is now."""
        digest = self.reader.source(await self.api.get(SECRET, HOME, "lic")).digest
        return CopyLicence(VmiId(TENANT, "", ""), NAME, Stamp(1, sequence, 0), "l40s", f"{HOME}/lic", digest)

    async def copy(self) -> dict[str, Any]:
        """Return the copy."""
        found: dict[str, Any] = msgspec.json.decode(await self.api.get(SECRET, TENANT, NAME))
        return found


@pytest.fixture
async def ground() -> Ground:
    """A key and a source."""
    return await Ground().begin()


async def test_a_copy_is_seen_as_intact(ground: Ground) -> None:
    """What the projector writes is what ingest knows again: label, stamp, digest, token alone (L1)."""
    effect = await ground.effect()

    assert await ground.writer.copy(effect) == LANDED
    seen = ground.reader.copy(await ground.api.get(SECRET, TENANT, NAME))

    assert (seen.intact, seen.gpu_class, seen.stamp, seen.digest) == (True, "l40s", effect.stamp, effect.digest)
    assert (await ground.copy())["data"] == {TOKEN: VALUE}


async def test_a_newer_copy_stays(ground: Ground) -> None:
    """T22: a writer of the past changes nothing; the same write again changes nothing either."""
    await ground.writer.copy(await ground.effect(7))
    before = await ground.copy()

    assert await ground.writer.copy(await ground.effect(5)) == BEHIND
    assert await ground.writer.copy(await ground.effect(7)) == LANDED
    assert await ground.copy() == before


async def test_a_source_that_changed_is_not_written_under_an_old_decision(ground: Ground) -> None:
    """The next decision names the new content."""
    effect = await ground.effect()
    await ground.api.delete(SECRET, HOME, "lic")
    gone = await ground.writer.copy(effect)
    await ground.put(HOME, "lic", {TOKEN: base64.b64encode(b"another").decode()})

    assert gone == SETTLED
    assert await ground.writer.copy(effect) == SETTLED
    with pytest.raises(ApiError):
        await ground.copy()


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"labels": {"cozystack.io/gpu-class": "l40s"}},
        {"annotations": {"cozystack.io/gpu-stamp": "1.2.3"}},
        {"labels": {"cozystack.io/gpu-class": "l40s"}, "annotations": {"cozystack.io/gpu-stamp": "x"}},
    ],
)
async def test_what_we_did_not_write_is_left_alone(ground: Ground, metadata: dict[str, Any]) -> None:
    """L4, C31: without our label and stamp both, a Secret of that name is neither overwritten nor dropped."""
    await ground.put(TENANT, NAME, {"mine": VALUE}, **metadata)
    before = await ground.copy()

    verdict = await ground.writer.copy(await ground.effect())
    dropped = await ground.writer.drop(DropLicence(VmiId(TENANT, "", ""), NAME, before["metadata"]["uid"]))

    assert (verdict.kind, verdict.code, verdict.reason) == (Kind.REFUSED, 409, "NameTaken")
    assert dropped == SETTLED
    assert await ground.copy() == before


async def test_a_copy_that_was_changed_is_not_dropped(ground: Ground) -> None:
    """C31: nothing but exact copies is ever deleted, also where the decision saw an exact one."""
    await ground.writer.copy(await ground.effect())
    uid = (await ground.copy())["metadata"]["uid"]
    drop = DropLicence(VmiId(TENANT, "", ""), NAME, uid)
    changed = await ground.copy() | {"data": {TOKEN: VALUE, "mine": VALUE}}
    await ground.api.replace(SECRET, TENANT, NAME, msgspec.json.encode(changed))

    first = await ground.writer.drop(drop)
    standing = await ground.copy()
    await ground.writer.copy(await ground.effect(6))
    second = await ground.writer.drop(drop)

    assert (first, second) == (SETTLED, LANDED)
    assert standing["data"] == {TOKEN: VALUE, "mine": VALUE}
    with pytest.raises(ApiError):
        await ground.copy()


async def test_another_copy_of_that_name_is_not_dropped(ground: Ground) -> None:
    """T21: deleted by uid, so that one that was made again stays."""
    await ground.writer.copy(await ground.effect())

    assert await ground.writer.drop(DropLicence(VmiId(TENANT, "", ""), NAME, "another")) == SETTLED
    assert (await ground.copy())["data"] == {TOKEN: VALUE}


async def test_without_a_key_nothing_is_written(ground: Ground) -> None:
    """Another home holds no key yet: it is tried again, and says which Secret it lacks."""
    writer = LicenceWriter(ground.api, TENANT, lambda: "")

    verdict = await writer.copy(await ground.effect())

    assert verdict.kind is Kind.AGAIN
    with pytest.raises(ApiError):
        await ground.copy()


async def test_a_digest_needs_the_key(ground: Ground) -> None:
    """T16: under another key the same token has another digest; the key is made once and then read."""
    again = DigestKey(ground.api, HOME)
    other = DigestKey(ground.api, TENANT)
    await again.obtain()
    await other.obtain()
    raw = await ground.api.get(SECRET, HOME, "lic")
    digests = [SecretReader(key).source(raw).digest for key in (ground.key, again, other)]

    assert digests[0] == digests[1] != digests[2]

"""Licence copies in the heart: made, renewed, restored, removed, kept; each copy's trouble its own (L1-L4)."""

from msgspec.structs import replace

from schemas import decisions as d
from schemas.licences import COPIES, SOURCES, copy_name
from schemas.names import LICENCE_CONF_KEY
from schemas.objects import ClassView, NamespaceView, SecretView, Stamp
from tests.binder.licence_scene import HOME, LicenceScene

COPY = "gpu-licence-l40s-24c"


def begun() -> LicenceScene:
    """Return a scene with a class, its source, two namespaces that may use vGPUs and one that may not."""
    scene = LicenceScene()
    scene.source("T1")
    for name in ("tenant-a", "tenant-b"):
        scene.home(name)
    scene.home("tenant-c", vgpu=False)
    scene.licensed()
    return scene


def test_each_entitled_namespace_gets_a_copy() -> None:
    """One copy for each namespace with the label, named by the class, as the source is (L1)."""
    scene = begun()
    copied = [one for _, one in scene.written if isinstance(one, d.LicenceCopied)]

    scene.lands()

    assert copied == [d.LicenceCopied(n, COPY, "l40s-24c", f"{HOME}/lic", "T1") for n in ("tenant-a", "tenant-b")]
    assert scene.copies() == {f"tenant-a/{COPY}": "T1", f"tenant-b/{COPY}": "T1"}
    assert scene.tick(31) == scene.tick(31) == scene.tick(31) == ()


def test_a_source_that_changes_changes_its_copies() -> None:
    """Rotated, or without a key that it had: every copy follows (L1, C51)."""
    scene = begun()
    scene.lands()

    scene.source("T2")
    scene.lands()

    assert set(scene.copies().values()) == {"T2"}


def test_another_key_for_digests_changes_every_copy_once() -> None:
    """T16: listed under another key nothing has a new version, all has new digests: each copy is written anew, once."""
    scene = begun()
    scene.lands()
    for kind, digest in ((SOURCES, "T1 under key 2"), (COPIES, "copy under key 2")):
        for key, view in scene.objects[kind].items():
            assert isinstance(view, SecretView)
            scene.objects[kind][key] = replace(view, digest=digest, intact=kind == SOURCES)

    scene.relist(COPIES)
    scene.relist(SOURCES)
    scene.home("tenant-d")
    scene.lands()

    assert scene.copies() == {f"tenant-{x}/{COPY}": "T1 under key 2" for x in "abd"}
    assert scene.tick(31) == scene.tick(31) == scene.tick(31) == ()


def test_a_missing_source_takes_nothing_away() -> None:
    """Copies are kept, none are made, the class says so once, and that it is over (L3, C51)."""
    scene = begun()
    scene.lands()

    gone = scene.remove(SOURCES, f"{HOME}/lic")
    added = scene.home("tenant-d")
    without = scene.source("C", LICENCE_CONF_KEY)
    back = scene.source("T3")

    assert [(one.missing, one.reason) for one in (*gone, *without) if isinstance(one, d.LicenceMissing)] == [
        (True, "SecretNotFound"),
        (True, "TokenKeyMissing"),
    ]
    assert added == ()
    assert [one.missing for one in back if isinstance(one, d.LicenceMissing)] == [False]
    scene.lands()
    assert scene.copies() == {f"tenant-{x}/{COPY}": "T3" for x in "abd"}


def test_copies_go_with_label_class_and_licence() -> None:
    """L2: a namespace's when its label goes, a class's with the class or its licence; those of others stay."""
    scene = begun()
    scene.licensed("h100-40c")
    scene.lands()

    scene.home("tenant-a", vgpu=False)
    scene.lands()
    one = scene.copies()
    scene.licensed("h100-40c", source="")
    scene.lands()
    two = scene.copies()
    scene.remove("gpuclasses", "l40s-24c")
    scene.lands()

    assert sorted(one) == ["tenant-b/gpu-licence-h100-40c", f"tenant-b/{COPY}"]
    assert sorted(two) == [f"tenant-b/{COPY}"]
    assert scene.copies() == {}
    assert scene.book.state.licences == {}


def test_passthrough_needs_no_licence() -> None:
    """L1 speaks of vGPU classes alone."""
    scene = begun()
    scene.lands()

    said = scene.licensed("l40s", mode="Passthrough")

    assert [one for one in said if not isinstance(one, d.ClassGuarded)] == []


def test_a_deletion_cut_short_goes_on_after_a_restart() -> None:
    """C51: the log knows which copies were told to go and which are gone; the others are told again."""
    scene = begun()
    scene.lands()
    scene.licensed(source="")
    first, *rest = scene.written
    scene.written = [first]
    scene.lands()
    assert len(scene.copies()) == 1

    scene.restart()
    scene.written = list(rest)
    scene.lands()

    assert scene.copies() == {}


def test_a_write_that_is_never_heard_of_is_said_again() -> None:
    """A copy that nobody saw after a minute is decided anew, once a minute at most (T23)."""
    scene = begun()
    scene.written.clear()

    said = [scene.tick(20) for _ in range(9)]

    assert [len(one) for one in said] == [0, 0, 2, 0, 0, 2, 0, 0, 2]


def test_what_a_tenant_does_to_a_copy_is_undone() -> None:
    """C31: a changed copy is restored and a deleted one made again, at once; somebody who never stops is met slowly."""
    scene = begun()
    scene.lands()
    key = f"tenant-b/{COPY}"

    changed = scene.tampered(key)
    scene.lands()
    restored = scene.copies()[key]
    removed = scene.remove(COPIES, key)
    scene.lands()
    fights: list[d.Decision] = []
    for _ in range(10):
        fights += scene.tampered(key)
        scene.lands()

    assert [type(one) for one in (*changed, *removed)] == [d.LicenceCopied] * 2
    assert restored == "T1"
    assert len(fights) <= 3
    scene.calm()
    assert scene.copies()[key] == "T1"


def test_a_secret_of_the_tenants_own_is_left_alone() -> None:
    """C31, L4: the name is taken: told once, tried again later; made when the name is free, without a new source."""
    scene = LicenceScene()
    scene.source("T1")
    scene.home("tenant-a")
    scene.licensed()
    (stamp,) = [stamp for stamp, one in scene.written if isinstance(one, d.LicenceCopied)]
    scene.written.clear()

    told = scene.outcome("copy-licence", "tenant-a", COPY, stamp, 409, "NameTaken")
    quiet = [scene.tick(10) for _ in range(5)]
    again = [one for _ in range(3) for one in scene.tick(10)]
    scene.lands()

    assert [type(one) for one in told] == [d.LicenceBlocked]
    assert "a Secret of this name stands that gpubinder did not write" in told[0].message  # type: ignore[union-attr]  # just said so
    assert quiet == [()] * 5
    assert [type(one) for one in again] == [d.LicenceCopied]
    assert scene.copies() == {f"tenant-a/{COPY}": "T1"}


def test_only_what_we_wrote_is_dropped() -> None:
    """C31: a Secret with our label, under another name or with other content, is not told to go."""
    scene = LicenceScene()
    scene.home("tenant-a", vgpu=False)
    forged = SecretView("own", "", "", "tenant-a", digest="x", gpu_class="l40s-24c", intact=True, stamp=Stamp(1, 1, 0))
    scene.secret(COPIES, forged)
    scene.secret(COPIES, replace(forged, name=COPY, intact=False))

    scene.licensed()
    scene.remove("gpuclasses", "l40s-24c")

    assert [one for _, one in scene.written if isinstance(one, d.LicenceDropped)] == []


def test_a_namespace_that_goes_gets_nothing() -> None:
    """C52: nothing is written into it, nothing is deleted in it, and the others have theirs."""
    scene = begun()
    scene.lands()

    going = scene.home("tenant-a", deleting=True)
    scene.source("T2")
    scene.lands()

    assert [(type(one), one.uid) for one in going if isinstance(one, d.LicenceDropped)] == [(d.LicenceDropped, "")]
    assert scene.copies() == {f"tenant-a/{COPY}": "T1", f"tenant-b/{COPY}": "T2"}


def test_nothing_is_dropped_before_everything_is_listed() -> None:
    """T11: where classes are not listed yet, nobody's licence is taken away; placing does not wait for Secrets."""
    scene = LicenceScene(synced=False)
    copy = scene.copy("tenant-a", "l40s-24c", "T1", Stamp(1, 1, 0), "u")
    scene.objects[COPIES][copy.key] = replace(copy, rv="1")
    scene.objects["namespaces"]["tenant-a"] = NamespaceView("tenant-a", "uid-tenant-a", "1", vgpu=True)
    scene.newer(ClassView("l40s-24c", "", "", mode="VGPU", licence_secret="lic"))
    kinds = [kind for kind in scene.objects if kind != "gpuclasses"]

    early = [one for kind in kinds for one in scene.relist(kind)]
    late = scene.relist("gpuclasses")

    assert early == []
    assert [type(one) for one in late] == [d.LicenceMissing, d.ClassGuarded]
    assert not scene.book.behind


def test_licences_do_not_wait_for_what_placing_waits_for() -> None:
    """T11: while nodes are not listed yet, a missing source is told all the same, and nothing of it is forgotten."""
    scene = LicenceScene(synced=False)
    scene.newer(ClassView("l40s-24c", "", "", mode="VGPU", licence_secret="lic"))
    kinds = [kind for kind in scene.objects if kind != "nodes"]

    said = [one for kind in kinds for one in scene.relist(kind)]

    assert scene.book.behind == {"nodes": True}
    assert [type(one) for one in said] == [d.LicenceMissing]


def test_copies_without_a_log_are_known_again() -> None:
    """After an adoption: exact copies need no write, and go when they are not due any more (T4, L2)."""
    scene = LicenceScene()
    scene.source("T1")
    scene.home("tenant-a")
    scene.secret(COPIES, scene.copy("tenant-a", "l40s-24c", "T1", Stamp(1, 1, 0)))

    scene.licensed()
    kept = scene.copies()
    scene.home("tenant-a", vgpu=False)
    scene.lands()

    assert kept == {f"tenant-a/{COPY}": "T1"}
    assert scene.copies() == {}


def test_many_namespaces_go_on_with_continue() -> None:
    """T5: one input decides so many copies, and the rest follows."""
    scene = LicenceScene()
    scene.source("T1")
    scene.show(*(NamespaceView(f"t{n}", "", "", vgpu=True) for n in range(150)))

    first = scene.licensed()
    scene.settled()
    scene.lands()

    assert len(first) == 64
    assert len(scene.copies()) == 150


def test_long_class_names_stay_apart() -> None:
    """C60: the copies of classes that begin alike have names and labels of their own, short enough."""
    one, other = "c" * 200 + "-a", "c" * 200 + "-b"

    assert copy_name(one) != copy_name(other)
    assert len(copy_name(one)) <= 75

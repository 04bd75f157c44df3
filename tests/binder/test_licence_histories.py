"""Any history of classes, namespaces, sources, tampering, lost writes and restarts ends in the right copies (L1-L3)."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from binder.licences import licence_source
from binder.state import State
from schemas.licences import COPIES, SOURCES, copy_name
from schemas.names import LICENCE_CONF_KEY
from schemas.objects import SecretView
from tests.binder.licence_scene import HOME, LicenceScene
from tests.binder.test_licences import begun

ACTS = st.one_of(
    st.tuples(st.just("label"), st.sampled_from("abc"), st.booleans()),
    st.tuples(st.just("class"), st.sampled_from(["l40s-24c", "h100-40c"]), st.sampled_from(["lic", "", "other"])),
    st.tuples(st.just("source"), st.sampled_from(["lic", "other"]), st.sampled_from(["T1", "T2", "", "gone"])),
    st.tuples(st.just("tamper"), st.integers(0, 9), st.booleans()),
    st.tuples(st.just("land"), st.just(0), st.just(0)),
    st.tuples(st.just("lose"), st.just(0), st.just(0)),
    st.tuples(st.just("relist"), st.sampled_from([SOURCES, COPIES, "gpuclasses", "namespaces"]), st.booleans()),
    st.tuples(st.just("restart"), st.just(0), st.just(0)),
    st.tuples(st.just("tick"), st.integers(0, 90), st.just(0)),
)


def is_intact(scene: LicenceScene, key: str) -> bool:
    """Say whether a copy holds what we wrote."""
    view = scene.objects[COPIES][key]
    return isinstance(view, SecretView) and view.intact


@example([("land", 0, 0), ("tamper", 0, True), ("label", "a", False), ("source", "lic", "T2")])
@settings(max_examples=120, deadline=None)
@given(st.lists(ACTS, max_size=25))
def test_whatever_happens_the_copies_are_right_in_the_end(acts: list[tuple[str, object, object]]) -> None:
    """After any history, with writes lost and restarts between, exactly the due copies stand (L1-L3).

    Where a source is missing, whatever stood stays; so does what somebody changed before it was to go (C31).
    """
    scene = begun()
    for word, one, other in acts:
        _act(scene, word, one, other)
    scene.calm()

    state, standing = scene.book.state, scene.copies()
    for key, digest in standing.items():
        if key not in _due(state):
            assert not is_intact(scene, key)
            continue
        assert _due(state)[key] in {"", digest}
    assert {key for key, digest in _due(state).items() if digest} <= set(standing)


def _act(scene: LicenceScene, word: str, one: object, other: object) -> None:
    match word:
        case "label":
            scene.home(f"tenant-{one}", vgpu=bool(other))
        case "class":
            scene.licensed(str(one), source=str(other))
        case "source":
            if other == "gone":
                if f"{HOME}/{one}" in scene.objects[SOURCES]:
                    scene.remove(SOURCES, f"{HOME}/{one}")
            else:
                scene.source(str(other) or "C", *(() if other else (LICENCE_CONF_KEY,)), name=str(one))
        case "tamper":
            found = sorted(scene.copies())
            if found and isinstance(one, int):
                key = found[one % len(found)]
                _ = scene.tampered(key) if other and key in _due(scene.book.state) else scene.remove(COPIES, key)
        case "land":
            scene.lands()
        case "lose":
            scene.written.clear()
        case "relist":
            scene.relist(str(one))
        case "restart":
            scene.restart()
        case _:
            scene.tick(one if isinstance(one, int) else 0)


def _due(state: State) -> dict[str, str]:
    """Return the copies that may stand, by key, with the digest that they must have, '' where the source is missing."""
    due = {}
    for name, view in state.objects["gpuclasses"].items():
        secret = getattr(view, "licence_secret", "")
        source = licence_source(state, secret) if secret else None
        has_token = source is not None and "client_configuration_token.tok" in source.keys
        for namespace, home in state.objects["namespaces"].items():
            if secret and getattr(home, "vgpu", False):
                due[f"{namespace}/{copy_name(name)}"] = source.digest if source is not None and has_token else ""
    return due

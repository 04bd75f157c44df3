"""What is recorded beside stories: answers to admission, and licences, which no story tells of."""

from collections.abc import Callable

from schemas import decisions as d
from schemas.names import LICENCE_CONF_KEY
from schemas.objects import VmView
from tests.binder.admission import vmi
from tests.binder.licence_scene import LicenceScene
from tests.binder.scene import Scene
from tests.binder.test_declaring import write


def admission() -> Scene:
    """A VMI that passes, one that is refused, a message that can't be read, and a VM that is written."""
    scene = Scene()
    scene.send(vmi())
    scene.send(vmi(gpus='[{"className":"none","count":1}]', missing=("none",)))
    scene.send_bytes(b'{"type": "tick", "unreadable')
    scene.send(write(VmView("vm", "u", "", "tenant-a", gpus='[{"className":"l40s","count":1}]')))
    return scene


def licences() -> Scene:
    """Copies that are made, changed, blocked and dropped, and a source that loses its token."""
    scene = LicenceScene()
    scene.book.state.generation = 1
    scene.source("T1")
    for namespace in ("tenant-a", "tenant-b"):
        scene.home(namespace)
    scene.licensed()
    stamp, copied = next((stamp, one) for stamp, one in scene.written if isinstance(one, d.LicenceCopied))
    scene.outcome("copy-licence", copied.namespace, copied.name, stamp, 409, "NameTaken")
    scene.lands()
    scene.tick(31)
    scene.lands()
    scene.source("T2", LICENCE_CONF_KEY)
    scene.lands()
    scene.source("T3")
    scene.lands()
    scene.home("tenant-b", vgpu=False)
    scene.lands()
    return scene


SCENES: dict[str, Callable[[], Scene]] = {"admission": admission, "licences": licences}

"""Times each input of a scene, and nothing of what the scene does around it."""

import time

from binder.step import step
from tests.binder.scene import Decisions, Scene


class Timed:
    """From now on a scene's inputs are timed: `seconds` of each, `told`: what each decided."""

    def __init__(self, scene: Scene) -> None:
        self.seconds: list[float] = []
        self.told: list[Decisions] = []
        self._scene = scene
        scene.send_bytes = self._send  # type: ignore[method-assign]  # a scene that is timed says so nowhere else

    def _send(self, body: bytes) -> Decisions:
        scene = self._scene
        scene.sequence += 1
        began = time.perf_counter()
        decided = step(scene.book, scene.sequence, scene.stamp_ns, body)
        self.seconds.append(time.perf_counter() - began)
        self.told.append(decided)
        return decided

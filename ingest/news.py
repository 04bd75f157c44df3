"""What the events of a watch have to say: views that were not shown yet, deletions, or nothing new."""

from collections.abc import Iterable
from typing import Final

import structlog

from binder.kube import WatchEvent
from ingest.changes import Shown
from ingest.sources import Source, Unreadable
from schemas.objects import AnyView, Gone

_DELETED: Final = "DELETED"

log = structlog.get_logger()


class News:
    """What is news of one kind. `unreadable`, `dropped`: objects that can't be read, changes that no view shows."""

    def __init__(self) -> None:
        self.shown = Shown()
        self.unreadable = 0
        self.dropped = 0

    def of(self, source: Source, event: WatchEvent) -> tuple[AnyView | Gone | None, str]:
        """Return what of an event must be published, and the version it carries ('' if that can't be read)."""
        try:
            read = source.gone if event.type == _DELETED else source.view
            seen = read(event.object)
        except Unreadable as error:
            self.unreadable += 1
            remedy = "correct that field of the object; until then it counts as it was last known"
            log.warning("an object can't be read", object=str(error), remedy=remedy)
            return self.shown.keep(error.identity), error.identity.resource_version
        return self.shown.take(seen), seen.rv

    def changes(self, found: Iterable[AnyView | Gone | None]) -> list[AnyView | Gone]:
        """Return what there is to publish; nothing new is counted."""
        items = list(found)
        news = [item for item in items if item is not None]
        self.dropped += len(items) - len(news)
        return news

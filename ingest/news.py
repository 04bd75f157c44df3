"""What an event of a watch has to say: a view that was not shown yet, a deletion, or nothing new."""

from typing import Final

import structlog

from binder.kube import WatchEvent
from ingest.changes import Shown
from ingest.sources import Source, Unreadable
from schemas.objects import AnyView, Gone

_DELETED: Final = "DELETED"

log = structlog.get_logger()


def news_of(source: Source, shown: Shown, event: WatchEvent) -> tuple[AnyView | Gone | None, str]:
    """Return what of an event must be published, and the version it carries ('' if that can't be read)."""
    try:
        read = source.gone if event.type == _DELETED else source.view
        seen = read(event.object)
    except Unreadable as error:
        remedy = "correct that field of the object; until then it counts as it was last known"
        log.warning("an object can't be read", object=str(error), remedy=remedy)
        return shown.keep(error.identity), error.identity.resource_version
    return shown.take(seen), seen.rv

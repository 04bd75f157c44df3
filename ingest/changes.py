"""What of a kind's watch is news: the last published view per object, and what differs from it.

Pure, and of this process alone: a new session begins with an empty list that must name everything
again, because the fold takes what a complete list leaves out for gone (T11).
"""

from msgspec.structs import replace

from ingest.metadata import Identity
from schemas.objects import AnyView, Gone


class Shown:
    """The views that were published for one kind."""

    def __init__(self) -> None:
        self._views: dict[str, AnyView] = {}
        self._before: dict[str, AnyView] = {}

    def __len__(self) -> int:
        return len(self._views)

    def relist(self) -> None:
        """Begin a new list: everything is news again; what was known stays at hand for what can't be read."""
        self._before |= self._views
        self._views = {}

    def listed(self) -> None:
        """End the list: what it did not name is forgotten."""
        self._before = {}

    def take(self, seen: AnyView | Gone) -> AnyView | Gone | None:
        """Return what of an observation must be published; None where no published view would change.

        `Gone` stands for a deletion and for an object that does not matter (any more) alike.
        """
        if isinstance(seen, Gone):
            self._before.pop(seen.key, None)
            return seen if self._views.pop(seen.key, None) is not None else None
        known = self._views.get(seen.key)
        self._views[seen.key] = seen
        if known is not None and replace(known, rv=seen.rv) == seen:
            return None
        return seen

    def keep(self, identity: Identity) -> AnyView | Gone | None:
        """Return what must be published for an object that can't be read, so that it stays as it was last known.

        In a list that is its last known view, else nothing. An object of another uid under the same
        name proves the known one gone.
        """
        known = self._views.get(identity.key)
        if known is not None:
            if identity.uid in {"", known.uid}:
                return None
            return self.take(Gone(known.name, known.uid, identity.resource_version or known.rv, known.namespace))
        before = self._before.get(identity.key)
        if before is not None and identity.uid in {"", before.uid}:
            return self.take(before)
        return None

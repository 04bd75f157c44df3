"""Budgets that mirror tenants' HelmReleases: in each tenant's namespace one, while its release has GPU quotas (B1).

The binder goes by the release itself; the mirror shows people what it goes by, keeps it where Flux is not served
any more, and says what was last known of quotas that can't be read. Whoever edits one is overruled.
"""

from collections.abc import Awaitable

import msgspec
import structlog
from typing_extensions import override

from binder.book import Book
from binder.budgets import hard_of
from binder.kube import ApiError, Kube, PatchKind
from binder.state import is_current
from binder.usage import Amounts
from projector.paced import Paced
from projector.reads import read
from projector.verdicts import is_namespace_terminating
from schemas import names
from schemas.budgets import BudgetSpec
from schemas.kinds import GPU_BUDGET, HELM_RELEASE
from schemas.objects import BudgetView, Stamp, TenantView
from schemas.stamping import read_stamp, stamp_text
from schemas.writes import NewBudget, NewMetadata, SeenBudget

_encode = msgspec.json.Encoder().encode

log = structlog.get_logger()


class TenantBudgets(Paced):
    """Keeps the mirrors true. `changed()` after each step; `run(book)` beside them."""

    def __init__(self, kube: Kube) -> None:
        super().__init__()
        self._kube = kube
        self._complained: dict[str, tuple[str, ...]] = {}

    @override
    async def write(self, book: Book) -> None:
        """Write every mirror that is not as its release says, and delete those whose release has no GPU quotas."""
        state = book.state
        stamp = Stamp(state.generation, state.events_seq, 0)
        wanted: dict[str, Amounts] = {}
        for _, view in sorted(state.objects["helmreleases"].items()):
            if isinstance(view, TenantView):
                self._complain(view)
                if view.hard or view.unread or view.opaque:
                    wanted[view.tenant] = hard_of(state, view.tenant, names.MIRRORED_BUDGET)
        for tenant, hard in wanted.items():
            namespace, mirror = state.namespace(tenant), state.budget(f"{tenant}/{names.MIRRORED_BUDGET}")
            is_so = mirror is not None and mirror.mirrors is not None and mirror.hard == hard
            if namespace is not None and not namespace.deleting and not is_so:
                await self._tried(tenant, self._write_one(tenant, hard, stamp))
        session = state.sessions.get(HELM_RELEASE.plural)
        if session is None or not session.served or not is_current(state, HELM_RELEASE.plural):
            # What is not served is kept as it was known, and its mirrors with it (D12).
            return
        for view in list(state.objects["gpubudgets"].values()):
            if isinstance(view, BudgetView) and _is_left_over(view, wanted):
                await self._tried(view.namespace, self._drop(view, stamp))

    def _complain(self, view: TenantView) -> None:
        """Say once per change which quotas can't be read; the values stay where they are (T16)."""
        unread = ("all",) if view.opaque else view.unread
        if unread and self._complained.get(view.key) != unread:
            remedy = "write whole numbers of units; until then they count as last known, and as 0 where nothing was"
            log.warning("quotas.unreadable", release=view.key, tenant=view.tenant, keys=unread, remedy=remedy)
        if unread:
            self._complained[view.key] = unread
        else:
            self._complained.pop(view.key, None)

    async def _tried(self, tenant: str, write: Awaitable[None]) -> None:
        """Do a write that may fail: it is looked at again, at once where another try may go better."""
        try:
            await write
        except ApiError as error:
            log.info("mirror.not-written", tenant=tenant, code=error.code, reason=error.reason)
            if error.code != 404 and not is_namespace_terminating(error):
                self._news.set()

    async def _write_one(self, tenant: str, hard: Amounts, stamp: Stamp) -> None:
        name, annotations = names.MIRRORED_BUDGET, {names.STAMP_ANNOTATION: stamp_text(stamp)}
        labels = {names.MANAGED_BY_LABEL: names.FIELD_MANAGER}
        found = await read(self._kube, GPU_BUDGET, tenant, name, SeenBudget)
        if found is None:
            metadata = NewMetadata(name, tenant, labels, annotations=annotations)
            await self._kube.create(GPU_BUDGET, tenant, _encode(NewBudget(metadata, BudgetSpec(hard))))
            return
        shown = _stamp_of(found)
        if shown is not None and (shown > stamp or found.spec.hard == hard):
            # A newer projector was here, or it is as it must be and we have not heard of it yet.
            return
        # A merge keeps the keys that are not named: those that went are named as null.
        units: dict[str, int | None] = {**dict.fromkeys(found.spec.hard), **hard}
        version = found.metadata.resource_version
        patch = {
            "metadata": {"resourceVersion": version, "labels": labels, "annotations": annotations},
            "spec": {"hard": units},
        }
        await self._kube.patch(GPU_BUDGET, tenant, name, _encode(patch), kind=PatchKind.MERGE)

    async def _drop(self, view: BudgetView, stamp: Stamp) -> None:
        """Delete a mirror by uid and version, after a fresh look that it still is one."""
        found = await read(self._kube, GPU_BUDGET, view.namespace, view.name, SeenBudget)
        shown = _stamp_of(found) if found is not None else None
        if found is None or found.metadata.uid != view.uid or shown is None or shown > stamp:
            return
        version = found.metadata.resource_version
        await self._kube.delete(GPU_BUDGET, view.namespace, view.name, uid=view.uid, resource_version=version)


def _stamp_of(found: SeenBudget) -> Stamp | None:
    """Return which place in the log a mirror shows, None for a budget that is no mirror."""
    return read_stamp(found.metadata.annotations.get(names.STAMP_ANNOTATION, ""))


def _is_left_over(view: BudgetView, wanted: dict[str, Amounts]) -> bool:
    is_mirror = view.name == names.MIRRORED_BUDGET and view.mirrors is not None
    return is_mirror and not view.deleting and view.namespace not in wanted

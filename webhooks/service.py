"""The front desk itself: a review in, an answer out, always; over HTTPS or called in the same process.

Nothing is written but the answer's patch (A11): a VMI create, its start under Refuse and a launcher create become
requests on the stream, with the evidence read for them, and pass when the binder's answer is durable. Whatever goes
wrong on the way is a refusal that says so: starts with GPUs fail closed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus

import msgspec
import structlog

from binder.journal import Journal
from binder.kube import Kube
from schemas.admission import CREATE
from schemas.answers import Answer
from schemas.decisions import PodAdmitted, SetBooked, VmiAdmitted
from schemas.kinds import POD, VMI, Resource
from schemas.streams import DECISIONS
from webhooks import pod as pods
from webhooks import starts, told
from webhooks import vmi as vmis
from webhooks.answers import Answers
from webhooks.asks import Asks, DryRuns, Request
from webhooks.budget_desk import BudgetDesk
from webhooks.evidence import FreshReads, Readers, named_in
from webhooks.limits import LIMITED, NamespaceLimit
from webhooks.metrics import Metrics
from webhooks.reviews import MalformedReview, Review, TurnedAway, allow, read_review, refers_to_gpus, refuse
from webhooks.verdicts import Verdict, refused, unchecked, untouched

HOME = "gpubinder"
NAMESPACE_MAX = 63
NAME_MAX = 253

ANSWERED = frozenset({"admitted", "booked", "refused"})
"""Verdicts that a rule gave, each logged; what nobody asked a rule for is most of what comes, and only counted."""

_log = structlog.get_logger()


class Patience(msgspec.Struct, frozen=True):
    """How long, in seconds, and how much at once. `answer_s` stays below the webhooks' own timeout of 10 s.

    `unchecked_s`: after this a write passes unchecked, below the 5 s of its own webhooks.
    """

    answer_s: float = 8.0
    evidence_s: float = 3.0
    probe_s: float = 1.0
    unchecked_s: float = 3.0
    at_once: int = 64
    waiting: int = 512


class Health(msgspec.Struct, frozen=True):
    """Whether NATS can be asked, and whether the binder's answers flow: '' is well, else the trouble."""

    nats: str = ""
    binder: str = ""


class Webhooks:
    """Answers reviews of VMIs, their starts and launcher pods. `run` must be running, or nothing is ever answered."""

    def __init__(
        self,
        kube: Kube,
        journal: Journal,
        dry_runs: DryRuns,
        readers: Readers,
        *,
        patience: Patience | None = None,
        metrics: Metrics | None = None,
        home: str = HOME,
    ) -> None:
        self._patience = patience or Patience()
        self._journal = journal
        self._answers = Answers(journal)
        self.metrics = metrics or Metrics()
        self._asks = Asks(journal, self._answers, dry_runs, took=self.metrics.stage("decision"))
        self._fresh = FreshReads(
            kube, readers, timeout_s=self._patience.evidence_s, took=self.metrics.stage("evidence")
        )
        self._limit = NamespaceLimit(at_once=self._patience.at_once, waiting=self._patience.waiting)
        # Starts may be held for seconds: what is written beside them stands in a line of its own.
        writes = NamespaceLimit(at_once=self._patience.at_once, waiting=self._patience.waiting)
        self._budgets = BudgetDesk(self._fresh, writes, self._answer, home)

    async def run(self) -> None:
        """Follow the binder's answers for ever. Raises `UnreadableLog` where this version is too old for them."""
        await self._answers.follow()

    @property
    def position(self) -> int:
        """The last DECISIONS message that was read."""
        return self._answers.position

    async def review_vmi(self, body: bytes) -> bytes:
        """Answer an AdmissionReview of a VMI with an AdmissionReview; raises nothing."""
        return (await self.vmi_verdict(body)).body

    async def review_pod(self, body: bytes) -> bytes:
        """Answer an AdmissionReview of a pod with an AdmissionReview; raises nothing."""
        return (await self.pod_verdict(body)).body

    async def vmi_verdict(self, body: bytes) -> Verdict:
        """Answer a review of a VMI; what can't be read as one is answered too."""
        return await self._verdict("vmis", body, self._vmi)

    async def pod_verdict(self, body: bytes) -> Verdict:
        """Answer a review of a pod; what can't be read as one is answered too."""
        return await self._verdict("pods", body, self._pod)

    async def review_start(self, body: bytes) -> bytes:
        """Answer an AdmissionReview of a VMI that is about to be stored; raises nothing."""
        return (await self.start_verdict(body)).body

    async def start_verdict(self, body: bytes) -> Verdict:
        """Answer a review of a VMI that is about to be stored; what can't be read as one is answered too."""
        return await self._verdict("starts", body, self._start)

    async def write_verdict(self, body: bytes) -> Verdict:
        """Answer a review of a write that declares units: what can't be checked passes, with a warning (T20).

        One too many of its namespace is refused while answers flow (T13).
        """
        return await self._verdict("writes", body, self._budgets.write, self._patience.unchecked_s, open_=True)

    async def order_verdict(self, body: bytes) -> Verdict:
        """Answer a review of an order."""
        return await self._verdict("orders", body, self._budgets.order)

    async def health(self) -> Health:
        """Ask NATS, and say whether the last request that waited for the binder was answered."""
        try:
            async with asyncio.timeout(self._patience.probe_s):
                await self._journal.info(DECISIONS)
        except TimeoutError:
            nats = "no answer"
        except Exception as error:  # noqa: BLE001 - a probe reports trouble, whatever it is
            nats = type(error).__name__
        else:
            nats = ""
        return Health(nats, self._asks.trouble)

    async def _verdict(
        self,
        webhook: str,
        body: bytes,
        answer: Callable[[Review, float], Awaitable[Verdict]],
        patience_s: float | None = None,
        *,
        open_: bool = False,
    ) -> Verdict:
        loop = asyncio.get_running_loop()
        began, uid, about = loop.time(), "", ""
        told.begin(webhook)
        try:
            review = read_review(body)
            uid, about = review.uid, f"{review.namespace}/{review.name}"
            with self.metrics.inside(webhook):
                verdict = await answer(review, began + (patience_s or self._patience.answer_s))
        except TurnedAway as no:
            uid = no.uid if isinstance(no, MalformedReview) and not uid else uid
            verdict = Verdict(no.verdict, refuse(uid, no.code, no.reason, no.message), readable=bool(uid))
            # A flood is no outage: else it would be a tenant's way past its budget.
            if open_ and uid and (no.verdict != LIMITED or self._asks.trouble):
                verdict = unchecked(uid, no.message)
            _log.info("admission.turned-away", uid=uid, about=about, reason=no.reason, why=no.message)
        except Exception:  # noqa: BLE001 - a bug must refuse one start, not hang the API server
            _log.exception("admission.failed", uid=uid, about=about)
            message = "the admission of this start failed inside the webhook; its log says more"
            verdict = Verdict("failed", refuse(uid, HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", message))
            if open_ and uid:
                verdict = unchecked(uid, message)
        seconds = loop.time() - began
        self.metrics.count(webhook, verdict.word, seconds)
        if verdict.word in ANSWERED:
            _log.info("admission.answered", verdict=verdict.word, seconds=round(seconds, 4))
        return verdict

    async def _vmi(self, review: Review, deadline: float) -> Verdict:
        if not _concerns(review, VMI):
            return untouched(review)
        vmi = vmis.read_vmi(review.object)
        if not refers_to_gpus(vmi.metadata):
            return untouched(review)
        async with self._limit.turn(review.namespace, deadline):
            named, others = named_in(vmis.gpus_text(vmi.metadata)), vmis.other_resources(vmi)
            evidence = await self._fresh.read(review.namespace, named, others, deadline)
            answer = await self._answer(review, vmis.request_of(review, vmi, evidence), deadline)
        if isinstance(answer, VmiAdmitted):
            patch, warnings = vmis.patch_of(vmi, answer), vmis.warnings_of(vmi, answer)
            return Verdict("admitted", allow(review.uid, patch, warnings))
        return refused(review, answer)

    async def _start(self, review: Review, deadline: float) -> Verdict:
        if not _concerns(review, VMI):
            return untouched(review)
        vmi = vmis.read_vmi(review.object)
        if not refers_to_gpus(vmi.metadata) or not starts.is_booked_at_admission(vmi):
            return untouched(review)
        async with self._limit.turn(review.namespace, deadline):
            named, others = named_in(vmis.gpus_text(vmi.metadata)), vmis.other_resources(vmi)
            evidence = await self._fresh.read(review.namespace, named, others, deadline)
            launcher = self._fresh.foreseen(review.object)
            answer = await self._answer(review, starts.request_of(review, vmi, evidence, launcher), deadline)
        return Verdict("booked", allow(review.uid)) if isinstance(answer, SetBooked) else refused(review, answer)

    async def _pod(self, review: Review, deadline: float) -> Verdict:
        if not _concerns(review, POD):
            return untouched(review)
        pod = pods.read_pod(review.object)
        if not pods.is_launcher(pod) or not refers_to_gpus(pod.metadata):
            return untouched(review)
        async with self._limit.turn(review.namespace, deadline):
            named = named_in(vmis.gpus_text(pod.metadata))
            # What the namespace may have was asked of its VMI.
            evidence = await self._fresh.read(review.namespace, named, (), deadline, entitled=False)
            answer = await self._answer(review, pods.request_of(review, pod, evidence), deadline)
        if isinstance(answer, PodAdmitted):
            return Verdict("admitted", allow(review.uid, pods.patch_of(pod, answer)))
        return refused(review, answer)

    async def _answer(self, review: Review, request: Request, deadline: float) -> Answer:
        told.asked(request)
        return await (self._asks.ask_dry if review.dry_run else self._asks.ask)(request, deadline)


def _concerns(review: Review, resource: Resource) -> bool:
    """Say whether the review is a create of this kind. Raises `MalformedReview` for what we were never to be sent."""
    if (review.kind.group, review.kind.kind) != (resource.group, resource.kind):
        asked = f"{review.kind.group}/{review.kind.kind}"[:NAME_MAX]
        raise MalformedReview(f"{asked} was sent to the webhook for {resource.kind}: correct its configuration")
    if review.operation != CREATE or review.sub_resource:
        return False
    if not 0 < len(review.namespace) <= NAMESPACE_MAX or len(review.name) > NAME_MAX:
        raise MalformedReview("request.namespace must be 1 to 63 characters, request.name at most 253")
    return True

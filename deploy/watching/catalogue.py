"""Every metric of the program: its name, labels, meaning and who serves it; the page of metrics is drawn from here.

A label's values come from a closed list, or are named by operators (classes, kinds of objects, streams). No VM, no
namespace and no node is ever a label, but for the budgets that an operator asks for (`--budget-metrics`).
"""

from collections.abc import Iterable
from enum import StrEnum

import msgspec
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily


class Kind(StrEnum):
    """What a series is to Prometheus."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class By(StrEnum):
    """Which process serves a metric."""

    ALL = "every process"
    STREAMS = "every process but accounting alone"
    FOLLOWER = "binder"
    LEADER = "the leading binder"
    PROJECTOR = "the leading projector"
    WEBHOOKS = "webhooks"
    INGEST = "ingest"


class Listed(msgspec.Struct, frozen=True):
    """One metric. `name` is as queries spell it but for what histograms add; `values` says what labels may hold."""

    name: str
    kind: Kind
    by: By
    text: str
    labels: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """Return the name as the client library wants it: it adds `_total` to counters by itself."""
        return self.name.removesuffix("_total")


SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets that time is counted in."""

_G, _C, _H = Kind.GAUGE, Kind.COUNTER, Kind.HISTOGRAM

METRICS = (
    # The process
    Listed("gpubinder_build_info", _G, By.ALL, "1; the program's and the rules' version.", ("version", "rules")),
    Listed("gpubinder_leading", _G, By.ALL, "1 where this process holds the role's lease.", ("role",)),
    Listed("gpubinder_role_restarts_total", _C, By.ALL, "Times a role failed and was started again.", ("role",)),
    Listed("gpubinder_stopped", _G, By.ALL, "1 while a process tells why it can't go on, before it ends.", ("why",)),
    Listed("gpubinder_nats_connected", _G, By.ALL, "1 while there is a connection to NATS."),
    Listed(
        "gpubinder_appends_total", _C, By.ALL, "Messages sent to a stream, by how that ended.", ("stream", "outcome")
    ),
    Listed("gpubinder_append_seconds", _H, By.ALL, "Time until a stream had stored a message.", ("stream",)),
    Listed("gpubinder_append_waiting_seconds", _G, By.ALL, "For how long the oldest message waits to be stored."),
    Listed(
        "gpubinder_api_requests_total",
        _C,
        By.ALL,
        "Answers of the API server but watches; code 0: none.",
        ("verb", "code"),
    ),
    Listed("gpubinder_api_seconds", _H, By.ALL, "Time to an answer of the API server.", ("verb",)),
    # The streams
    Listed("gpubinder_stream_last_sequence", _G, By.STREAMS, "Newest message of a stream.", ("stream",)),
    Listed("gpubinder_stream_bytes", _G, By.STREAMS, "Bytes that a stream holds.", ("stream",)),
    Listed(
        "gpubinder_stream_max_bytes", _G, By.STREAMS, "Bytes it may hold; none where that has no limit.", ("stream",)
    ),
    Listed("gpubinder_lag_messages", _G, By.STREAMS, "Messages that a stage has still to read.", ("stage",)),
    Listed("gpubinder_lag_seconds", _G, By.STREAMS, "Age of the oldest message a stage has still to read.", ("stage",)),
    # The log
    Listed("gpubinder_log_info", _G, By.FOLLOWER, "1; which log this is.", ("log_id",)),
    Listed("gpubinder_log_generation", _G, By.FOLLOWER, "The log's generation; adopting a cluster begins one."),
    Listed(
        "gpubinder_log_sequence", _G, By.FOLLOWER, "Last DECISIONS message that was followed and proved by the chain."
    ),
    Listed("gpubinder_log_epoch", _G, By.FOLLOWER, "The newest epoch: each leader begins one."),
    Listed("gpubinder_inputs_folded", _G, By.FOLLOWER, "Last EVENTS message that was folded."),
    Listed("gpubinder_inputs_voided", _G, By.FOLLOWER, "Inputs that operators had skipped for good."),
    Listed("gpubinder_logical_seconds", _G, By.FOLLOWER, "Logical time, by which waits and graces are measured."),
    Listed("gpubinder_logical_gap_seconds", _G, By.FOLLOWER, "Time that did not count, as nothing was decided in it."),
    Listed("gpubinder_snapshot_age_seconds", _G, By.FOLLOWER, "Age of the newest snapshot."),
    Listed(
        "gpubinder_snapshot_behind", _G, By.FOLLOWER, "Inputs that a restart has to fold: those behind the snapshot."
    ),
    Listed(
        "gpubinder_kind_current",
        _G,
        By.FOLLOWER,
        "1 where all of a kind is known, or that it is not served.",
        ("kind",),
    ),
    Listed(
        "gpubinder_kind_silent_seconds", _G, By.FOLLOWER, "For how long a kind's watch showed no progress.", ("kind",)
    ),
    # What is decided
    Listed("gpubinder_inputs_total", _C, By.LEADER, "Inputs decided on.", ("kind",)),
    Listed("gpubinder_decisions_total", _C, By.LEADER, "Decisions made.", ("kind", "reason")),
    Listed("gpubinder_frames_total", _C, By.LEADER, "Frames written."),
    Listed("gpubinder_decide_seconds", _H, By.LEADER, "Time to fold and decide the inputs of one frame."),
    Listed("gpubinder_frame_append_seconds", _H, By.LEADER, "Time until a frame was durable, all tries together."),
    Listed("gpubinder_paused", _G, By.FOLLOWER, "1 while placing is paused, by command or by the settings."),
    Listed("gpubinder_sets", _G, By.FOLLOWER, "GPU sets of VMs, by where they stand: placed, waiting.", ("standing",)),
    Listed("gpubinder_waiting_sets", _G, By.FOLLOWER, "Sets that wait, by reason and for how long.", ("reason", "age")),
    Listed("gpubinder_waiting_oldest_seconds", _G, By.FOLLOWER, "How long the oldest of them waits.", ("reason",)),
    Listed(
        "gpubinder_held_claims", _G, By.PROJECTOR, "Ordered claims, by where they stand: all, waiting.", ("standing",)
    ),
    Listed(
        "gpubinder_class_units", _G, By.PROJECTOR, "Units of a class: allocatable, held, free.", ("gpu_class", "amount")
    ),
    Listed("gpubinder_budget_keys", _G, By.PROJECTOR, "Keys of budgets, by how much of them is used.", ("used",)),
    Listed(
        "gpubinder_budget_units",
        _G,
        By.PROJECTOR,
        "Units of a budget, with `--budget-metrics` alone: used, hard.",
        ("namespace", "budget", "key", "amount"),
    ),
    # What is written to the cluster
    Listed("gpubinder_writes_total", _C, By.PROJECTOR, "Decisions written, by how that ended.", ("action", "verdict")),
    Listed("gpubinder_writes_open", _G, By.PROJECTOR, "Decisions that are not written yet."),
    Listed("gpubinder_writes_again", _G, By.PROJECTOR, "Those of them that were refused and are tried again, slowly."),
    Listed("gpubinder_deletions_waiting", _G, By.INGEST, "Deletions that wait while NATS is away.", ("kind",)),
    # Admission
    Listed("gpubinder_admission_reviews_total", _C, By.WEBHOOKS, "Admission reviews answered.", ("webhook", "verdict")),
    Listed("gpubinder_admission_seconds", _H, By.WEBHOOKS, "Time from a review to its answer.", ("webhook",)),
    Listed(
        "gpubinder_admission_stage_seconds",
        _H,
        By.WEBHOOKS,
        "Time of one stage of answering: evidence is read from the API server, decision is stream and binder.",
        ("stage",),
    ),
    Listed(
        "gpubinder_admission_reviews_inside",
        _G,
        By.WEBHOOKS,
        "Admission reviews that are being answered.",
        ("webhook",),
    ),
    Listed("gpubinder_certificate_expiry_seconds", _G, By.WEBHOOKS, "When the serving certificate ends, in Unix time."),
)
"""All of them, in the order of the page."""

LISTED = {one.name: one for one in METRICS}


def gauge(name: str, samples: Iterable[tuple[tuple[str, ...], float]]) -> GaugeMetricFamily:
    """Return a gauge with its samples (label values, value)."""
    one = LISTED[name]
    family = GaugeMetricFamily(one.family, one.text, labels=one.labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def single(name: str, value: float) -> GaugeMetricFamily:
    """Return a gauge without labels."""
    return gauge(name, [((), value)])


def counted(name: str, samples: Iterable[tuple[tuple[str, ...], float]]) -> CounterMetricFamily:
    """Return a counter whose sums are kept elsewhere, with its samples."""
    one = LISTED[name]
    family = CounterMetricFamily(one.family, one.text, labels=one.labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def counter(registry: CollectorRegistry, name: str) -> Counter:
    """Return a counter that is incremented."""
    one = LISTED[name]
    return Counter(one.family, one.text, one.labels, registry=registry)


def histogram(registry: CollectorRegistry, name: str) -> Histogram:
    """Return a histogram of seconds."""
    one = LISTED[name]
    return Histogram(one.family, one.text, one.labels, buckets=SECONDS, registry=registry)

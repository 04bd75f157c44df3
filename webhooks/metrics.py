"""Counts and times of the front desk, per webhook and verdict, in a registry of their own."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

BUCKETS_S = (
    *(0.001, 0.002, 0.003, 0.004, 0.005, 0.0065, 0.008, 0.01, 0.0125, 0.015, 0.02, 0.025, 0.03, 0.04),
    *(0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 3.0, 5.0, 8.0, 10.0),
)
"""Close together where an answer should lie, so that a 99th percentile can be read off them."""


class Metrics:
    """Verdicts: admitted, refused, untouched, unanswered, limited, malformed, failed. `registry` may hold others."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self._answered = Counter(
            "gpubinder_admission_reviews",
            "Admission reviews answered.",
            ("webhook", "verdict"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "gpubinder_admission_seconds",
            "Time from a review to its answer.",
            ("webhook",),
            buckets=BUCKETS_S,
            registry=self.registry,
        )
        self._stages = Histogram(
            "gpubinder_admission_stage_seconds",
            "Time of one stage of answering: evidence is read from the API server, decision is stream and binder.",
            ("stage",),
            buckets=BUCKETS_S,
            registry=self.registry,
        )

        self._inside = Gauge(
            "gpubinder_admission_reviews_inside",
            "Admission reviews that are being answered.",
            ("webhook",),
            registry=self.registry,
        )

    def inside(self, webhook: str) -> AbstractContextManager[None]:
        """Count a review as being answered for the length of a block."""
        return self._inside.labels(webhook).track_inprogress()

    def stage(self, name: str) -> Callable[[float], None]:
        """Return how to note the seconds of a stage."""
        return self._stages.labels(name).observe

    def count(self, webhook: str, verdict: str, seconds: float) -> None:
        """Note one answered review."""
        self._answered.labels(webhook, verdict).inc()
        self._seconds.labels(webhook).observe(seconds)

    def text(self) -> bytes:
        """Return all metrics of the registry as Prometheus reads them."""
        return generate_latest(self.registry)

"""Counts and times of the front desk, per webhook and verdict, in a registry of their own."""

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

BUCKETS_S = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


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

    def count(self, webhook: str, verdict: str, seconds: float) -> None:
        """Note one answered review."""
        self._answered.labels(webhook, verdict).inc()
        self._seconds.labels(webhook).observe(seconds)

    def text(self) -> bytes:
        """Return all metrics of the registry as Prometheus reads them."""
        return generate_latest(self.registry)

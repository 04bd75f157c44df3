"""Reading what a process tells at `/metrics`, as Prometheus does."""

from collections.abc import Iterable, Mapping

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families


class Sample(msgspec.Struct, frozen=True):
    """One series with its value."""

    name: str
    labels: Mapping[str, str]
    value: float

    def series(self) -> str:
        """Return the series as queries write it."""
        labels = ",".join(f"{name}={msgspec.json.encode(value).decode()}" for name, value in self.labels.items())
        return f"{self.name}{{{labels}}}"


class Scrape:
    """One answer of `/metrics`."""

    def __init__(self, text: str) -> None:
        self.families = {one.name: one for one in text_string_to_metric_families(text)}
        self.samples = tuple(
            Sample(one.name, one.labels, one.value) for family in self.families.values() for one in family.samples
        )

    @classmethod
    def of(cls, registry: CollectorRegistry) -> "Scrape":
        """Scrape a registry."""
        return cls(generate_latest(registry).decode())

    def all(self, name: str, **labels: str) -> list[Sample]:
        """Return the series of that name that have these labels."""
        return [one for one in self.samples if one.name == name and labels.items() <= one.labels.items()]

    def value(self, name: str, **labels: str) -> float:
        """Return the sum over these series; the test fails where there is none."""
        found = self.all(name, **labels)
        assert found, f"no series {name} with {labels}"
        return sum(one.value for one in found)

    def names(self) -> Iterable[str]:
        """Return the names that queries use."""
        return {one.name for one in self.samples}

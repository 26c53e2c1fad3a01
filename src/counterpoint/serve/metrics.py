"""Counts and times for Prometheus."""

from __future__ import annotations

from typing import final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

__all__ = ["Metrics"]

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


@final
class Metrics:
    """The metrics of one server, in a registry of its own.

    Attributes:
        documents: how many documents an index has.
        encoded: how many queries were encoded together.
        busy: how many searches run or wait.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "counterpoint_requests", "Requests", ("method", "route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "counterpoint_request_seconds",
            "Time to answer",
            ("route",),
            buckets=SECONDS,
            registry=self._registry,
        )
        self.documents = Gauge(
            "counterpoint_documents", "Documents that can be found", ("index",), registry=self._registry
        )
        self.encoded = Histogram(
            "counterpoint_encoded_together", "Queries encoded in one call", buckets=(1, 2, 4, 8, 16, 32),
            registry=self._registry,
        )  # fmt: skip
        self.busy = Gauge("counterpoint_searches", "Searches running or waiting", registry=self._registry)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """All of them, in Prometheus' format."""
        return generate_latest(self._registry)

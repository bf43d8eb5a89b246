"""Count what this process serves, for Prometheus."""

from __future__ import annotations

from typing import cast

from fastapi import FastAPI
from prometheus_client import CollectorRegistry, Counter, Histogram

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Meters:
    """Hold the counters of one app in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "rlvitals_http_requests",
            "Requests answered, by route and status.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "rlvitals_http_request_seconds",
            "Time from a request's first byte to its answer's last, streams and waits included.",
            ("method", "route"),
            buckets=BUCKETS,
            registry=self.registry,
        )
        self._received = Counter(
            "rlvitals_http_received_bytes",
            "Bytes of request bodies as sent, by route.",
            ("route",),
            registry=self.registry,
        )

    def observe(self, method: str, route: str, status: int, seconds: float, received: int) -> None:
        """Count one answered request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)
        self._received.labels(route).inc(received)


def meters_of(app: FastAPI) -> Meters:
    """Find the meters of an app, making them at the first call."""
    if not hasattr(app.state, "meters"):
        app.state.meters = Meters()
    return cast("Meters", app.state.meters)

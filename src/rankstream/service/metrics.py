"""Metrics for Prometheus, at /metrics."""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from rankstream.service.storage.publication import MarketAnswer

Look = Callable[[], tuple[list[MarketAnswer], int, int, int]]
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # classes of a histogram; not tuned


class Metrics:
    """Counters of requests and records, and the current progress of every market.

    ``look`` returns the markets, the number of learner restarts, of queued batches, and of event listeners.
    """

    def __init__(self, look: Look) -> None:
        self.registry, self.look = CollectorRegistry(), look
        self.requests = Counter(
            "rankstream_requests", "Requests by route and status.", ("route", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "rankstream_request_seconds", "Duration of requests.", ("route",), buckets=SECONDS, registry=self.registry
        )
        self.records = Counter("rankstream_records", "Records acknowledged by this process.", registry=self.registry)
        self.registry.register(self)

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield the metrics that are computed when Prometheus asks."""
        markets, restarts, waiting, listeners = self.look()
        yield CounterMetricFamily("rankstream_learner_restarts", "Number of learner restarts.", restarts)
        yield GaugeMetricFamily("rankstream_batches_waiting", "Batches waiting to be written.", waiting)
        yield GaugeMetricFamily("rankstream_event_listeners", "Clients listening to events.", listeners)
        for name, words in (
            ("records", "Records received, by market."),
            ("learned", "Records processed, by market."),
            ("offers", "Different offers, by market."),
            ("items", "Items, by market."),
            ("model_age", "Age of the published model in seconds, by market."),
        ):
            family = GaugeMetricFamily(f"rankstream_market_{name}", words, labels=("market",))
            for market in markets:
                value = getattr(market, name)
                if value is not None:
                    family.add_metric((market.market,), value)
            yield family
        words = "1 if a market cannot be learned; its page says what to do."
        stuck = GaugeMetricFamily("rankstream_market_stuck", words, labels=("market",))
        for market in markets:
            stuck.add_metric((market.market,), float(market.problem is not None))
        yield stuck

    def took(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests.labels(route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all metrics in the text format."""
        return generate_latest(self.registry)

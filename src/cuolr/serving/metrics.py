"""What the service counts, as Prometheus reads it."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class ServiceMetrics:
    """The counters of one service; each has its own registry, so that several can run in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.calls = Counter("cuolr_calls", "Calls.", ["path", "status"], registry=self.registry)
        self.seconds = Histogram(
            "cuolr_call_seconds", "Time to answer a call.", ["path"], buckets=SECONDS, registry=self.registry
        )
        self.documents = Counter("cuolr_documents_ranked", "Documents that were ranked.", registry=self.registry)
        self.model = Gauge(
            "cuolr_model", "1 = the version that is served.", ["name", "version"], registry=self.registry
        )
        self.reloads = Counter("cuolr_reloads", "Changed models.", ["name", "outcome"], registry=self.registry)
        self.events = Counter("cuolr_events", "Events that were taken.", registry=self.registry)
        self.logged = Counter("cuolr_log_records", "Records that are on disk.", registry=self.registry)
        self.log_lost = Counter("cuolr_log_lost", "Records that could not be written.", registry=self.registry)
        self.log_writable = Gauge("cuolr_log_writable", "1 = the log can be written.", registry=self.registry)

    def serves(self, name: str, version: str, before: str | None = None) -> None:
        """A model is served from now on."""
        if before is not None and before != version:
            self.model.remove(name, before)
        self.model.labels(name, version).set(1)

    def text(self) -> bytes:
        """All of them, in Prometheus' text format."""
        return generate_latest(self.registry)

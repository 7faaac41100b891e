"""Grain's metrics, exported to Prometheus if the package `prometheus_client` is installed.

As in Grain 0.2.18, only five metrics with fixed names are exported; metrics with other names keep nothing.

DIFFERENCE: pipelines record none of the metrics, and `import grain` starts no server. `report()` shows where the time
goes. Values that a source records with `record_bytes_read_and_latency` are exported after a call of `setup_telemetry`.
"""

import errno
import logging
import multiprocessing
import os
import threading
from importlib import import_module
from typing import Any

from gristmill.compat.grain._buckets import Bucketer as Bucketer
from gristmill.compat.grain._buckets import Metadata as Metadata
from gristmill.compat.grain._buckets import Units as Units
from gristmill.compat.grain._buckets import borders as _borders

_EXPORTED = {
    "/grain/python/dataset/next_duration_ns",
    "/grain/python/dataset/prefetch_buffer_ready_count",
    "/grain/python/data_sources/bytes_read",
    "/grain/python/dataset/source_read_time_ns",
    "/grain/python/data_loader/iterator_get_next",
}
_PORT = 9431

# Prometheus metrics by name. Prometheus accepts each name only once.
_metrics: dict[str, Any] = {}
_lock = threading.Lock()
_is_serving = False


def _prometheus() -> Any:
    """Returns the package, or `None` if it is not installed. Imports it for the first metric that needs it."""
    try:
        return import_module("prometheus_client")
    except ImportError:
        return None


class _Recorded:
    """A metric with labels. `fields` lists the labels as pairs of name and type."""

    _KIND = ""

    def __init__(self, name: str, metadata: Any = None, *args: Any, **kwargs: Any) -> None:
        given = (metadata, *args)
        self._metric = None
        if name not in _EXPORTED or (prometheus := _prometheus()) is None:
            return
        described = next((arg for arg in given if isinstance(arg, Metadata)), Metadata(f"Grain's {self._KIND}"))
        fields = kwargs.get("fields") or next((arg for arg in given if isinstance(arg, list | tuple)), ())
        name = name.strip("/").replace("/", "_")
        options = self._options(described, kwargs)
        with _lock:
            if name not in _metrics:
                kind = getattr(prometheus, self._KIND)
                _metrics[name] = kind(name, described.description, [field[0] for field in fields], **options)
            self._metric = _metrics[name]

    def _options(self, metadata: Metadata, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Returns further options for Prometheus."""
        del metadata, kwargs
        return {}

    def _record(self, method: str, value: Any, labels: tuple[Any, ...], named: dict[str, Any]) -> None:
        metric: Any = self._metric
        if metric is None:
            return
        if labels or named:
            try:
                metric = metric.labels(*labels, **named)
            except ValueError as error:
                logging.warning("A metric was not recorded: %s.", error)
                return
        getattr(metric, method)(value)

    def Get(self, *args: Any, **kwargs: Any) -> float:
        """Returns 0.0, as in Grain: only Prometheus reads the recorded values."""
        del args, kwargs
        return 0.0

    def ClearAll(self) -> None:
        """Does nothing, as in Grain."""


class Counter(_Recorded):
    """A number that only grows."""

    _KIND = "Counter"

    def Increment(self, *args: Any, **kwargs: Any) -> None:
        """Adds 1 under the given labels."""
        self._record("inc", 1, args, kwargs)

    def IncrementBy(self, value: float, *args: Any, **kwargs: Any) -> None:
        """Adds `value` under the given labels."""
        self._record("inc", value, args, kwargs)


class Metric(_Recorded):
    """A number that can rise and fall."""

    _KIND = "Gauge"

    def __init__(self, name: str, value_type: type = float, metadata: Any = None, *args: Any, **kwargs: Any) -> None:
        del value_type
        super().__init__(name, metadata, *args, **kwargs)

    def Set(self, value: Any, *args: Any, **kwargs: Any) -> None:
        """Sets the number under the given labels."""
        self._record("set", value, args, kwargs)


class EventMetric(_Recorded):
    """A histogram with the given `buckets`, or divided by `bucketer`."""

    _KIND = "Histogram"

    def _options(self, metadata: Metadata, kwargs: dict[str, Any]) -> dict[str, Any]:
        buckets, bucketer = kwargs.get("buckets"), kwargs.get("bucketer")
        if buckets is None and isinstance(bucketer, Bucketer):
            buckets = _borders(bucketer, getattr(metadata, "units", None))
        return {"buckets": buckets} if buckets else {}

    def Record(self, value: float, *args: Any, **kwargs: Any) -> None:
        """Records an event of `value` under the given labels."""
        self._record("observe", value, args, kwargs)


def get_monitoring_root() -> None:
    """Returns `None`, as in Grain: Prometheus has no root."""


def setup_telemetry() -> None:
    """Serves the metrics on port 9431 if `ENABLE_PYGRAIN_PROMETHEUS_TELEMETRY` is `true`. Does nothing in a worker.

    DIFFERENCE: the metrics of workers are included if `PROMETHEUS_MULTIPROC_DIR` is set before the program starts, as
    `prometheus_client` requires.
    """
    wanted = os.environ.get("ENABLE_PYGRAIN_PROMETHEUS_TELEMETRY", "").lower() == "true"
    if wanted and multiprocessing.parent_process() is None and (prometheus := _prometheus()) is not None:
        with _lock:
            _serve(prometheus)


def _serve(prometheus: Any) -> None:
    global _is_serving
    if _is_serving:
        return
    registry = prometheus.REGISTRY
    try:
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            registry = prometheus.CollectorRegistry()
            import_module("prometheus_client.multiprocess").MultiProcessCollector(registry)
        prometheus.start_http_server(_PORT, registry=registry)
    except (OSError, ValueError) as error:
        # If the port is in use, another program serves the metrics of the shared folder.
        if getattr(error, "errno", None) != errno.EADDRINUSE:
            logging.warning("Metrics are not served: %s", error)
            return
    _is_serving = True


def _make_source_metrics() -> tuple[Counter, EventMetric]:
    """Returns the metrics of the bytes that sources read and of the time of reads."""
    fields = [("source", str)]
    read = Counter("/grain/python/data_sources/bytes_read", Metadata("Bytes that a source gave by number."), fields=fields)
    took = EventMetric(
        "/grain/python/dataset/source_read_time_ns",
        Metadata("Time of a read of a source, in nanoseconds.", units=Units.NANOSECONDS),
        bucketer=Bucketer.PowersOf(4.0),
        fields=fields,
    )
    return read, took


_source_metrics: tuple[Counter, EventMetric] | None = None


def record_bytes_read_and_latency(source: str, *, num_bytes: int, latency_ns: int, num_reads: int) -> None:
    """Records `num_reads` reads of a source that took `latency_ns` nanoseconds in total."""
    # Made on first use: other programs may never need Prometheus.
    global _source_metrics
    read, took = _source_metrics = _source_metrics or _make_source_metrics()
    read.IncrementBy(num_bytes, source)
    for _ in range(num_reads):
        took.Record(latency_ns / num_reads, source)


def record_autotune_node_throughput(node_name: str, throughput: float) -> None:
    """Does nothing, as in Grain: this metric is not exported."""


def record_autotune_parameter(node_name: str, name: str, value: float) -> None:
    """Does nothing, as in Grain: this metric is not exported."""


def record_autotune_usl_coeff(node_name: str, name: str, value: float) -> None:
    """Does nothing, as in Grain: this metric is not exported."""


def record_autotune_optimization_latency(latency_ms: float) -> None:
    """Does nothing, as in Grain: this metric is not exported."""


def record_framework_type(framework_type: str) -> None:
    """Does nothing, as in Grain: this metric is not exported."""


def set_debug_server_ports(ports: list[int]) -> None:
    """Does nothing, as in Grain: this metric is not exported."""

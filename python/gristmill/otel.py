"""Exports the figures of a pass as OpenTelemetry instruments.

Imported on first use of `gristmill.otel`. Requires `opentelemetry-api`.
"""

import threading
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Any, cast

from gristmill import _gristmill, _optional
from gristmill._metrics import report

try:
    import opentelemetry.metrics as _api  # pyright: ignore[reportMissingImports]
except ModuleNotFoundError as _missing:
    raise _optional.needed(_missing, "otel", "OpenTelemetry", "opentelemetry-api") from None

# Checkers see types only if the package is installed.
_otel = cast("Any", _api)

#: Returns name, unit, whether the value only grows, label, and description of each figure.
_families: Callable[[], list[tuple[str, str, bool, str | None, str]]] = getattr(_gristmill, "_metric_families")
_values: Callable[[Any], list[tuple[str, str | None, float]]] = getattr(_gristmill, "_metric_values")

#: Seconds for which a report is reused: one collection calls every instrument.
_FRESH = 0.5


def instrument(loader: Any, meter: Any = None, *, attributes: dict[str, str] | None = None) -> None:
    """Registers the figures of a pass as observable instruments: `gristmill.input.wait_share`, ….

    Values that only grow are counters; all others are gauges. They are read when a reader of the meter's provider
    collects. A closed pass yields no values.

    Args:
        loader: A pass, as for `gristmill.metrics`. It is not kept alive.
        meter: A meter of `opentelemetry.metrics`; by default, the meter `gristmill` of the global provider.
        attributes: Attributes that distinguish this pass from others, such as `{"pass": "train"}`.

    Raises:
        ConfigError: `loader` is not a pass.
    """
    report(loader)
    if meter is None:
        meter = _otel.get_meter("gristmill", _gristmill.__version__)
    source = _Source(loader, attributes or {})
    for name, unit, grows, label, told in _families():
        create = meter.create_observable_counter if grows else meter.create_observable_gauge
        create(f"gristmill.input.{name}", [source.callback(name, label)], unit=unit, description=told)


class _Source:
    """The values of a pass, read once for all instruments."""

    def __init__(self, loader: Any, attributes: dict[str, str]) -> None:
        self._loader = weakref.ref(loader)
        self._attributes = attributes
        self._lock = threading.Lock()
        self._read_at = float("-inf")
        self._read: dict[str, list[tuple[str | None, float]]] = {}

    def callback(self, name: str, label: str | None) -> Callable[[Any], Iterable[Any]]:
        """Returns the callback of an instrument."""

        def observe(_: Any) -> Iterable[Any]:
            for value, figure in self._values().get(name, []):
                mark = {} if label is None or value is None else {label: value}
                yield _otel.Observation(figure, {**self._attributes, **mark})

        return observe

    def _values(self) -> dict[str, list[tuple[str | None, float]]]:
        with self._lock:
            if time.monotonic() - self._read_at >= _FRESH:
                loader = self._loader()
                found = None if loader is None else report(loader)
                self._read = {}
                for name, value, figure in [] if found is None else _values(found):
                    self._read.setdefault(name, []).append((value, figure))
                self._read_at = time.monotonic()
            return self._read

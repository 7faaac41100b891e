"""Figures of a pass as instruments of OpenTelemetry.

Imported when it is first used, as `gristmill.otel`; it needs `opentelemetry-api`.
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

# Typed where it is installed alone.
_otel = cast("Any", _api)

#: Name, unit, whether it only grows, the label, and what it is.
_families: Callable[[], list[tuple[str, str, bool, str | None, str]]] = getattr(_gristmill, "_metric_families")
_values: Callable[[Any], list[tuple[str, str | None, float]]] = getattr(_gristmill, "_metric_values")

#: Seconds for which a report stands: one collection asks every instrument.
_FRESH = 0.5


def instrument(loader: Any, meter: Any = None, *, attributes: dict[str, str] | None = None) -> None:
    """Offers the figures of a pass as observable instruments: `gristmill.input.wait_share`, `gristmill.input.elements`, ….

    Gauges are what goes up and down, counters what only grows. They are read when a reader of the meter's provider collects, and of
    a pass that is over and closed there is nothing to read.

    Args:
        loader: A pass, as `gristmill.metrics` takes it. It is not kept alive.
        meter: Of `opentelemetry.metrics`; by default one of the global provider, of the name `gristmill`.
        attributes: What tells this pass apart from others, such as `{"pass": "train"}`.

    Raises:
        ConfigError: `loader` is no pass.
    """
    report(loader)
    if meter is None:
        meter = _otel.get_meter("gristmill", _gristmill.__version__)
    source = _Source(loader, attributes or {})
    for name, unit, grows, label, told in _families():
        create = meter.create_observable_counter if grows else meter.create_observable_gauge
        create(f"gristmill.input.{name}", [source.callback(name, label)], unit=unit, description=told)


class _Source:
    """Values of one pass, read once for all instruments."""

    def __init__(self, loader: Any, attributes: dict[str, str]) -> None:
        self._loader = weakref.ref(loader)
        self._attributes = attributes
        self._lock = threading.Lock()
        self._read_at = float("-inf")
        self._read: dict[str, list[tuple[str | None, float]]] = {}

    def callback(self, name: str, label: str | None) -> Callable[[Any], Iterable[Any]]:
        """Gives what an instrument calls."""

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

"""Descriptions of metrics: units, texts and bucket borders of histograms."""

import enum
import logging
from typing import Any


@enum.unique
class Units(enum.Enum):
    """Unit of a metric."""

    SECONDS = 1
    MILLISECONDS = 2
    MICROSECONDS = 3
    NANOSECONDS = 4
    BITS = 5
    BYTES = 6


class Metadata:
    """Description of a metric. Keyword arguments become attributes, of which only `units` is used."""

    def __init__(self, description: str = "", **kwargs: Any) -> None:
        self.description = description
        vars(self).update(kwargs)


class Bucketer:
    """Division of a histogram into buckets."""

    def __init__(self, *args: Any, bucketer_type: str | None = None, **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs
        self.type = bucketer_type

    @staticmethod
    def PowersOf(base: float) -> "Bucketer":
        """Returns a division in which each border is `base` times the previous border."""
        return Bucketer(base, bucketer_type="PowersOf")


# First border and limit by unit. For times: from a millisecond, or the smallest unit, to an hour.
_RANGES = {
    Units.SECONDS: (0.001, 3.6e3),
    Units.MILLISECONDS: (1.0, 3.6e6),
    Units.MICROSECONDS: (1.0, 3.6e9),
    Units.NANOSECONDS: (1.0, 3.6e12),
    None: (1.0, 3.6e6),
}


def borders(bucketer: Bucketer, units: Units | None) -> list[float] | None:
    """Returns the bucket borders of a histogram; `None` for Prometheus's default borders."""
    if bucketer.type != "PowersOf" or not bucketer.args:
        return None
    base = bucketer.args[0]
    if base <= 1:
        logging.warning("Bucketer.PowersOf is of %s, a base above 1 is needed", base)
        return None
    border, end = _RANGES.get(units, (1.0, 1e18))
    found: list[float] = []
    while border < end:
        found.append(border)
        border *= base
    return found

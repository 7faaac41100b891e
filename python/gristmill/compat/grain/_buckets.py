"""What metrics are described with: units, descriptions, borders of histograms."""

import enum
import logging
from typing import Any


@enum.unique
class Units(enum.Enum):
    """What a metric counts."""

    SECONDS = 1
    MILLISECONDS = 2
    MICROSECONDS = 3
    NANOSECONDS = 4
    BITS = 5
    BYTES = 6


class Metadata:
    """Description of a metric. Each further argument is an attribute: `units` is looked at."""

    def __init__(self, description: str = "", **kwargs: Any) -> None:
        self.description = description
        vars(self).update(kwargs)


class Bucketer:
    """How a histogram is divided."""

    def __init__(self, *args: Any, bucketer_type: str | None = None, **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs
        self.type = bucketer_type

    @staticmethod
    def PowersOf(base: float) -> "Bucketer":
        """Borders of which each is `base` times the one before."""
        return Bucketer(base, bucketer_type="PowersOf")


# The first border and the end: an hour of what is time, and a millisecond is the shortest.
_RANGES = {
    Units.SECONDS: (0.001, 3.6e3),
    Units.MILLISECONDS: (1.0, 3.6e6),
    Units.MICROSECONDS: (1.0, 3.6e9),
    Units.NANOSECONDS: (1.0, 3.6e12),
    None: (1.0, 3.6e6),
}


def borders(bucketer: Bucketer, units: Units | None) -> list[float] | None:
    """The borders of a histogram; `None` for those that Prometheus has of itself."""
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

"""Limits on the share of dropped elements for custom filters. The core checks the filters of datasets itself."""

import logging
import time

_LOG = logging.getLogger(__name__)

_CHECK_FILTERED_INTERVAL = 1000
_WARN_FILTERED_INTERVAL_SEC = 60


class FilterThresholdChecker:
    """Counters of dropped elements, checked after every 1,000 elements.

    `None` or 0 disables a threshold.
    """

    def __init__(self, transform_name: str, warn_threshold: float | None, raise_threshold: float | None) -> None:
        self._name = transform_name
        self._warn = warn_threshold or float("inf")
        self._raise = raise_threshold or float("inf")
        self._seen = self._dropped = 0
        self._warned: float | None = None

    def check(self, passed: bool) -> None:
        """Counts an element. Raises `ValueError` or logs a warning, once a minute, if the ratio exceeds a threshold."""
        self._seen += 1
        self._dropped += not passed
        if self._seen < _CHECK_FILTERED_INTERVAL:
            return
        ratio, seen = self._dropped / self._seen, self._seen
        self._seen = self._dropped = 0
        said = f"Transformation {self._name} skipped {100 * ratio:.2f} % of the last seen {seen} elements."
        if ratio >= self._raise:
            raise ValueError(f"{said} Raise `filter_raise_threshold_ratio`, or keep more of them")
        now = time.monotonic()
        if ratio >= self._warn and (self._warned is None or now - self._warned >= _WARN_FILTERED_INTERVAL_SEC):
            self._warned = now
            _LOG.warning("%s", said)

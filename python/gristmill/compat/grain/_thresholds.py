"""How much a filter of one's own may drop. The filters of datasets are watched by the core."""

import logging
import time

_LOG = logging.getLogger(__name__)

_CHECK_FILTERED_INTERVAL = 1000
_WARN_FILTERED_INTERVAL_SEC = 60


class FilterThresholdChecker:
    """Counts what passes and what does not, and looks at each 1,000 of them.

    A ratio of `None` or 0 is none.
    """

    def __init__(self, transform_name: str, warn_threshold: float | None, raise_threshold: float | None) -> None:
        self._name = transform_name
        self._warn = warn_threshold or float("inf")
        self._raise = raise_threshold or float("inf")
        self._seen = self._dropped = 0
        self._warned: float | None = None

    def check(self, passed: bool) -> None:
        """Counts one element. Raises `ValueError` where too many of the last 1,000 were dropped, and warns once a minute."""
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

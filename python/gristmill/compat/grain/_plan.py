"""What is decided for a pipeline as a whole."""

from typing import Any

from gristmill.compat.grain._base import DatasetOptions
from gristmill.compat.grain._options import ReadOptions


class Plan:
    """What the last dataset of a pipeline decides for those before it, and what it learns of them."""

    def __init__(self, options: DatasetOptions | None = None) -> None:
        self.options = options or DatasetOptions()
        self.threads = 0
        self.has_workers = False

    @property
    def reads_ahead(self) -> bool:
        """Whether a pass works before it is asked for an element."""
        return self.has_workers or self.threads > 0

    @property
    def thresholds(self) -> dict[str, Any]:
        """What filters may drop, by the names of the core's arguments; with the defaults, none."""
        options = self.options
        given = {"warn": options.filter_warn_threshold_ratio, "raise": options.filter_raise_threshold_ratio}
        # 0 is none, too.
        return {name: ratio or None for name, ratio in given.items()} if options != DatasetOptions() else {}

    def read(self, options: ReadOptions) -> None:
        """A part of the pipeline is to be read with these."""
        self.threads = max(self.threads, options.threads)

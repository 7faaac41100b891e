"""Options that apply to a pipeline as a whole."""

from typing import Any

from gristmill.compat.grain._base import DatasetOptions
from gristmill.compat.grain._options import ReadOptions


class Plan:
    """Options that the last dataset sets for earlier datasets, and properties that earlier datasets report back."""

    def __init__(self, options: DatasetOptions | None = None) -> None:
        self.options = options or DatasetOptions()
        self.threads = 0
        self.has_workers = False

    @property
    def reads_ahead(self) -> bool:
        """Whether a pass prefetches."""
        return self.has_workers or self.threads > 0

    @property
    def thresholds(self) -> dict[str, Any]:
        """Limits for filters, by argument name of the core; empty for default options."""
        options = self.options
        given = {"warn": options.filter_warn_threshold_ratio, "raise": options.filter_raise_threshold_ratio}
        # 0 also means no limit.
        return {name: ratio or None for name, ratio in given.items()} if options != DatasetOptions() else {}

    def read(self, options: ReadOptions) -> None:
        """Applies the read options of a part of the pipeline."""
        self.threads = max(self.threads, options.threads)

"""Options for prefetching and workers. They do not change the data."""

import dataclasses
import logging

_LOG = logging.getLogger(__name__)


@dataclasses.dataclass(slots=True)
class ReadOptions:
    """Threads that read and transform, and the number of prefetched elements."""

    num_threads: int = 16
    prefetch_buffer_size: int = 500

    def __post_init__(self) -> None:
        for name in ("num_threads", "prefetch_buffer_size"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be non-negative, got {getattr(self, name)}")
        if 0 < self.prefetch_buffer_size < self.num_threads:
            _LOG.warning(
                "prefetch_buffer_size=%s is smaller than num_threads=%s: no more than %s threads have work",
                self.prefetch_buffer_size,
                self.num_threads,
                self.prefetch_buffer_size,
            )

    @property
    def threads(self) -> int:
        """Number of threads to start; 0 if nothing is buffered."""
        return self.num_threads if self.prefetch_buffer_size else 0


@dataclasses.dataclass(slots=True)
class MultiprocessingOptions:
    """Number of worker processes, and elements that each worker buffers."""

    num_workers: int = 0
    per_worker_buffer_size: int = 1
    enable_profiling: bool = False

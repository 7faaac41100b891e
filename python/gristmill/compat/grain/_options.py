"""How much is read ahead, and by whom. None of it changes the data."""

import dataclasses
import logging

_LOG = logging.getLogger(__name__)


@dataclasses.dataclass(slots=True)
class ReadOptions:
    """Threads that read and transform, and elements that they read ahead."""

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
        """Threads to start; none without a buffer to fill."""
        return self.num_threads if self.prefetch_buffer_size else 0


@dataclasses.dataclass(slots=True)
class MultiprocessingOptions:
    """Worker processes and what each of them holds ready."""

    num_workers: int = 0
    per_worker_buffer_size: int = 1
    enable_profiling: bool = False

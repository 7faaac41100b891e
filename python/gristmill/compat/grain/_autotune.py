"""Selection of options that fit a memory budget."""

import dataclasses
import os
import sys
from itertools import islice
from typing import Any

from gristmill.compat.grain import _tree_lib
from gristmill.compat.grain._options import MultiprocessingOptions, ReadOptions

_MIB = 1 << 20
_MOST_AHEAD = 1000
_THREADS = 16


@dataclasses.dataclass(kw_only=True)
class PerformanceConfig:
    """The options selected by `pick_performance_config`."""

    multiprocessing_options: MultiprocessingOptions | None = None
    read_options: ReadOptions | None = None


def _size(element: Any) -> int:
    def leaf(value: Any) -> int:
        return int(value.nbytes) if hasattr(value, "nbytes") else sys.getsizeof(value)

    return sum(leaf(value) for value in _tree_lib.flatten(element))


def pick_performance_config(
    ds: Any,
    *,
    ram_budget_mb: int | None,
    max_workers: int | None,
    max_buffer_size: int | None,
    samples_to_check: int = 5,
) -> PerformanceConfig:
    """Returns the numbers of workers and prefetched elements that fit the budget, given the size of the first elements.

    DIFFERENCE: workers and prefetching share a single budget instead of each using all of it. The budget also applies
    to a `MapDataset`. `None` means no limit. The options do not change the data.
    """
    workers = max_workers if max_workers is not None else os.cpu_count() or 1
    buffer = max_buffer_size if max_buffer_size is not None else _MOST_AHEAD
    sizes = [_size(element) for element in islice(iter(ds), samples_to_check)]
    if ram_budget_mb is not None and sizes:
        elements = int(ram_budget_mb * _MIB / max(sum(sizes) / len(sizes), 1))
        workers = min(workers, elements // 2)
        buffer = min(buffer, max(elements - workers, 0))
    return PerformanceConfig(
        multiprocessing_options=MultiprocessingOptions(num_workers=workers),
        read_options=ReadOptions(num_threads=min(_THREADS, buffer), prefetch_buffer_size=buffer),
    )

# Written by `python/stub.py` from the extension, and not by hand.
"""Options of passes and of worker processes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Literal, TypedDict

from gristmill._checks import Checked
from gristmill._checks import given as given

if TYPE_CHECKING:
    from gristmill._gristmill import Deal, Part
    from gristmill._hosts import Guard


class LoaderOptions(TypedDict, total=False):
    """Keyword arguments of `loader`, which describes them."""

    threads: int | Literal["auto"]
    writable: bool
    accept_changes: bool
    workers: bool
    part: Part | tuple[int, int] | str | None
    deal: Literal["even", "lanes"] | Deal
    guard: Guard
    keys: str | PathLike[str] | None
    metrics: str | int | None
    buffer: int
    timeout: float | None
    record_keys: bool
    guard_timeout: float
    on_failed_element: Literal["error", "pad"]
    failed_element_limit: int | None
    edits: str | PathLike[str] | Mapping[str, int | Mapping[str, float] | str | Sequence[str] | PathLike[str] | Mapping[str, str | int] | Sequence[Mapping[str, str | int]] | Literal["refill"]] | Sequence[Mapping[str, int | Mapping[str, float] | str | Sequence[str] | PathLike[str] | Mapping[str, str | int] | Sequence[Mapping[str, str | int]] | Literal["refill"]]] | None
    top: bool
    record: str | PathLike[str] | None
    trace: str | PathLike[str] | None
    ledger: str | PathLike[str] | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class MpOptions(Checked):
    """Options of worker processes for `mp_prefetch`. None of them changes an element.

    `num_workers` and `per_worker_buffer_size` are Grain's names. Sizes are numbers of bytes, or text such as `"2GiB"`.

    Args:
        num_workers: Worker processes; 0 evaluates on threads of this process. By default, a native pipeline has one
            process with a thread for each core. Other pipelines start with a process for each core, and tuning finds
            the number.
        workers: Alias of `num_workers`.
        per_worker_buffer_size: Elements or batches kept ready for each worker process.
        max_workers: Maximum number of worker processes if it is tuned. The run starts with one process.
        threads_per_worker: Threads of each worker process. By default, a pipeline with Python functions starts with one
            thread. If the number of workers is not given either, more threads follow if the functions wait and release
            the interpreter's lock. Several threads then call a function at once, as Grain's read threads do; 1 prevents
            that.
        ram_budget: Maximum of shared memory and private memory of all workers together, a quarter of the available
            memory by default. It does not limit shared memory that functions map themselves, such as `mmap.mmap(-1,
            n)`, nor processes that they start, each of which may have the private memory of a worker. A warning reports
            an excess. It does not include what this process holds: the elements of a batch, a window or rows that are
            being packed.
        deadline: Seconds after which a worker process counts as hanging; `None` sets no limit. The start of a worker is
            not included. It may take 20 s, and once 5 s more if the process that forks workers does not answer.
        worker_heap: Private memory of each worker process [default: half of the budget, divided by the workers]. The
            default is at least 192 MiB if workers call Python functions, and 64 MiB otherwise.
        max_element: Maximum size of an element or batch in shared memory [default: a quarter of the shared memory].
        retries: Worker processes that a range of elements may kill before the element that does so is searched.
        on_poison: What to do with an element that kills every worker process: `"error"` ends the run, `"skip"` leaves
            it out and counts it.
        tune: Whether the numbers of active threads and of prefetched elements follow the needs of the consumer.

    Raises:
        ConfigError: A value is invalid, or `workers` and `num_workers` differ.
    """

    num_workers: int | None = None
    workers: int | Literal["auto"] = "auto"
    per_worker_buffer_size: int = 1
    max_workers: int | None = None
    threads_per_worker: int | None = None
    ram_budget: int | str | None = None
    deadline: float | None = 300.0
    worker_heap: int | str | None = None
    max_element: int | str | None = None
    retries: int = 3
    on_poison: Literal["error", "skip"] = "error"
    tune: bool = True

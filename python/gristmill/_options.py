"""Options of passes and of worker processes."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from gristmill import _gristmill
from gristmill._errors import ConfigError

if TYPE_CHECKING:
    from gristmill._gristmill import Deal, Part
    from gristmill._hosts import Guard

#: Names of the run options of worker processes.
_PROCESSES: list[str] = getattr(_gristmill, "_PROCESSES")
_check_processes: Callable[[dict[str, Any], str], None] = getattr(_gristmill, "_check_processes")
#: Parses a size such as "2GiB".
_parse_amount: Callable[[str], float | None] = getattr(_gristmill, "_parse_amount")
#: Seconds of thirty years.
_LONGEST = 1_000_000_000


class LoaderOptions(TypedDict, total=False):
    """Keyword arguments of `loader`, which describes them. A test compares the names with the run options of the crate."""

    threads: int | Literal["auto"]
    buffer: int
    timeout: float | None
    writable: bool
    part: Part | tuple[int, int] | str | None
    deal: Literal["even", "lanes"] | Deal
    guard: Guard
    guard_timeout: float
    workers: bool
    keys: str | os.PathLike[str] | None
    record_keys: bool
    on_failed_element: Literal["error", "pad"]
    failed_element_limit: int | None
    accept_changes: bool
    metrics: str | int | None
    record: str | os.PathLike[str] | None
    trace: str | os.PathLike[str] | None
    top: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class MpOptions:
    """Options of worker processes for `mp_prefetch`. None of them changes an element.

    `num_workers` and `per_worker_buffer_size` are Grain's names. Sizes are numbers of bytes, or text such as `"2GiB"`.

    Args:
        num_workers: Worker processes; 0 evaluates on threads of this process. By default, a native pipeline has one process
            with a thread for each core. Other pipelines start with a process for each core, and tuning finds the number.
        workers: Alias of `num_workers`.
        per_worker_buffer_size: Elements or batches kept ready for each worker process.
        max_workers: Maximum number of worker processes if it is tuned. The run starts with one process.
        threads_per_worker: Threads of each worker process. By default, a pipeline with Python functions starts with one
            thread. If the number of workers is not given either, more threads follow if the functions wait and release the
            interpreter's lock. Several threads then call a function at once, as Grain's read threads do; 1 prevents that.
        ram_budget: Maximum of shared memory and private memory of all workers together, a quarter of the available memory
            by default. It does not limit shared memory that functions map themselves, such as `mmap.mmap(-1, n)`, nor
            processes that they start, each of which may have the private memory of a worker. A warning reports an excess.
            It does not include what this process holds: the elements of a batch, a window or rows that are being packed.
        worker_heap: Private memory of each worker process. By default, half of the budget divided by the workers, and at
            least 192 MiB for workers with Python functions and 64 MiB for others.
        max_element: Maximum size of an element or batch, a quarter of the shared memory by default.
        deadline: Seconds after which a worker process counts as hanging; `None` sets no limit. The start of a worker is not
            included. It may take 20 s, and once 5 s more if the process that forks workers does not answer.
        retries: Worker processes that a range of elements may kill before the element that does so is searched.
        on_poison: What to do with an element that kills every worker process: `"error"` ends the run, `"skip"` leaves the
            element out and counts it in the report.
        tune: Whether the number of active threads, and of prefetched elements, follows the needs of the consumer.

    Raises:
        ConfigError: A value is invalid, or `workers` and `num_workers` differ.
    """

    num_workers: int | None = None
    workers: int | Literal["auto"] = "auto"
    per_worker_buffer_size: int = 1
    max_workers: int | None = None
    threads_per_worker: int | None = None
    ram_budget: int | str | None = None
    worker_heap: int | str | None = None
    max_element: int | str | None = None
    deadline: float | None = 300.0
    retries: int = 3
    on_poison: Literal["error", "skip"] = "error"
    tune: bool = True

    def __post_init__(self) -> None:
        if self.num_workers is not None and self.workers not in ("auto", self.num_workers):
            raise ConfigError(f"num_workers is {self.num_workers} and workers is {self.workers}: give one of them")
        whole("per_worker_buffer_size", self.per_worker_buffer_size, 1, 1 << 20)
        _check_processes(self.by_name(), "workers" if self.num_workers is None else "num_workers")

    @property
    def count(self) -> int | None:
        """Number of worker processes, or `None` if it was not given."""
        return self.num_workers if self.workers == "auto" else self.workers

    def by_name(self) -> dict[str, Any]:
        """Returns the run options of worker processes under their names in pipeline files and on the command line."""
        return {name: getattr(self, "count" if name == "workers" else name) for name in _PROCESSES}


def whole(name: str, value: Any, least: int, most: int) -> None:
    """Checks that `value` is a whole number between `least` and `most`, or `None`."""
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(f"{name} is {value!r}, and must be a whole number")
    if value < least:
        raise ConfigError(f"{name} is {value}, and must be {least} or more")
    if value > most:
        raise ConfigError(f"{name} is {value}, and must be {most} or less")


def seconds(name: str, value: Any) -> None:
    """Checks that `value` is a time in seconds, more than 0 and at most `_LONGEST`."""
    if not isinstance(value, (int, float)) or not 0 < value <= _LONGEST:
        raise ConfigError(f"{name} is {value!r}, and must be more than 0 and at most {_LONGEST} seconds")


def size(name: str, value: int | str | None) -> int | None:
    """Returns the bytes of a size: `"1.5GiB"`, `"200MB"` or a number."""
    if value is None:
        return None
    amount = value if isinstance(value, int) else _parse_amount(str(value))
    if amount is None or amount <= 0:
        raise ConfigError(f'{name} is {value!r}, and must be a number of bytes, or text such as "2GiB"')
    if amount >= 1 << 60:
        raise ConfigError(f"{name} is {value!r}, and must be less than 1 EiB")
    return int(amount)


def given(options: Any = None, **keywords: Any) -> MpOptions:
    """Returns the options of `mp_prefetch` from an `MpOptions`, Grain's options or keyword arguments."""
    if options is None:
        return MpOptions(**keywords)
    if isinstance(options, MpOptions):
        return dataclasses.replace(options, **keywords)
    if isinstance(options, int):
        return MpOptions(num_workers=options, **keywords)
    if not hasattr(options, "num_workers"):
        raise TypeError(f"mp_prefetch() takes gristmill.MpOptions, got {type(options).__name__}")
    theirs: dict[str, Any] = {"num_workers": options.num_workers}
    theirs["per_worker_buffer_size"] = getattr(options, "per_worker_buffer_size", 1)
    return MpOptions(**(theirs | keywords))

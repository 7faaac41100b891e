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
#: Bytes of text such as "2GiB", as pipeline files and the command line have it.
_parse_amount: Callable[[str], float | None] = getattr(_gristmill, "_parse_amount")
#: Seconds of thirty years.
_LONGEST = 1_000_000_000


class LoaderOptions(TypedDict, total=False):
    """Keyword arguments of `loader`, which describes them. A test compares the names with the run options of the crate."""

    threads: int | Literal["auto"]
    buffer: int
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
    """How `mp_prefetch` uses worker processes. None of it changes an element.

    `num_workers` and `per_worker_buffer_size` are Grain's. Sizes are numbers of bytes, or text such as `"2GiB"`.

    Args:
        num_workers: Worker processes; 0 evaluates on threads of this process. If it is not given: one with a thread for
            every core where all stages are native, else one for every core at the start, and as many as pay then.
        workers: The same under another name.
        per_worker_buffer_size: Elements, or batches, kept ready for each worker.
        max_workers: Begin with one process, and let tuning find out whether up to so many pay.
        threads_per_worker: Threads that evaluate in each worker. Where there are Python functions and the number of
            workers is given, one. Where it is not, one at the start, and more where functions wait and let others have
            the interpreter meanwhile: then, as with Grain's read threads, several threads call them at once, which 1
            rules out.
        ram_budget: Bytes that shared memory and the private memory of all workers take together at most; a quarter of
            what is available. It does not limit shared memory that functions map themselves (such as `mmap.mmap(-1,
            n)`), nor processes that they start, of which each may have as much private memory as a worker. Where those
            are seen to exceed it, a warning says so. Nor is in it what this process holds itself: elements of a batch,
            a window or rows that are put together here.
        worker_heap: Bytes of private memory of each worker; half of the budget divided by the workers, but 192 MiB at
            least where they run Python functions, else 64 MiB.
        max_element: Bytes that one element or batch may have; a quarter of the shared memory.
        deadline: Seconds that a range of elements may take before its worker counts as hanging; `None` for ever. To
            start a worker is not in them: it may take 20 s, and 5 s more once, where the process that forks workers
            does not answer.
        retries: How many workers a range may kill before the element that does it is sought.
        on_poison: What becomes of an element that kills every worker: it ends the run, or is left out and counted in
            the report.
        tune: Whether the number of threads at work, and how far they work ahead, follow what the consumer needs.

    Raises:
        ConfigError: A value is impossible, or `workers` and `num_workers` differ.
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
            raise ConfigError(f"num_workers is {self.num_workers} and workers is {self.workers}: they mean the same")
        whole("per_worker_buffer_size", self.per_worker_buffer_size, 1, 1 << 20)
        _check_processes(self.by_name(), "workers" if self.num_workers is None else "num_workers")

    @property
    def count(self) -> int | None:
        """Worker processes, if they were chosen."""
        return self.num_workers if self.workers == "auto" else self.workers

    def by_name(self) -> dict[str, Any]:
        """Run options of worker processes, as pipeline files and the command line name them."""
        return {name: getattr(self, "count" if name == "workers" else name) for name in _PROCESSES}


def whole(name: str, value: Any, least: int, most: int) -> None:
    """Checks that `value` is a whole number between these, or `None`."""
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(f"{name} is {value!r}, and must be a whole number")
    if value < least:
        raise ConfigError(f"{name} is {value}, and must be {least} or more")
    if value > most:
        raise ConfigError(f"{name} is {value}, and must be {most} or less")


def seconds(name: str, value: Any) -> None:
    """Checks that `value` is a time of more than 0 seconds, and no longer than any run."""
    if not isinstance(value, (int, float)) or not 0 < value <= _LONGEST:
        raise ConfigError(f"{name} is {value!r}, and must be more than 0 and at most {_LONGEST} seconds")


def size(name: str, value: int | str | None) -> int | None:
    """So many bytes: `"1.5GiB"`, `"200MB"`, or a number."""
    if value is None:
        return None
    amount = value if isinstance(value, int) else _parse_amount(str(value))
    if amount is None or amount <= 0:
        raise ConfigError(f'{name} is {value!r}, and must be a number of bytes, or text such as "2GiB"')
    if amount >= 1 << 60:
        raise ConfigError(f"{name} is {value!r}, and must be less than 1 EiB")
    return int(amount)


def given(options: Any = None, **keywords: Any) -> MpOptions:
    """The options of `mp_prefetch`: ours, Grain's, or keywords."""
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

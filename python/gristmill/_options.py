"""How worker processes are used."""

import dataclasses
import re
from typing import Any, Literal

from gristmill._errors import ConfigError

#: Processes, and threads of one: more than any machine has use for.
_MOST_WORKERS = 4096
#: Seconds of thirty years.
_LONGEST = 1_000_000_000
_UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
_BINARY = {"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40}


@dataclasses.dataclass(frozen=True, kw_only=True)
class MpOptions:
    """How `mp_prefetch` uses worker processes. None of it changes an element.

    `num_workers` and `per_worker_buffer_size` are Grain's. Sizes are numbers of bytes, or text such as `"2GiB"`.
    """

    #: Worker processes; 0 evaluates on threads of this process. If it is not given: one with a thread for every core where
    #: all stages are native, else one for every core at the start, and as many as pay then.
    num_workers: int | None = None
    #: The same under another name.
    workers: int | Literal["auto"] = "auto"
    #: Elements, or batches, kept ready for each worker.
    per_worker_buffer_size: int = 1
    #: Begin with one process, and let tuning find out whether up to so many pay.
    max_workers: int | None = None
    #: Threads that evaluate in each worker. Where there are Python functions and the number of workers is given, one. Where it
    #: is not, one at the start, and more where functions wait and let others have the interpreter meanwhile: then, as with
    #: Grain's read threads, several threads call them at once, which 1 rules out.
    threads_per_worker: int | None = None
    #: Bytes that shared memory and the private memory of all workers take together at most; a quarter of what is available.
    #: It does not limit shared memory that functions map themselves (such as `mmap.mmap(-1, n)`), nor processes that they
    #: start, of which each may have as much private memory as a worker. Where those are seen to exceed it, a warning says so.
    #: Nor is in it what this process holds itself: elements of a batch, a window or rows that are put together here.
    ram_budget: int | str | None = None
    #: Bytes of private memory of each worker; half of the budget divided by the workers, but 192 MiB at least where they run
    #: Python functions, else 64 MiB.
    worker_heap: int | str | None = None
    #: Bytes that one element or batch may have; a quarter of the shared memory.
    max_element: int | str | None = None
    #: Seconds that a range of elements may take before its worker counts as hanging; `None` for ever. To start a worker is not
    #: in them: it may take 20 s, and 5 s more once, where the process that forks workers does not answer.
    deadline: float | None = 300.0
    #: How many workers a range may kill before the element that does it is sought.
    retries: int = 3
    #: What becomes of an element that kills every worker: it ends the run, or is left out and counted in the report.
    on_poison: Literal["error", "skip"] = "error"
    #: Whether the number of threads at work, and how far they work ahead, follow what the consumer needs.
    tune: bool = True

    def __post_init__(self) -> None:
        if self.num_workers is not None and self.workers not in ("auto", self.num_workers):
            raise ConfigError(f"num_workers is {self.num_workers} and workers is {self.workers}: they mean the same")
        whole("num_workers", self.num_workers, 0, _MOST_WORKERS)
        whole("per_worker_buffer_size", self.per_worker_buffer_size, 1, 1 << 20)
        whole("max_workers", self.max_workers, 1, _MOST_WORKERS)
        whole("threads_per_worker", self.threads_per_worker, 1, _MOST_WORKERS)
        whole("retries", self.retries, 1, (1 << 32) - 1)
        if self.workers != "auto":
            whole("workers", self.workers, 0, _MOST_WORKERS)
        for name in ("ram_budget", "worker_heap", "max_element"):
            size(name, getattr(self, name))
        if self.deadline is not None:
            seconds("deadline", self.deadline)
        if self.on_poison not in ("error", "skip"):
            raise ConfigError(f'on_poison is {self.on_poison!r}, and must be "error" or "skip"')

    @property
    def count(self) -> int | None:
        """Worker processes, if they were chosen."""
        return self.num_workers if self.workers == "auto" else self.workers


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
    bytes = value if isinstance(value, int) and value > 0 else _parsed(name, value)
    if bytes >= 1 << 60:
        raise ConfigError(f"{name} is {value!r}, and must be less than 1 EiB")
    if name == "ram_budget" and bytes < 1 << 20:
        error = ConfigError(f"ram_budget is {bytes} bytes, and must be 1 MiB or more")
        error.help = f'a number without a unit counts bytes: did you mean "{bytes}MiB"?'
        error.add_note(f"help: {error.help}")
        raise error
    return bytes


def _parsed(name: str, value: int | str) -> int:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", str(value).lower())
    unit = match and {**_UNITS, **_BINARY}.get(match[2])
    if not match or not unit or float(match[1]) <= 0:
        raise ConfigError(f'{name} is {value!r}, and must be a number of bytes, or text such as "2GiB"')
    return int(float(match[1]) * unit)


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

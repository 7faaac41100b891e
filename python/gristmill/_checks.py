"""Checks of options."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gristmill import _gristmill
from gristmill._errors import ConfigError

if TYPE_CHECKING:
    from gristmill._options import MpOptions

#: Names of the run options of worker processes.
_PROCESSES: list[str] = getattr(_gristmill, "_PROCESSES")
_check_processes: Callable[[dict[str, Any], str], None] = getattr(_gristmill, "_check_processes")
#: Parses a size such as "2GiB".
_parse_amount: Callable[[str], float | None] = getattr(_gristmill, "_parse_amount")
#: Seconds of thirty years.
_LONGEST = 1_000_000_000


class Checked:
    """The checks of `MpOptions`."""

    def __post_init__(self) -> None:
        options: Any = self
        if options.num_workers is not None and options.workers not in ("auto", options.num_workers):
            raise ConfigError(f"num_workers is {options.num_workers} and workers is {options.workers}: give one of them")
        whole("per_worker_buffer_size", options.per_worker_buffer_size, 1, 1 << 20)
        _check_processes(self.by_name(), "workers" if options.num_workers is None else "num_workers")

    @property
    def count(self) -> int | None:
        """Number of worker processes, or `None` if it was not given."""
        options: Any = self
        count: int | None = options.num_workers if options.workers == "auto" else options.workers
        return count

    def by_name(self) -> dict[str, Any]:
        """Returns the run options of worker processes under their names in pipeline files and on the command line."""
        return {name: getattr(self, "count" if name == "workers" else name) for name in _PROCESSES}


def given(options: Any = None, **keywords: Any) -> MpOptions:
    """Returns the options of `mp_prefetch` from an `MpOptions`, Grain's options or keyword arguments."""
    from gristmill._options import MpOptions

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

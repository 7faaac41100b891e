"""How stores are read."""

import os
from typing import Any

from gristmill._errors import ConfigError
from gristmill._options import size


def store_options(
    *,
    cache_dir: str | os.PathLike[str] | None = None,
    cache_size: int | str | None = None,
    memory: int | str | None = None,
    requests: int | None = None,
    attempts: int | None = None,
    timeout: float | None = None,
    stall: float | None = None,
) -> None:
    """How `s3://`, `gs://`, `az://` and `https://` are read from now on, here and in worker processes. None of it changes an element.

    What is not given stays as it is. The options are kept in the environment, as `GRISTMILL_STORE_CACHE_DIR` and so on, where they
    may be set before the program starts as well.

    Args:
        cache_dir: A folder on a local disk where what was read is kept, checked and shared by all processes of this user. Nobody else can
            read what lies there, and a folder that others may write to is refused. Of an object of which a server tells neither ETag nor
            time nothing is kept.
        cache_size: Bytes kept there, such as `"100GiB"`; 10 GiB at first.
        memory: Bytes kept in memory by each process, half of them for what is fetched ahead; 256 MiB at first, and in a worker an
            eighth of its heap at most.
        requests: Requests in flight at a time; 16 at first. More pay where small records are read in random order from afar.
        attempts: How often a request is tried; 10 times at first.
        timeout: Seconds a request is tried in all, its answer, all attempts and pauses included; 180 at first.
        stall: Seconds a request may stand still before it is tried again; 20 at first.

    Raises:
        ConfigError: If a number is none, or too small.
    """
    counts: dict[str, Any] = {"requests": requests, "attempts": attempts}
    for name, count in counts.items():
        if count is not None and (not isinstance(count, int) or count < 1):
            raise ConfigError(f"{name} is {count!r}, and must be a whole number of 1 or more")
    for name, seconds in {"timeout": timeout, "stall": stall}.items():
        if seconds is not None and not seconds > 0:
            raise ConfigError(f"{name} is {seconds!r}, and must be more than 0 seconds")
    values = {
        "CACHE_DIR": None if cache_dir is None else os.fspath(cache_dir),
        "CACHE_SIZE": size("cache_size", cache_size),
        "MEMORY": size("memory", memory),
        "REQUESTS": requests,
        "ATTEMPTS": attempts,
        "TIMEOUT": timeout,
        "STALL": stall,
    }
    for name, value in values.items():
        if value is not None:
            os.environ[f"GRISTMILL_STORE_{name}"] = str(value)

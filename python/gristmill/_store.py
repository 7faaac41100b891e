"""How stores are read."""

import os

from gristmill._options import seconds, size, whole


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
        requests: Requests in flight at a time; 64 at first. Large parts of objects are also limited to 64 MiB at a time, and more if more than 64 requests are allowed.
        attempts: How often a request is tried; 10 times at first.
        timeout: Seconds a request is tried in all, its answer, all attempts and pauses included; 180 at first.
        stall: Seconds a request may stand still before it is tried again; 20 at first.

    Raises:
        ConfigError: If a number is none, too small, or too large.
    """
    whole("requests", requests, 1, 1 << 16)
    whole("attempts", attempts, 1, (1 << 32) - 1)
    for name, time in {"timeout": timeout, "stall": stall}.items():
        if time is not None:
            seconds(name, time)
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

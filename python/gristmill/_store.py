"""Options of object stores."""

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
    """Sets how this process and its workers read `s3://`, `gs://`, `az://` and `https://` from now on.

    No option changes an element. Options that are not given keep their values. The options are environment variables,
    `GRISTMILL_STORE_CACHE_DIR` and so on, which may also be set before the program starts.

    Args:
        cache_dir: Folder on a local disk for cached data. The data is checked on reading and shared by all processes of
            this user. The files are readable by this user only, and a folder that other users may write to is refused.
            Objects without an ETag or a modification time are not cached.
        cache_size: Bytes in the cache folder, such as `"100GiB"`; default 10 GiB.
        memory: Bytes that each process keeps in memory, half of them for prefetched data; default 256 MiB, and at most
            an eighth of the heap in a worker.
        requests: Concurrent requests; default 64. Large parts of objects are also limited to 64 MiB at a time, and to
            more if more than 64 requests are allowed.
        attempts: Attempts per request; default 10.
        timeout: Seconds per request, including its answer, all attempts and pauses; default 180.
        stall: Seconds without progress before a request is retried; default 20.

    Raises:
        ConfigError: A value is not a number, too small, or too large.
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

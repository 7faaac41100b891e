"""What functions carry to worker processes: checked before they start, and taken twice at most; and memory that runs out there."""

import os
import subprocess
import sys
import textwrap
from typing import Any

import gristmill as gm
import numpy as np
import pytest

WORKERS: dict[str, Any] = {"num_workers": 2, "ram_budget": "1GiB"}


def carrying(mib: int) -> gm.IterDataset:
    table = np.ones(mib << 17, np.float64)

    def look_up(x: int) -> float:
        return float(table[x]) + x

    return gm.MapDataset.range(20).map(look_up).mp_prefetch(**WORKERS)


def test_functions_may_carry_what_the_heap_has_room_for() -> None:
    # Twice 60 MiB, and what Python and NumPy take themselves, of 256 MiB.
    assert list(carrying(50)) == [x + 1.0 for x in range(20)]


def test_what_no_worker_could_hold_is_refused_with_the_function_and_the_arithmetic() -> None:
    with pytest.raises(gm.ConfigError) as raised:
        iter(carrying(200))
    said = str(raised.value)
    assert said.startswith("map: carrying.<locals>.look_up (") and "carries 200 MiB to each worker" in said, said
    assert "a worker needs 528" in said and "of heap, but has 256 MiB" in said, said
    assert raised.value.help is not None and "by its path (or in worker_init_fn)" in raised.value.help
    assert "raise ram_budget from 1 GiB to" in raised.value.help


def test_an_initialiser_that_carries_too_much_is_named_too() -> None:
    table = np.ones(200 << 17)
    ds = gm.MapDataset.range(9).mp_prefetch(None, lambda index, count: table.sum(), **WORKERS)
    with pytest.raises(gm.ConfigError, match="worker_init_fn: .*<lambda>.* carries 200 MiB"):
        iter(ds)


@pytest.mark.parametrize("backtrace", ["0", "1"])
@pytest.mark.parametrize("when", ["build", "call"])
def test_memory_that_runs_out_in_a_worker_is_an_error_and_no_hang(when: str, backtrace: str) -> None:
    program = f"""
        import gristmill as gm
        kept = []
        class Takes:
            def __init__(self, mib=0):
                kept.extend(bytearray(1 << 20) for _ in range(mib))
            def __reduce__(self):
                return Takes, (4000 if {when!r} == "build" else 0,)
            def __call__(self, x):
                kept.extend([x] * 1000 for _ in range(1 << 20))
                return x
        try:
            list(gm.MapDataset.range(4).map(Takes()).mp_prefetch(num_workers=1, ram_budget="600MiB", retries=1))
        except (gm.WorkerError, MemoryError) as error:
            print(type(error).__name__, error, *getattr(error, "__notes__", ()))
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "RUST_BACKTRACE": backtrace},
    )
    assert ended.returncode == 0, ended.stderr
    assert "heap" in ended.stdout, ended.stdout + ended.stderr
    assert "null" not in ended.stdout + ended.stderr


def test_an_array_that_a_worker_has_no_room_for_says_how_much_there_is() -> None:
    ds = gm.MapDataset.range(4).map(lambda x: np.ones(600 << 17)).mp_prefetch(**WORKERS)
    with pytest.raises(MemoryError) as raised:
        list(ds)
    notes = "\n".join(raised.value.__notes__)
    assert "a worker may have 256 MiB of private memory (worker_heap), of a ram_budget of 1 GiB" in notes, notes


def test_bytes_that_a_worker_has_no_room_for_are_an_error() -> None:
    """Python's own objects are made by the package from what native stages read."""
    ds = gm.MapDataset.range(4).map(lambda x: b"x" * (200 << 20)).map(len).mp_prefetch(**WORKERS)
    with pytest.raises((MemoryError, gm.WorkerError)) as raised:
        assert list(ds) == [200 << 20] * 4
        raise MemoryError("there was room")
    assert "null" not in str(raised.value)

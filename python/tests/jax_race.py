"""Sends batches out of a few slots of memory, each written to again as soon as nobody has it: `python jax_race.py`.

Its last line says, in JSON, whether by JAX's own client, and how many batches were not what they had been, by way of sending them.
"""

import gc
import json
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import gristmill as gm
import jax
import jax.numpy as jnp
import numpy as np
from gristmill.jax import _iterator, _target

STEPS, NUMBERS = 40, 1 << 18
DEPTH = 2


class Owner:
    """What all arrays over some memory have for their base, as those of gristmill have its memory."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.__array_interface__ = dict(array.__array_interface__)


class Slots:
    """Memory for so many batches, `offset` bytes behind a multiple of 64."""

    def __init__(self, count: int, offset: int) -> None:
        self._memory = np.zeros(4 * NUMBERS * count + 128, np.uint8)
        start = -self._memory.ctypes.data % 64 + offset
        self._starts = [start + 4 * NUMBERS * slot for slot in range(count)]
        self._free = deque(range(count))

    def view(self, slot: int) -> np.ndarray[Any, Any]:
        return self._memory[self._starts[slot] :][: 4 * NUMBERS].view(np.int32)

    def batch(self, x: int) -> dict[str, Any]:
        if not self._free:
            # JAX only queues what it is done with.
            gc.collect(0)
        slot = self._free.popleft()
        self.view(slot)[:] = x
        owner = Owner(self.view(slot))
        weakref.finalize(owner, self._free.appendleft, slot)
        return {"x": np.asarray(owner)}


@jax.jit
def step(x: Any, one: Any) -> tuple[Any, Any]:
    """The least and the largest number of a batch, read some milliseconds after the step began."""
    slow = jax.lax.fori_loop(0, 200, lambda _, y: jnp.sin(y) + one, jnp.full(1 << 12, one))
    late = x + (slow.max() > 1e6)
    return late.min(), late.max()


def wrong(ds: Any) -> int:
    """How many batches were not `STEPS` numbers from 0 on, when a step read them."""
    running: deque[Any] = deque()
    seen: list[tuple[int, int]] = []
    with gm.jax.device_put(ds, buffer=DEPTH) as batches:
        for batch in batches:
            running.append(step(batch["x"], np.float32(1)))
            del batch
            # The next batches are under way while this step reads its own.
            if len(running) > 1:
                seen.append(tuple(map(int, running.popleft())))
        seen += [tuple(map(int, last)) for last in running]
    assert len(seen) == STEPS
    return sum(pair != (x, x) for x, pair in enumerate(seen))


def out_of_slots(offset: int) -> gm.MapDataset:
    return gm.MapDataset.range(STEPS).map(Slots(DEPTH + 6, offset).batch)


def from_a_worker() -> gm.IterDataset:
    ds = gm.MapDataset.range(STEPS).map(lambda x: {"x": np.full(NUMBERS, x, np.int32)}).to_iter_dataset()
    return ds.mp_prefetch(num_workers=1, ram_budget="286MiB", worker_heap="192MiB", max_element="2MiB")


def without_waiting(ds: Any) -> int:
    """The same where neither we nor JAX keep the memory: the wait is taken out."""
    put: Callable[..., Any] = _target.Target.put
    made = _iterator.Sent

    def put_what_nobody_keeps(self: Any, batch: Any, part: Any = None) -> Any:
        return put(self, {"x": np.asarray(Owner(batch["x"]))}, part)

    def sent(state: Any, batch: Any = None, host: Any = None, **more: Any) -> Any:
        return made(state, batch, None, **more)

    _target.Target.put, _iterator.Sent = put_what_nobody_keeps, sent  # type: ignore[method-assign,misc,assignment]
    try:
        return wrong(ds)
    finally:
        _target.Target.put, _iterator.Sent = put, made  # type: ignore[method-assign,misc]


told = {
    "shared": wrong(out_of_slots(0)),
    "copied": wrong(out_of_slots(4)),
    "from a worker": wrong(from_a_worker()),
    # A machine with little to do may win the race once.
    "without waiting": max(without_waiting(out_of_slots(0)) for _ in range(3)),
}
# Whatever a plugin calls itself: JAX's own client for the CPU is there beside it.
print(json.dumps({"own": jax.devices()[0].client is jax.devices("cpu")[0].client, **told}))

"""Exchange of a few numbers between processes, by a computation over their shared devices."""

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import jax
import numpy as np

from gristmill import _errors

_jax = cast("Any", jax)

#: A process and the number that it sent.
Told: TypeAlias = tuple[int, int | None]

_NONE = -2

#: Status of the next batch of a process.
FAILED, ENDED, READY = -1, 0, 1


def _same(told: Any) -> Any:
    return told


class Agreement:
    """The processes of a sharding. All processes must call `tell` equally often and in the same order.

    The exchange is a computation on the devices, queued after earlier computations like a step of the trainer. `read`
    waits for its result.
    """

    def __init__(self, sharding: Any) -> None:
        devices = sorted(sharding.device_set, key=lambda device: device.id)
        self._processes = [device.process_index for device in devices]
        mesh = jax.sharding.Mesh(np.array(devices), ("device",))
        self._each = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("device"))
        everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        self._gather = _jax.jit(_same, out_shardings=everywhere)

    def tell(self, *numbers: int) -> Any:
        """Sends numbers to all processes. Returns a handle for `read`."""
        mine = self._processes.count(_jax.process_index())
        local = np.tile(np.array(numbers, np.int32), (mine, 1))
        shape = (len(self._processes), len(numbers))
        return self._gather(_jax.make_array_from_process_local_data(self._each, local, shape))

    def read(self, told: Any) -> dict[int, list[int]]:
        """Returns the numbers of each process. Blocks until all processes have sent theirs."""
        return dict(sorted(zip(self._processes, np.asarray(told).tolist(), strict=True)))

    def verdict(self, told: Any, own: Exception | None) -> Exception | None:
        """Returns the exception that ends all processes after the statuses in `told`; `None` if all are `READY`."""
        said = {process: word for process, (word,) in self.read(told).items()}
        failed = [process for process, word in said.items() if word == FAILED]
        if own is not None and not isinstance(own, StopIteration):
            return own
        if failed:
            message = f"process {failed[0]} failed at this batch, so all processes end"
            return _errors.make("data", message, f"see the error of process {failed[0]}")
        return StopIteration() if ENDED in said.values() else None

    def compare(self, settings: Mapping[str, int | None]) -> dict[str, tuple[Told, Told]]:
        """Returns the settings that differ between processes, each with two processes and their values."""
        numbers = [_NONE if value is None else value for value in settings.values()]
        told = self.read(self.tell(*numbers))
        different: dict[str, tuple[Told, Told]] = {}
        for at, name in enumerate(settings):
            said = [(process, None if row[at] == _NONE else row[at]) for process, row in told.items()]
            other = next((pair for pair in said if pair[1] != said[0][1]), None)
            if other is not None:
                different[name] = said[0], other
        return different

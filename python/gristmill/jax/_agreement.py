"""What processes tell each other: a few numbers from each, by a computation over the devices that they share."""

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import jax
import numpy as np

from gristmill import _errors

_jax = cast("Any", jax)

#: A process, and what it said.
Told: TypeAlias = tuple[int, int | None]

_NONE = -2

#: What a process says of its next batch.
FAILED, ENDED, READY = -1, 0, 1


def _same(told: Any) -> Any:
    return told


class Agreement:
    """The processes of one sharding. Each of them must tell as often as the others, and in the same order.

    What is told crosses the devices like a step of the trainer, behind those that were started before. It is there when
    it is read, which is later.
    """

    def __init__(self, sharding: Any) -> None:
        devices = sorted(sharding.device_set, key=lambda device: device.id)
        self._processes = [device.process_index for device in devices]
        mesh = jax.sharding.Mesh(np.array(devices), ("device",))
        self._each = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("device"))
        everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        self._gather = _jax.jit(_same, out_shardings=everywhere)

    def tell(self, *numbers: int) -> Any:
        """What all processes tell with this call: to be given to `read`."""
        mine = self._processes.count(_jax.process_index())
        local = np.tile(np.array(numbers, np.int32), (mine, 1))
        shape = (len(self._processes), len(numbers))
        return self._gather(_jax.make_array_from_process_local_data(self._each, local, shape))

    def read(self, told: Any) -> dict[int, list[int]]:
        """The numbers of each process. It waits until all have told theirs."""
        return dict(sorted(zip(self._processes, np.asarray(told).tolist(), strict=True)))

    def verdict(self, told: Any, own: Exception | None) -> Exception | None:
        """Why no process goes on behind what all told, each one of `FAILED`, `ENDED` and `READY`; `None` if all go on."""
        said = {process: word for process, (word,) in self.read(told).items()}
        failed = [process for process, word in said.items() if word == FAILED]
        if own is not None and not isinstance(own, StopIteration):
            return own
        if failed:
            message = f"process {failed[0]} could not make this batch, so no process has it"
            return _errors.make("data", message, f"process {failed[0]} raised what went wrong")
        return StopIteration() if ENDED in said.values() else None

    def compare(self, settings: Mapping[str, int | None]) -> dict[str, tuple[Told, Told]]:
        """Those of `settings` that are not the same on all processes: for each, two processes that differ in it."""
        numbers = [_NONE if value is None else value for value in settings.values()]
        told = self.read(self.tell(*numbers))
        different: dict[str, tuple[Told, Told]] = {}
        for at, name in enumerate(settings):
            said = [(process, None if row[at] == _NONE else row[at]) for process, row in told.items()]
            other = next((pair for pair in said if pair[1] != said[0][1]), None)
            if other is not None:
                different[name] = said[0], other
        return different

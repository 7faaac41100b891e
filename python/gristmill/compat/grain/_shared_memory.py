"""Arrays in shared memory of the operating system, which another process may attach to by name."""

import dataclasses
from multiprocessing import shared_memory
from typing import Any

import numpy as np


@dataclasses.dataclass(slots=True, frozen=True)
class SharedMemoryArrayMetadata:
    """What another process needs to attach to a `SharedMemoryArray`."""

    name: str
    shape: tuple[int, ...]
    dtype: Any

    def close_and_unlink_shm(self) -> None:
        """Gives the memory back to the operating system."""
        memory = shared_memory.SharedMemory(name=self.name, create=False)
        memory.close()
        memory.unlink()


class SharedMemoryArray(np.ndarray[Any, Any]):
    """A NumPy array in shared memory."""

    shm: shared_memory.SharedMemory | None
    _unlink_on_del: bool

    def __new__(cls, shape: Any, dtype: Any = float) -> "SharedMemoryArray":
        """An array of zeros in memory of its own."""
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        nbytes = int(np.prod(sizes, dtype=np.int64)) * np.dtype(dtype).itemsize
        memory = shared_memory.SharedMemory(create=True, size=max(nbytes, 1))
        return cls._attached(memory, sizes, dtype)

    @classmethod
    def _attached(cls, memory: shared_memory.SharedMemory, shape: tuple[int, ...], dtype: Any) -> "SharedMemoryArray":
        array = super().__new__(cls, shape, dtype, memory.buf)
        array.shm = memory
        array._unlink_on_del = False
        return array

    def __array_finalize__(self, obj: Any) -> None:
        self.shm = getattr(obj, "shm", None)
        self._unlink_on_del = False

    @classmethod
    def from_metadata(cls, metadata: SharedMemoryArrayMetadata) -> "SharedMemoryArray":
        """The array that `metadata` was taken of."""
        memory = shared_memory.SharedMemory(name=metadata.name, create=False)
        return cls._attached(memory, metadata.shape, metadata.dtype)

    @property
    def metadata(self) -> SharedMemoryArrayMetadata:
        """What another process needs to attach to it."""
        if self.shm is None:
            raise ValueError("the array is a result of computing, and not in shared memory")
        return SharedMemoryArrayMetadata(self.shm.name, self.shape, self.dtype)

    def unlink_on_del(self) -> None:
        """Gives the memory back when the array is no longer used."""
        self._unlink_on_del = True

    def __del__(self) -> None:
        if getattr(self, "_unlink_on_del", False) and self.shm is not None:
            self.shm.unlink()


def shared(leaf: Any) -> Any:
    """A copy of an array in shared memory; anything else, and what refers to Python objects, as it is."""
    if not isinstance(leaf, np.ndarray) or leaf.dtype.hasobject:
        return leaf
    array = SharedMemoryArray(leaf.shape, leaf.dtype)
    np.copyto(array, leaf, casting="no")
    return array

"""Arrays in the operating system's shared memory, to which another process attaches by name."""

import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import shared_memory
from typing import Any, ClassVar

import numpy as np


@dataclasses.dataclass(slots=True, frozen=True)
class SharedMemoryArrayMetadata:
    """The data that another process needs to attach to a `SharedMemoryArray`."""

    name: str
    shape: tuple[int, ...]
    dtype: Any

    def close_and_unlink_shm(self) -> None:
        """Frees the memory."""
        memory = shared_memory.SharedMemory(name=self.name, create=False)
        memory.close()
        memory.unlink()


class SharedMemoryArray(np.ndarray[Any, Any]):
    """A NumPy array in shared memory."""

    shm: shared_memory.SharedMemory | None
    _unlink_on_del: bool
    # Threads that free memory, if enabled, and the limit of pending requests.
    _threads: ClassVar[ThreadPoolExecutor | None] = None
    _waiting: ClassVar[threading.Semaphore] = threading.Semaphore(0)

    def __new__(cls, shape: Any, dtype: Any = float) -> "SharedMemoryArray":
        """Makes an array of zeros in new shared memory."""
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        nbytes = int(np.prod(sizes, dtype=np.int64)) * np.dtype(dtype).itemsize
        memory = shared_memory.SharedMemory(create=True, size=max(nbytes, 1))
        return cls.from_shared_memory(memory, sizes, dtype)

    @classmethod
    def from_shared_memory(cls, shm: shared_memory.SharedMemory, shape: Any, dtype: Any) -> "SharedMemoryArray":
        """Returns the array in `shm`."""
        array = super().__new__(cls, shape, dtype, shm.buf)
        array.shm = shm
        array._unlink_on_del = False
        return array

    def __array_finalize__(self, obj: Any) -> None:
        self.shm = getattr(obj, "shm", None)
        self._unlink_on_del = False

    @classmethod
    def from_metadata(cls, metadata: SharedMemoryArrayMetadata) -> "SharedMemoryArray":
        """Attaches to the array described by `metadata`."""
        memory = shared_memory.SharedMemory(name=metadata.name, create=False)
        return cls.from_shared_memory(memory, metadata.shape, metadata.dtype)

    @property
    def metadata(self) -> SharedMemoryArrayMetadata:
        """The data that another process needs to attach to the array."""
        if self.shm is None:
            raise ValueError("the array is a result of computing, and not in shared memory")
        return SharedMemoryArrayMetadata(self.shm.name, self.shape, self.dtype)

    def unlink_on_del(self) -> None:
        """Frees the memory when the array is garbage-collected."""
        self._unlink_on_del = True

    @classmethod
    def enable_async_del(cls, num_threads: int = 1, max_outstanding_requests: int = 50) -> None:
        """Frees memory on threads from now on, unless too many requests are pending."""
        if SharedMemoryArray._threads is None:
            SharedMemoryArray._waiting = threading.Semaphore(max(max_outstanding_requests, num_threads))
            SharedMemoryArray._threads = ThreadPoolExecutor(num_threads)

    @classmethod
    def _disable_async_del(cls) -> None:
        SharedMemoryArray._threads = None

    @classmethod
    def close_shm_async(cls, shm: shared_memory.SharedMemory, unlink: bool) -> None:
        """Frees memory on one of these threads."""
        _give_back(shm, unlink)
        SharedMemoryArray._waiting.release()

    def __del__(self) -> None:
        # A view has an array as its base, and does not own the memory.
        if not getattr(self, "_unlink_on_del", False) or self.shm is None or isinstance(self.base, np.ndarray):
            return
        threads = SharedMemoryArray._threads
        if threads is not None and SharedMemoryArray._waiting.acquire(blocking=False):
            threads.submit(SharedMemoryArray.close_shm_async, self.shm, True)
        else:
            _give_back(self.shm, True)


def _give_back(shm: shared_memory.SharedMemory, unlink: bool) -> None:
    if unlink:
        shm.unlink()


def shared(leaf: Any) -> Any:
    """Returns a copy of an array in shared memory; arrays of Python objects and other leaves are returned unchanged."""
    if not isinstance(leaf, np.ndarray) or leaf.dtype.hasobject:
        return leaf
    array = SharedMemoryArray(leaf.shape, leaf.dtype)
    np.copyto(array, leaf, casting="no")
    return array

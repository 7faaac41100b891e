"""NumPy generators, one per thread, positioned at the random numbers of an element."""

import threading
from typing import Any

import numpy as np


class Generators:
    """Reused generators, set to the state of `numpy.random.Generator(Philox(key=key, counter=[0, 0, 0, index]))`."""

    def __init__(self, key: tuple[int, int]) -> None:
        self._key = np.array(key, dtype=np.uint64)
        self._threads = threading.local()

    def at(self, index: int) -> np.random.Generator:
        """Returns the generator of element `index`. The next call on this thread reuses the object."""
        generator: np.random.Generator | None = getattr(self._threads, "generator", None)
        if generator is None:
            generator = np.random.Generator(np.random.Philox(key=self._key))
            self._threads.generator = generator
            self._threads.start = dict(generator.bit_generator.state)
        start: dict[str, Any] = self._threads.start
        start["state"]["counter"][3] = index
        generator.bit_generator.state = start
        return generator

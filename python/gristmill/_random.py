"""NumPy's generators, one for each thread, set to the random numbers of an element."""

import threading
from typing import Any

import numpy as np


class Generators:
    """Makes `numpy.random.Generator(Philox(key=key, counter=[0, 0, 0, index]))`, without making it anew each time."""

    def __init__(self, key: tuple[int, int]) -> None:
        self._key = np.array(key, dtype=np.uint64)
        self._threads = threading.local()

    def at(self, index: int) -> np.random.Generator:
        """The generator of one element; it is used again for the next one on this thread."""
        generator: np.random.Generator | None = getattr(self._threads, "generator", None)
        if generator is None:
            generator = np.random.Generator(np.random.Philox(key=self._key))
            self._threads.generator = generator
            self._threads.start = dict(generator.bit_generator.state)
        start: dict[str, Any] = self._threads.start
        start["state"]["counter"][3] = index
        generator.bit_generator.state = start
        return generator

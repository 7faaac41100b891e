"""Seeds that nobody gave: derived from the nearest `seed()` before a random stage."""

from collections import deque
from typing import Any

import numpy as np


def default_seed(ds: Any) -> int | None:
    """The seed of `ds` from all the nearest `seed()` stages before it, each with its distance; `None` without one."""
    words: list[int] = []
    waiting: deque[tuple[Any, int]] = deque([(ds, 0)])
    while waiting:
        node, depth = waiting.popleft()
        if node._seed_root is not None:
            words += [node._seed_root, depth]
        else:
            waiting.extend((parent, depth + 1) for parent in node.parents)
    return int(np.random.SeedSequence(words).generate_state(1, np.uint32)[0]) if words else None

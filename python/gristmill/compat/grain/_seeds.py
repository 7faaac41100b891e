"""Default seeds, derived from the nearest `seed()` before a random stage."""

from collections import deque
from typing import Any

import numpy as np


def default_seed(ds: Any) -> int | None:
    """Returns a seed derived from the nearest `seed()` stages before `ds` and their distances; `None` without them."""
    words: list[int] = []
    waiting: deque[tuple[Any, int]] = deque([(ds, 0)])
    while waiting:
        node, depth = waiting.popleft()
        if node._seed_root is not None:
            words += [node._seed_root, depth]
        else:
            waiting.extend((parent, depth + 1) for parent in node._seed_parents)
    return int(np.random.SeedSequence(words).generate_state(1, np.uint32)[0]) if words else None


def numbers_of(seed: int | None, what: str) -> int:
    """Returns the seed. Raises `ValueError`, with the ways to set a seed, if it is `None` or out of range."""
    if seed is None:
        raise ValueError(
            f"`{what}` requires a seed. Please either provide it with `ds.seed(seed)` before it "
            f"or pass it directly with `{what}(seed=seed)`."
        )
    if not 0 <= seed <= np.iinfo(np.uint32).max:
        raise ValueError(f"Seed must be an integer between 0 and 2**32-1 (got {seed=}).")
    return int(seed)

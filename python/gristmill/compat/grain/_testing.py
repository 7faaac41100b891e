"""Checks of user pipelines."""

import json
from typing import Any

import numpy as np

from gristmill.compat.grain import _tree_lib


def _assert_equal(actual: Any, expected: Any) -> None:
    _tree_lib.assert_same_structure(actual, expected)
    for (path, x), (_, y) in zip(
        _tree_lib.flatten_with_path(actual), _tree_lib.flatten_with_path(expected), strict=True
    ):
        np.testing.assert_array_equal(x, y, err_msg=f"at {path}")


def assert_equal_output_after_checkpoint(ds: Any) -> None:
    """Restores a pass at every element and fails if its continuation differs from the original pass.

    `ds` is an `IterDataset` or a `DataLoader` that ends and is small enough to be read many times.
    """
    iterator = ds.__iter__()
    states: list[Any] = []
    elements: list[Any] = []
    while True:
        states.append(iterator.get_state())
        try:
            elements.append(next(iterator))
        except StopIteration:
            break
    assert elements, "the pipeline yields nothing, and so nothing is tested"
    for done, state in enumerate(states):
        restored = ds.__iter__()
        # The state as a checkpoint on disk would contain it.
        restored.set_state(state if isinstance(state, bytes) else json.loads(json.dumps(state)))
        rest = list(restored)
        assert len(rest) == len(elements) - done, f"{len(rest)} elements behind element {done} of {len(elements)}"
        for actual, expected in zip(rest, elements[done:], strict=True):
            _assert_equal(actual, expected)

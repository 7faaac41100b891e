"""Trees of arrays as flat dicts, which native stages take, and back."""

from typing import Any

import numpy as np

from gristmill.compat.grain import _tree_lib


class Columns:
    """The columns of the elements of one stream, which are all trees of one shape.

    Each element says its own shape again, so it holds for a resumed pass as for the first.
    """

    def __init__(self) -> None:
        self._tree: Any = None

    def flat(self, tree: Any) -> dict[str, Any]:
        """The leaves, numbered."""
        self._tree = tree
        return {str(at): leaf for at, leaf in enumerate(_tree_lib.flatten(tree))}

    def rows(self, batch: Any) -> dict[str, Any]:
        """The leaves of a batch, which must have as many rows each."""
        if self._tree is not None:
            try:
                _tree_lib.assert_same_structure(self._tree, batch)
            except (TypeError, ValueError) as error:
                raise ValueError(
                    "Parent element has structure that differs from the one before it: "
                    f"{_tree_lib.describe(self._tree)} and {_tree_lib.describe(batch)}"
                ) from error
        columns = {name: np.asarray(leaf) for name, leaf in self.flat(batch).items()}
        for name, column in columns.items():
            if column.ndim == 0:
                raise ValueError(f"leaf {name} of a batch has no first dimension: its shape is ()")
            if column.shape[0] == 0:
                raise ValueError(f"leaf {name} of a batch has 0 rows")
        if len({column.shape[0] for column in columns.values()}) > 1:
            rows = [column.shape[0] for column in columns.values()]
            raise ValueError(f"the leaves of a batch have different numbers of rows: {rows}")
        return columns

    def tree(self, columns: dict[str, Any]) -> Any:
        """The tree again."""
        return _tree_lib.unflatten_as(self._tree, [columns[str(at)] for at in range(len(columns))])

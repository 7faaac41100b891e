"""Conversion between trees of arrays and the flat dicts that native stages take."""

from typing import Any

import numpy as np

from gristmill.compat.grain import _tree_lib


class Columns:
    """Columns of the elements of a stream. All elements must be trees of equal structure.

    Each element sets the structure anew, so the conversion also works after a resume.
    """

    def __init__(self) -> None:
        self._tree: Any = None

    def flat(self, tree: Any) -> dict[str, Any]:
        """Returns the leaves by number, and keeps the structure of the tree."""
        self._tree = tree
        return {str(at): leaf for at, leaf in enumerate(_tree_lib.flatten(tree))}

    def rows(self, batch: Any) -> dict[str, Any]:
        """Returns the leaves of a batch. All leaves must have an equal number of rows."""
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
        """Returns the tree with these leaves."""
        return _tree_lib.unflatten_as(self._tree, [columns[str(at)] for at in range(len(columns))])

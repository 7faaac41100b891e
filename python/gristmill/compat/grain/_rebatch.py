"""Regrouping of batches."""

from typing import Any, Literal

import gristmill as gm
from gristmill.compat.grain import _tree_lib
from gristmill.compat.grain._base import ShapeDtypeStruct
from gristmill.compat.grain._columns import Columns
from gristmill.compat.grain._dataset import IterDataset
from gristmill.compat.grain._stages import CoreIterDataset


class RebatchIterDataset(CoreIterDataset[Any]):
    """Batches of `batch_size` rows from batches of any size."""

    def __init__(self, parent: IterDataset[Any], batch_size: int, drop_remainder: bool = False) -> None:
        super().__init__(parent)
        if batch_size <= 0:
            raise ValueError(f"batch_size must be positive, got {batch_size}.")
        self._batch_size = batch_size
        self._drop_remainder = drop_remainder

    def _behind(self, core: gm.IterDataset) -> gm.IterDataset:
        columns = Columns()
        remainder: Literal["drop", "keep"] = "drop" if self._drop_remainder else "keep"
        return core.map(columns.rows).rebatch(self._batch_size, remainder=remainder).map(columns.tree)

    @property
    def _element_spec(self) -> Any:
        def rows(leaf: Any) -> ShapeDtypeStruct:
            return ShapeDtypeStruct((self._batch_size, *leaf.shape[1:]), leaf.dtype)

        return _tree_lib.map_structure(rows, self._parent._element_spec)

    def __str__(self) -> str:
        return f"RebatchIterDataset(batch_size={self._batch_size}, drop_remainder={self._drop_remainder})"

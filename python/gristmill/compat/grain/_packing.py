"""Packing of sequences of different lengths into rows of equal length, by the core."""

import enum
import logging
import pickle
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, cast

import numpy as np

import gristmill as gm
from gristmill.compat.grain import _tree_lib
from gristmill.compat.grain._base import ShapeDtypeStruct
from gristmill.compat.grain._dataset import IterDataset
from gristmill.compat.grain._iterator import CoreIterator
from gristmill.compat.grain._stages import CoreIterDataset

_LOG = logging.getLogger(__name__)

# Separates the keys of a nested feature.
_SEPARATOR = "\x1f"
_SUFFIXES = ("_segment_ids", "_positions")


def get_non_sequence_meta_features(length_struct: Any, meta_features: Sequence[str]) -> set[str]:
    """Returns the meta features without a length, which are collected instead of packed."""
    return {name for name in meta_features if name not in length_struct}


class _Features:
    """Conversion of elements to flat dicts of the features to pack, and of rows back to trees.

    Other features are dropped, or are an error if `exact`.
    """

    def __init__(self, length_struct: Mapping[str, Any], meta_features: Sequence[str], exact: bool) -> None:
        self._exact = exact
        self._struct = length_struct
        self._collected = get_non_sequence_meta_features(length_struct, meta_features)
        self._nested = [name for name, length in length_struct.items() if not isinstance(length, int)]
        for name in self._nested:
            if name not in meta_features:
                raise ValueError(
                    f"Failed to extract segment ids for '{name}', which has type {type(length_struct[name])} rather than "
                    "np.ndarray. Perhaps it should be marked as a meta feature?"
                )
        self.lengths = self.flat(length_struct)
        self.meta = [
            flat for name in meta_features for flat in (self._names(name) if name in self._nested else [name])
        ]

    def _names(self, feature: str) -> list[str]:
        return [name for name in self.lengths if name.split(_SEPARATOR)[0] == feature]

    def flat(self, struct: Any) -> dict[str, Any]:
        """Returns the leaves of a tree like the lengths, under the core's feature names."""
        if struct is None:
            return {}
        return {_SEPARATOR.join(map(str, path)): leaf for path, leaf in _tree_lib.flatten_with_path(struct)}

    def element(self, element: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the features of an element to pack."""
        # Pickled, so that a collected value keeps its type: a Python number stays a Python number.
        rest = {name: pickle.dumps(value) for name, value in element.items() if name in self._collected}
        known = element if self._exact else self._struct
        packed = {name: element[name] for name in element if name in known and name not in rest}
        leaves: list[Any] = []
        try:
            _tree_lib.map_structure_up_to(self._struct, leaves.append, packed)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"Parent element has structure {_tree_lib.describe(packed)}, "
                f"but the target lengths have structure {_tree_lib.describe(self._struct)}."
            ) from error
        return {**{name: np.atleast_1d(leaf) for name, leaf in zip(self.lengths, leaves, strict=True)}, **rest}

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        """Returns a row with its nested features restored and its collected features unpickled.

        Arrays are copied: the core's rows share memory and are read-only, but Grain's are writable.
        """
        row = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in row.items()}
        for name in self._collected & row.keys():
            row[name] = [pickle.loads(value) for value in row[name]]
        for name in self._nested:
            row[name] = _tree_lib.unflatten_as(self._struct[name], [row.pop(flat) for flat in self._names(name)])
        return row


class _PackedIterDataset(CoreIterDataset[Any]):
    """Packed rows. `length_struct` has the row lengths; `meta_features` names features that are not sequences."""

    _EXACT: ClassVar[bool] = False

    def __init__(self, parent: IterDataset[Any], length_struct: Any, meta_features: Sequence[str]) -> None:
        super().__init__(parent)
        self._length_struct = length_struct
        self._meta_features = meta_features

    def _behind(self, core: gm.IterDataset) -> gm.IterDataset:
        features = _Features(self._length_struct, self._meta_features, self._EXACT)
        elements = core.map(features.element)
        if not set(self._length_struct) - set(self._meta_features):
            # Raised per element, after the check of its features, whose error is more specific.
            return elements.map(_refuse_meta_features)
        return self._packed(elements, features)

    def _packed(self, elements: gm.IterDataset, features: _Features) -> gm.IterDataset:
        raise NotImplementedError

    @property
    def _element_spec(self) -> Any:
        return _packed_spec(self._parent._element_spec, self._length_struct, self._meta_features)


def _refuse_meta_features(_element: Any) -> Any:
    raise ValueError("packing needs at least one feature that is not a meta feature")


class PackingDatasetIterator(CoreIterator):
    """A pass over packed rows."""

    _row_bytes: int | None = None

    def __next__(self) -> Any:
        row = super().__next__()
        if self._row_bytes is None:
            # Grain also counts a number per feature and row: the first free cell.
            features = sum(name + _SUFFIXES[0] in row for name in row)
            self._row_bytes = 8 * features + sum(leaf.nbytes for leaf in row.values() if isinstance(leaf, np.ndarray))
        return row

    def get_packed_batch_size_bytes(self) -> int:
        """Returns the bytes of the rows that are packed together. Raises `ValueError` before the first row."""
        if self._row_bytes is None:
            raise ValueError("No current batch. Size can only be computed after at least one element has been packed.")
        rows: int = cast(PackIterDataset, self._dataset)._num_packing_bins
        return rows * self._row_bytes


class PackIterDataset(_PackedIterDataset):
    """Sequences packed into `num_packing_bins` rows at a time.

    DIFFERENCE: collected meta features of rows with different numbers of sequences cannot be batched. Grain's batch
    silently drops the values that other rows do not have.
    """

    _PASS = ("_packing", "PackingDatasetIterator")
    _METHOD: ClassVar[Literal["first_fit_pack", "best_fit_pack"]]

    def __init__(
        self,
        parent: IterDataset[Any],
        *,
        length_struct: Any,
        num_packing_bins: int,
        seed: int = 0,
        shuffle_bins: bool = True,
        shuffle_bins_group_by_feature: str | None = None,
        meta_features: Sequence[str] = (),
        pack_alignment_struct: Any = None,
        padding_struct: Any = None,
        max_sequences_per_bin: int | None = None,
    ) -> None:
        super().__init__(parent, length_struct, meta_features)
        if max_sequences_per_bin is not None and max_sequences_per_bin <= 0:
            raise ValueError(
                "If specified, `max_sequences_per_bin` must be a positive integer, "
                f"but got {max_sequences_per_bin}."
            )
        self._num_packing_bins = num_packing_bins
        self._seed = seed
        self._shuffle_bins = shuffle_bins
        self._group_by = shuffle_bins_group_by_feature
        self._alignment = pack_alignment_struct
        self._padding = padding_struct
        self._max_sequences = max_sequences_per_bin

    def _packed(self, elements: gm.IterDataset, features: _Features) -> gm.IterDataset:
        packed = getattr(elements, self._METHOD)(
            length=features.lengths,
            num_packing_bins=self._num_packing_bins,
            seed=self._seed,
            shuffle_bins=self._shuffle_bins,
            **_given(
                shuffle_bins_group_by_feature=self._group_by,
                max_sequences_per_bin=self._max_sequences,
                padding=_numbers(features.flat(self._padding)),
                align=_numbers(features.flat(self._alignment)),
                meta_features=features.meta or None,
            ),
        )
        return cast(gm.IterDataset, packed.map(features.row))

    def __str__(self) -> str:
        return f"{type(self).__name__}(num_packing_bins={self._num_packing_bins})"


def _given(**arguments: Any) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}


def _numbers(arguments: dict[str, Any]) -> dict[str, Any] | None:
    """Converts NumPy numbers to plain numbers."""
    plain = {name: value.item() if hasattr(value, "item") else value for name, value in arguments.items()}
    return plain or None


def _packed_spec(spec: Any, length_struct: Any, meta_features: Sequence[str]) -> Any:
    """Returns the spec of a row."""
    out: dict[str, Any] = {}
    for name, leaf in spec.items():
        if name in get_non_sequence_meta_features(length_struct, meta_features):
            out[name] = leaf
            continue
        length = length_struct[name]
        out[name] = ShapeDtypeStruct((length, *leaf.shape[1:]), leaf.dtype)
        if name not in meta_features:
            out.update({name + suffix: ShapeDtypeStruct((length,), np.dtype(np.int32)) for suffix in _SUFFIXES})
    return out


class FirstFitPackIterDataset(PackIterDataset):
    """Packing by first fit: each sequence goes into the first row with enough room."""

    _METHOD = "first_fit_pack"


class BestFitPackIterDataset(PackIterDataset):
    """Packing by best fit: each sequence goes into the fullest row with enough room."""

    _METHOD = "best_fit_pack"


class BOSHandling(enum.Enum):
    """Treatment of the first token of a sequence."""

    DO_NOTHING = 1
    REPLACE_FIRST_TOKEN_WITH_BOS = 2


class ConcatThenSplitIterDataset(_PackedIterDataset):
    """Concatenated sequences, split into rows.

    DIFFERENCE: with several features, no feature loses or repeats a token if an element is split twice.
    """

    _EXACT = True

    def __init__(
        self,
        parent: IterDataset[Any],
        *,
        length_struct: Mapping[str, int],
        meta_features: Sequence[str] = (),
        split_full_length_features: bool = True,
        bos_handling: BOSHandling = BOSHandling.DO_NOTHING,
        bos_features: Sequence[str] = (),
        bos_token_id: int | None = None,
    ) -> None:
        super().__init__(parent, length_struct, meta_features)
        if bos_handling is BOSHandling.REPLACE_FIRST_TOKEN_WITH_BOS and bos_token_id is None:
            raise ValueError("`bos_token_id` must be set if `bos_handling` is `REPLACE_FIRST_TOKEN_WITH_BOS`.")
        if bos_handling is BOSHandling.DO_NOTHING and (bos_token_id is not None or bos_features):
            raise ValueError(
                f"bos_handling={bos_handling} indicates that BOS handling is not used. "
                "So bos_token_id and bos_features should not be set."
            )
        if both := sorted(set(meta_features) & set(bos_features)):
            raise ValueError(f"bos_features and meta_features should not overlap, and both have {both}")
        self._split_full_length_features = split_full_length_features
        replaces = bos_handling is BOSHandling.REPLACE_FIRST_TOKEN_WITH_BOS
        # As in Grain, the default of `bos_features` is empty, so no token is replaced.
        if replaces and not bos_features:
            _LOG.warning("bos_handling replaces no token, for bos_features names no feature: name those to replace it in")
        self._bos: dict[str, Any] = {}
        if replaces and bos_features:
            self._bos = {
                "bos_handling": bos_handling.name.lower(),
                "bos_features": list(bos_features),
                "bos_token_id": bos_token_id,
            }

    def _packed(self, elements: gm.IterDataset, features: _Features) -> gm.IterDataset:
        packed = elements.concat_then_split_pack(
            length=features.lengths,
            split_full_length_features=self._split_full_length_features,
            **self._bos,
            **_given(meta_features=features.meta or None),
        )
        return packed.map(features.row)

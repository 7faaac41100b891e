"""Renames packed batches to the keys that MaxText reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gristmill import _errors

_Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class MaxTextKeys:
    """The function that `maxtext_keys` returns."""

    feature: str | None
    padding: int
    ignored_ids: tuple[int, ...]

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        feature, (segments_key, positions_key) = self._names(batch)
        inputs, segments, positions = (np.asarray(batch[key]) for key in (feature, segments_key, positions_key))
        if not inputs.shape == segments.shape == positions.shape or inputs.ndim == 0:
            shapes = f"{inputs.shape}, {segments.shape} and {positions.shape}"
            message = f"{feature!r}, its segment ids and its positions have shapes {shapes}; they are rows of one shape"
            raise _errors.make("data", message, "pack in front of it")
        # A token has a target if the next cell belongs to the same segment. The last token of a row has none.
        follows = np.zeros(inputs.shape, bool)
        np.equal(segments[..., 1:], segments[..., :-1], out=follows[..., :-1])
        follows &= segments != 0
        targets = np.full_like(inputs, self.padding)
        np.copyto(targets[..., :-1], inputs[..., 1:], where=follows[..., :-1])
        if self.ignored_ids:
            counts = follows & ~np.isin(targets, self.ignored_ids)
        else:
            counts = follows
        six = {
            "inputs": inputs,
            "inputs_segmentation": segments,
            "inputs_position": positions,
            "targets": targets,
            "targets_segmentation": np.where(counts, segments, segments.dtype.type(0)),
            "targets_position": np.where(follows, positions, positions.dtype.type(0)),
        }
        used = (feature, segments_key, positions_key)
        others = {key: value for key, value in batch.items() if key not in used}
        if taken := sorted(six.keys() & others.keys()):
            raise _errors.make("data", f"the batch has {', '.join(map(repr, taken))} already", None)
        return {**six, **others}

    def _names(self, batch: Mapping[str, Any]) -> tuple[str, tuple[str, str]]:
        """Returns the packed feature and the names of its segment ids and positions."""
        candidates = [self.feature] if self.feature is not None else list(batch)
        found = [(name, keys) for name in candidates if name in batch for keys in _beside(name) if batch.keys() >= set(keys)]
        if len(found) == 1:
            return found[0]
        what = "no packed feature" if not found else f"several packed features, {[name for name, _ in found]}"
        if self.feature is not None:
            what = f"no {self.feature!r} with segment ids and positions"
        help = "maxtext_keys(feature) names the one to take: those of `*_pack` have NAME_segment_ids and NAME_positions"
        raise _errors.make("data", f"a batch of {sorted(batch)} has {what}", help)


def _beside(feature: str) -> list[tuple[str, str]]:
    """Returns the possible names of the segment ids and positions of a feature."""
    plain = [("segment_ids", "positions")] if feature == "tokens" else []
    return [(f"{feature}_segment_ids", f"{feature}_positions"), *plain]


def maxtext_keys(feature: str | None = None, *, padding: int = 0, ignored_ids: Sequence[int] = ()) -> MaxTextKeys:
    """Returns a function for `map` that gives packed batches or rows the six keys that MaxText trains on.

    `inputs`, `inputs_segmentation` and `inputs_position` are the packed feature, its segment ids and its positions,
    unchanged. `targets` has the shape and dtype of `inputs`, shifted left by one within each sequence:
    `targets[t] = inputs[t + 1]`. The last token of a sequence has no target. There, as in padding, `targets` is
    `padding`, and `targets_segmentation` and `targets_position` are 0, so a loss masked by `targets_segmentation`
    ignores the cell. `targets_segmentation` is also 0 if the target is in `ignored_ids`. Other keys of the batch stay
    unchanged.

    By default, `feature` is the only feature with segment ids and positions. Their names are `NAME_segment_ids` and
    `NAME_positions`, as `first_fit_pack` and the other packing stages write them, or `segment_ids` and `positions`
    beside `tokens`. Packing with `names="maxtext"` yields the same arrays without a second pass over the data. Use this
    function for rows packed by other tools, and for `ignored_ids`. It reads each array once and allocates three arrays
    of its size.

    The function raises `gristmill.DataError` if a batch has no such feature or several, or has one of the six keys
    already.
    """
    return MaxTextKeys(feature, padding, tuple(ignored_ids))

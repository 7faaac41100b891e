"""Packed batches under the names that MaxText reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gristmill import _errors

_Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class MaxTextKeys:
    """The function that `maxtext_keys` makes."""

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
        # A token is followed by a target where the next cell is of the same segment, and not where a row ends.
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
        """The packed feature, and the names of its segment ids and positions."""
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
    """What segment ids and positions of a feature may be called."""
    plain = [("segment_ids", "positions")] if feature == "tokens" else []
    return [(f"{feature}_segment_ids", f"{feature}_positions"), *plain]


def maxtext_keys(feature: str | None = None, *, padding: int = 0, ignored_ids: Sequence[int] = ()) -> MaxTextKeys:
    """A function that gives packed batches, or rows, the six keys that MaxText trains on: for `map`, behind a packing.

    `inputs`, `inputs_segmentation` and `inputs_position` are the packed feature, its segment ids and its positions, as
    they are. `targets` has the shape and dtype of `inputs`, shifted left by one within each sequence:
    `targets[t] = inputs[t + 1]`. The last token of a sequence has no target: there, as in padding, `targets` is
    `padding`, and `targets_segmentation` and `targets_position` are 0, so that a loss masked by `targets_segmentation`
    leaves it out. It leaves out targets that are one of `ignored_ids`, too. What else is in a batch stays as it is.

    Without `feature` it is the one that has segment ids and positions, as `first_fit_pack` and the others name them
    (`NAME_segment_ids`, `NAME_positions`); `tokens`, `segment_ids` and `positions` will do as well. Packing with
    `names="maxtext"` makes the same arrays without a second pass over them; this is for rows that were packed by
    others, and for `ignored_ids`. It reads each array once and makes three of the same size.

    A batch without such a feature, with several, or with one of the six keys beside it, is a `gristmill.DataError`.
    """
    return MaxTextKeys(feature, padding, tuple(ignored_ids))

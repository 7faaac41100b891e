"""Weights of a mix that change during a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

#: Weights of all datasets in order, or by name.
Weights: TypeAlias = Sequence[float] | Mapping[str, float]
#: A first position and the weights from it on; the length of the transition may follow.
Entry: TypeAlias = tuple[int, Weights] | tuple[int, Weights, int]


@dataclasses.dataclass(frozen=True, slots=True)
class Schedule:
    """Weights of a mix that change at certain positions, made by `gm.schedule`.

    Args:
        entries: First positions with their weights and, optionally, the lengths of their transitions.
        over: Length of the transition to each entry after the first that has no own length.
        batch_size: Number by which positions and lengths are multiplied.
    """

    entries: tuple[Entry, ...]
    over: int = 0
    batch_size: int = 1

    def _arguments(self) -> dict[str, Any]:
        """Returns the schedule as pipeline files have it."""
        return {"entries": [_entry(entry) for entry in self.entries], "over": self.over, "batch_size": self.batch_size}


def schedule(entries: Iterable[Entry], *, over: int = 0, batch_size: int = 1) -> Schedule:
    """Makes weights for `mix` that change at certain positions of the mix.

    Positions count elements of the mix, or tokens if the mix has `by="tokens"`. With `batch_size`, they count training
    steps. A dataset with weight 0 is absent. Weights by name may leave datasets out, which then have weight 0.

    The state of a stream contains the entries that have taken effect. It restores with a schedule that has equal
    entries up to its position: later entries may be added or changed.

        >>> import gristmill as gm
        >>> entries = [(0, {"web": 0.7, "math": 0.3}), (160_000, {"web": 0.5, "math": 0.5})]
        >>> weights = gm.schedule(entries, over=2000, batch_size=32)
        >>> web, math = (gm.MapDataset.range(1000).to_iter_dataset() for _ in range(2))
        >>> mixed = gm.IterDataset.mix({"web": web, "math": math}, weights)

    Args:
        entries: Pairs of a position and weights, in order. The first position is 0. A third item is the length of the
            transition to the entry.
        over: Length of the linear transition to each entry after the first, in at most 100 equal steps.
        batch_size: Number by which positions and lengths are multiplied: the elements of a training step.

    Raises:
        TypeError: An entry is not a pair, or not a pair with a length.
    """
    made = tuple(tuple(entry) for entry in entries)
    for number, entry in enumerate(made):
        if len(entry) not in (2, 3):
            forms = "(position, weights) or (position, weights, over)"
            raise TypeError(f"entry {number} of a schedule is {entry!r}, and must be {forms}")
    return Schedule(made, over, batch_size)  # type: ignore[arg-type]


def _entry(entry: Entry) -> dict[str, Any]:
    at, weights, *over = entry
    if isinstance(weights, Mapping):
        plain: Any = {name: float(weight) for name, weight in weights.items()}
    else:
        plain = [float(weight) for weight in weights]
    return {"at": at, "weights": plain, "over": over[0] if over else None}


Schedule.__module__ = "gristmill"

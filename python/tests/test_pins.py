"""What users' states depend on, pinned: the texts of stages, fingerprints, states and elements of pipelines made in Python.

A difference here breaks runs that users have begun. `GRISTMILL_PINS=write` writes `pins.json` anew.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import gristmill as gm
from gristmill.compat import grain

PINS = Path(__file__).with_name("pins.json")
BEFORE = 4
MOST = 60


def double(x: int) -> int:
    return 2 * x


def noise(x: int, rng: np.random.Generator) -> int:
    return x + int(rng.integers(1000))


def even(x: int) -> bool:
    return x % 2 == 0


def record(x: int) -> dict[str, Any]:
    return {"tokens": np.arange(1 + x % 7, dtype=np.int32) + x, "label": x % 3}


class Squares:
    """A source of the user's own."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> int:
        return index * index


class Records(grain.sources.RandomAccessDataSource):
    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> int:
        return index * index

    def __repr__(self) -> str:
        return "Records()"


# A state names the class; where this file lies is no part of it.
Squares.__module__ = Records.__module__ = "users"


def numbers() -> gm.MapDataset:
    return gm.MapDataset.range(50)


NATIVE: dict[str, Callable[[], Iterable[Any]]] = {
    "orders": lambda: numbers().seed(7).shuffle()[3:40:2].repeat(2).to_iter_dataset(),
    "functions": lambda: numbers().map(double).filter(even).random_map(noise, seed=3).to_iter_dataset(),
    "source": lambda: gm.MapDataset.source(Squares()).shuffle(seed=2).to_iter_dataset().batch(3),
    "mix": lambda: gm.MapDataset.mix([numbers(), gm.MapDataset.range(100, 130)], weights=[1, 2]).to_iter_dataset(),
    "streams": lambda: numbers().to_iter_dataset().map(double).filter(even).window_shuffle(8, seed=1).batch(4),
    "first_fit": lambda: (
        numbers().map(record).to_iter_dataset().first_fit_pack(length={"tokens": 16}, num_packing_bins=3, meta_features=["label"])
    ),
    "window_pack": lambda: numbers().map(record).to_iter_dataset().window_pack(length={"tokens": 16}, window=10).batch(2),
    "workers": lambda: numbers().map(double).to_iter_dataset().batch(5).mp_prefetch(num_workers=1, ram_budget="2GiB"),
}

GRAIN: dict[str, Callable[[], Iterable[Any]]] = {
    "orders": lambda: grain.MapDataset.range(50).seed(7).shuffle()[3:40:2].repeat(2).to_iter_dataset(),
    "functions": lambda: grain.MapDataset.range(50).map(double).filter(even).seed(3).random_map(noise).to_iter_dataset(),
    "source": lambda: grain.MapDataset.source(Records()).shuffle(seed=2).batch(3).to_iter_dataset(),
    "mix": lambda: grain.MapDataset.mix(
        [grain.MapDataset.range(50), grain.MapDataset.range(100, 130)], weights=[1, 2]
    ).to_iter_dataset(),
    "first_fit": lambda: grain.experimental.FirstFitPackIterDataset(
        grain.MapDataset.range(50).map(record).map(lambda r: {"tokens": r["tokens"]}).to_iter_dataset(),
        length_struct={"tokens": 16},
        num_packing_bins=3,
    ),
    "loader": lambda: grain.DataLoader(
        data_source=Records(),
        sampler=grain.samplers.IndexSampler(40, shuffle=True, seed=5, num_epochs=1),
        operations=[grain.transforms.Batch(4)],
        worker_count=0,
    ),
}


def digest(elements: Iterable[Any]) -> str:
    """A hash of elements with their types, in order."""
    total = hashlib.sha256()

    def take(value: Any) -> None:
        match value:
            case dict():
                for key in sorted(value):
                    total.update(key.encode())
                    take(value[key])
            case tuple() | list():
                for part in value:
                    take(part)
            case _ if hasattr(value, "segment_ids"):
                take([value.segment_ids, value.positions])
            case _:
                array = np.asarray(value)
                total.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())

    for element in elements:
        take(element)
    return total.hexdigest()[:16]


def pinned(make: Callable[[], Iterable[Any]]) -> dict[str, Any]:
    """All of a pipeline that outlives a run."""
    with_end = iter(make())
    first = [next(with_end) for _ in range(BEFORE)]
    state = with_end.get_state()  # type: ignore[attr-defined]
    rest = [element for element, _ in zip(with_end, range(MOST), strict=False)]
    again = iter(make())
    again.set_state(state)  # type: ignore[attr-defined]
    assert digest(element for element, _ in zip(again, range(MOST), strict=False)) == digest(rest)
    shown = json.loads(state) if isinstance(state, bytes) else state
    shown.pop("crate_version", None)
    return {"state": shown, "first": digest(first), "rest": digest(rest)}


def test_pipelines_are_known_by_what_they_were_known_by() -> None:
    found = {
        f"{of}/{name}": pinned(make) for of, shapes in (("native", NATIVE), ("grain", GRAIN)) for name, make in shapes.items()
    }
    found = json.loads(json.dumps(found))
    if os.environ.get("GRISTMILL_PINS") == "write":
        PINS.write_text(json.dumps(found, indent=1) + "\n")
    before = json.loads(PINS.read_text())
    assert found.keys() == before.keys()
    for name, pins in before.items():
        assert found[name] == pins, name

"""Keys are those of the functions that they were made with: others have other keys, or are found to differ."""

import functools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import gristmill as gm
import numpy as np
import pytest
from gristmill._functions import named

LIMIT = 30


def pipeline(condition: Callable[[Any], object]) -> gm.IterDataset[Any]:
    rows = gm.MapDataset.range(400).map(lambda x: {"tokens": np.arange(x % 40)}).filter(condition)
    return rows.to_iter_dataset().window_pack(length={"tokens": 64}, over_long="split").batch(4)


def over(limit: int) -> Callable[[Any], bool]:
    def condition(element: Any) -> bool:
        return len(element["tokens"]) > limit

    return condition


def compare(limit: int, element: Any) -> bool:
    return len(element["tokens"]) > limit


def by_global(element: Any) -> bool:
    return len(element["tokens"]) > LIMIT


class Filter:
    def __init__(self, limit: int) -> None:
        self.limit = limit

    def filter(self, element: Any) -> bool:
        return len(element["tokens"]) > self.limit


class Slotted:
    __slots__ = ("limit",)

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def __call__(self, element: Any) -> bool:
        return len(element["tokens"]) > self.limit

    def holds(self, element: Any) -> bool:
        return self(element)


def helped(limit: int) -> Callable[[Any], bool]:
    module = ModuleType("helper_of_keys")
    exec(f"M = {limit}\ndef ok(n):\n    return n > M\n", vars(module))
    scope: dict[str, Any] = {"helper_of_keys": module}
    exec("def condition(element): return helper_of_keys.ok(len(element['tokens']))", scope)
    condition: Callable[[Any], bool] = scope["condition"]
    return condition


def with_default(element: Any, limit: int = 30) -> bool:
    return len(element["tokens"]) > limit


def other_default(element: Any, limit: int = 3) -> bool:
    return len(element["tokens"]) > limit


CHANGES: dict[str, tuple[Any, Any]] = {
    "body": (lambda e: len(e["tokens"]) > 30, lambda e: len(e["tokens"]) > 3),
    "closure": (over(30), over(3)),
    "default": (with_default, other_default),
    "object": (Filter(30), Filter(3)),
    "slots": (Slotted(30), Slotted(3)),
    "method": (Slotted(30).holds, Slotted(3).holds),
    "partial": (functools.partial(compare, 30), functools.partial(compare, 3)),
    "a module": (helped(30), helped(3)),
    "a set in a closure": ((lambda kept: lambda e: len(e["tokens"]) in kept)({31, 35}), (lambda kept: lambda e: len(e["tokens"]) in kept)({31, 3})),
    "an array": ((lambda table: lambda e: table[len(e["tokens"])])(np.arange(40) > 30), (lambda table: lambda e: table[len(e["tokens"])])(np.arange(40) > 3)),
}


def rows(batches: Any) -> list[list[int]]:
    return [batch["tokens"].tolist() for batch in batches]


@pytest.mark.parametrize("change", CHANGES)
def test_a_function_that_changes_has_no_keys(tmp_path: Path, change: str) -> None:
    old, new = CHANGES[change]
    pipeline(old).make_keys(tmp_path)
    assert rows(pipeline(old).loader(part=(0, 1), keys=tmp_path)) == rows(pipeline(old).loader())
    with pytest.raises(gm.ConfigError, match="there are no keys for") as error:
        pipeline(new).loader(part=(0, 1), keys=tmp_path)
    assert "with other functions" in str(error.value.help)
    truth = rows(pipeline(new).loader())
    assert rows(pipeline(new).loader(part=(0, 1), keys=tmp_path, record_keys=True)) == truth
    assert rows(pipeline(new).loader(part=(0, 1), keys=tmp_path)) == truth


def test_a_global_that_changes_is_another_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline(by_global).make_keys(tmp_path)
    monkeypatch.setattr(sys.modules[__name__], "LIMIT", 3)
    with pytest.raises(gm.ConfigError, match="there are no keys for"):
        pipeline(by_global).loader(part=(0, 1), keys=tmp_path)


def test_what_no_name_tells_is_found_by_a_sample(tmp_path: Path) -> None:
    limit = tmp_path / "limit"

    def by_file(element: Any) -> bool:
        return len(element["tokens"]) > int(limit.read_text())

    limit.write_text("30")
    pipeline(by_file).make_keys(tmp_path / "keys")
    assert rows(pipeline(by_file).loader(part=(0, 1), keys=tmp_path / "keys")) == rows(pipeline(by_file).loader())
    limit.write_text("3")
    with pytest.raises(gm.DataError, match="the keys are stale: record .* is one element now, but is dropped in the file"):
        pipeline(by_file).loader(part=(0, 1), keys=tmp_path / "keys")


def test_functions_behind_packing_are_not_named() -> None:
    assert named(pipeline(over(30)).map(lambda batch: batch)) == named(pipeline(over(30)))


def test_functions_in_front_of_packing_are_named_wherever_they_stand() -> None:
    def streams(limit: int) -> list[gm.IterDataset[Any]]:
        one, other = (gm.MapDataset.range(9).to_iter_dataset() for _ in range(2))
        mixed = gm.IterDataset.mix([one, other.filter(over(limit))])
        return [one.map(over(limit)), one.window_shuffle(4, seed=1).filter(over(limit)), mixed, gm.IterDataset.mix([one, other]).filter(over(limit))]

    for first, same, other in zip(streams(30), streams(30), streams(3), strict=True):
        assert named(first) == named(same) != named(other)


def test_what_a_function_has_noted_is_no_part_of_it() -> None:
    seen: list[int] = []

    @functools.cache
    def length(x: int) -> int:
        return x % 7

    def noting(x: int) -> dict[str, Any]:
        seen.append(x)
        return {"tokens": np.arange(length(x))}

    ds = gm.MapDataset.range(9).map(noting)
    before = named(ds)
    assert len(list(ds)) == 9 and seen and named(ds) == before


def test_a_name_of_its_own_stands_for_an_object(tmp_path: Path) -> None:
    first, second = Filter(30), Filter(30)
    second.note = "another attribute"  # type: ignore[attr-defined]
    assert named(pipeline(first)) != named(pipeline(second))
    for each in (first, second):
        each.gristmill_fingerprint = "over 30"  # type: ignore[attr-defined]
    assert named(pipeline(first)) == named(pipeline(second))


def test_names_are_the_same_in_all_processes() -> None:
    program = """
import re, json, numpy as np, gristmill as gm
from gristmill._functions import named
KEPT, WORDS, PATTERN = {"a", "b", "c", 5}, {"x": (1, 2.5)}, re.compile("x+")
class Each:
    limit: int = 3
    def __init__(self): self.words = frozenset("defgh")
    @property
    def size(self): return len(self.words)
    def map(self, x):
        import string
        return {"x": np.arange(self.size), "y": json.dumps(str(KEPT)), "z": string.digits, "w": WORDS, "p": PATTERN}
loop = []
loop.append(loop)
def keep(element): return loop is not None and element is not None
print(named(gm.MapDataset.range(9).map(Each()).filter(keep).to_iter_dataset()))
"""
    names = set()
    for seed in "012":
        names.add(subprocess.run([sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True).stdout)
    assert len(names) == 1 and len(names.pop().strip()) == 32


def test_native_pipelines_have_no_functions() -> None:
    assert named(gm.MapDataset.range(9).shuffle(1).to_iter_dataset().batch(2)) == ""

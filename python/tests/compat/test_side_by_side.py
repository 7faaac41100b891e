"""Random pipelines yield the same in Grain and in the package of its name: elements, later epochs, and states.

`GRISTMILL_PIPELINES` is how many: 150 for a landing, 2000 weekly.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from compat.differences import RULES

PROGRAM = Path(__file__).parent / "pipelines.py"
COUNT = int(os.environ.get("GRISTMILL_PIPELINES", "150"))
# Behind the very last element of a stream Grain's states are of places that are none here; and nowhere do they say what an
# operation of one's own has kept. In a later epoch of an interleave they say that streams have ended which have not: Grain forgets to
# take back what it noted in the epoch before, and loses the rest of such a stream when it goes on there.
NO_PLACES = (
    "an operation of one's own",
    "out of range",
    "was given out",
    "were yielded",
    "rows came out",
    "the data ends",
    "of a batch that has fewer",
    "which streams have ended",
)


class Run:
    """The program over one library, beside others: what it prints goes to files, so that none waits for a reader."""

    def __init__(self, folder: Path, library: str, *more: str) -> None:
        self._out, self._said = folder / "out", folder / "said"
        folder.mkdir()
        with self._out.open("w") as out, self._said.open("w") as said:
            command = [sys.executable, str(PROGRAM), library, str(COUNT), *more]
            self._process = subprocess.Popen(command, stdout=out, stderr=said)

    def lines(self) -> list[Any]:
        self._process.wait(timeout=2 * COUNT)
        said = self._said.read_text()
        if self._process.returncode == 77:
            pytest.skip(said)
        assert self._process.returncode == 0, said[-4000:]
        return [json.loads(line) for line in self._out.read_text().splitlines()]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What the shim makes of the pipelines, and what Grain does, at the same time."""
    if "GRAIN_WHEEL" not in os.environ:
        pytest.skip("set GRAIN_WHEEL to a folder that grain 0.2.18 was installed into: pip install --target")
    folder = tmp_path_factory.mktemp("pipelines")
    runs = Run(folder / "ours", "SHIM"), Run(folder / "theirs", os.environ["GRAIN_WHEEL"])
    return runs[0].lines(), runs[1].lines()


def without_ends(found: Any) -> Any:
    """The same without the mark of a mix that has come to its end: Grain's asks its datasets again."""
    if isinstance(found, list):
        return [without_ends(one) for one in found]
    if isinstance(found, dict):
        return {name: without_ends(one) for name, one in found.items() if (name, one) != ("stop", True)}
    return found


def test_random_pipelines_yield_the_same(both: tuple[list[dict[str, Any]], list[dict[str, Any]]]) -> None:
    ours, theirs = both
    assert len(ours) == len(theirs) == COUNT
    met: set[str] = set()
    for seed, (actual, expected) in enumerate(zip(ours, theirs, strict=True)):
        assert actual["rules"] == expected["rules"], f"pipeline {seed}"
        met.update(expected["rules"])
        if not expected["rules"]:
            keys = ["refused", "error", "far", "elements", *(["states"] if expected.get("same") else [])]
            for key in keys:
                assert without_ends(actual.get(key)) == expected.get(key), f"pipeline {seed}: {key}"
    assert met <= {name for name, rule in RULES.items() if rule.drawn}
    # Most are compared, and have elements.
    assert sum(not one["rules"] for one in theirs) > 0.8 * COUNT
    assert sum(len(one.get("elements", ())) for one in ours) > 10 * COUNT


def test_a_pass_goes_on_where_grain_stopped(
    both: tuple[list[dict[str, Any]], list[dict[str, Any]]], tmp_path: Path
) -> None:
    theirs = both[1]
    file = tmp_path / "grain.jsonl"
    file.write_text("\n".join(map(json.dumps, theirs)))
    restored = refused = 0
    resumed = Run(tmp_path / "resumed", "SHIM", str(file)).lines()
    for seed, (ours, one) in enumerate(zip(resumed, theirs, strict=True)):
        for done, rest in ours:
            if isinstance(rest, str):
                assert any(words in rest for words in NO_PLACES), f"pipeline {seed}, behind element {done}: {rest}"
                refused += 1
            else:
                assert rest == one["elements"][done:], f"pipeline {seed}, behind element {done}"
                restored += 1
    assert restored > COUNT and refused < restored / 10

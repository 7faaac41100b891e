"""The programs of the pages on coming from other loaders: both halves of each give the same elements."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import gristmill as gm
import pytest

FOLDER = Path(__file__).resolve().parents[1]
WORDS = "the mill wheel turns slowly after rain and the miller counts every sack of flour twice".split()
RECORDS = 100

# What each first half needs, and what it is called by pip.
PIP = {"torch": "torch", "streaming": "mosaicml-streaming", "litdata": "litdata", "tfdata": "tensorflow-cpu", "grain": "grain==0.2.18"}
PEERS = list(PIP)
# Packages that take seconds to be imported, and change with their version alone.
SLOW = ("streaming", "litdata", "tfdata")
MODULES = {"tfdata": "tensorflow"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The same records in each form that the programs read."""
    texts = [" ".join(WORDS[(x + at) % 16] for at in range(x * 7 % 40 + 1)) for x in range(RECORDS)]
    records = [{"number": number, "text": text} for number, text in enumerate(texts)]
    (tmp_path / "documents.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    for name in ("mds", "tfrecord"):
        with gm.sink(tmp_path / name, name, shard_records=40) as sink:  # type: ignore[arg-type]
            sink.write_all(records)
    return tmp_path


def pythons() -> list[tuple[str, dict[str, str]]]:
    """Who may have the peer: this Python, with the folders that hold a package of its own, and that of other readers."""
    extra = [path for path in (os.environ.get("GRAIN_WHEEL"), os.environ.get("GRISTMILL_PEERS")) if path]
    path = os.pathsep.join([*([os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else []), *extra])
    here = (sys.executable, {**os.environ, "PYTHONPATH": path})
    return [here, *([(os.environ["GRISTMILL_PYTHON"], dict(os.environ))] if "GRISTMILL_PYTHON" in os.environ else [])]


def output(python: str, env: dict[str, str], program: Path, folder: Path) -> str:
    """What a program prints that is run in a folder, which is its argument, too."""
    env = {**env, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    command = [python, str(program), str(folder)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def interpreter(peer: str) -> Callable[[Path, Path], str]:
    """Runs programs where the peer is installed, or skips the test."""
    module = MODULES.get(peer, peer)
    for python, env in pythons():
        asked = subprocess.run([python, "-c", f"import {module}"], env=env, capture_output=True, timeout=300, check=False)
        if asked.returncode == 0:
            return partial(output, python, env)
    pytest.skip(f"{module} is not installed: pip install {PIP.get(peer, peer)}")


def lines_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(("in order ", "shuffled "))]


def run(program: str, data: Path) -> list[str]:
    return lines_of(output(sys.executable, dict(os.environ), FOLDER / "migrations" / f"{program}.py", data))


def with_peer(program: str, peer: str, data: Path) -> list[str]:
    """Runs a program that needs a peer, or skips the test."""
    return lines_of(interpreter(peer)(FOLDER / "migrations" / f"{program}.py", data))


def elements(lines: list[str], order: str) -> list[str]:
    """The elements of a pass, without the sizes of their batches."""
    return [line.removeprefix(order).split(" ", 1)[1] for line in lines if line.startswith(order)]


@pytest.mark.parametrize("peer", PEERS)
def test_the_second_half_reads_every_record_once(peer: str, data: Path) -> None:
    lines = run(f"{peer}_after", data)
    in_order = [line for line in lines if line.startswith("in order ")]
    if peer == "grain":
        assert sum(int(line.split()[3]) for line in in_order) == RECORDS
        return
    texts = [json.loads(line)["text"] for line in (data / "documents.jsonl").read_text().splitlines()]
    assert [line.endswith(f" {text}") for line, text in zip(in_order, texts, strict=True)] == [True] * RECORDS
    shuffled = elements(lines, "shuffled ")
    assert Counter(shuffled) == Counter(elements(lines, "in order ")) and shuffled != elements(lines, "in order ")


@pytest.mark.parametrize("peer", [pytest.param(peer, marks=pytest.mark.weekly if peer in SLOW else ()) for peer in PEERS])
def test_both_halves_have_the_same_elements(peer: str, data: Path) -> None:
    before, after = with_peer(f"{peer}_before", peer, data), run(f"{peer}_after", data)
    in_order = [line for line in before if line.startswith("in order ")]
    assert in_order == [line for line in after if line.startswith("in order ")] != []
    # Orders of shuffles are each library's own, and so is which elements are in the last batch.
    assert Counter(elements(before, "shuffled ")) == Counter(elements(after, "shuffled "))


@pytest.mark.weekly
def test_chunks_become_shards(data: Path) -> None:
    before = [line for line in with_peer("litdata_before", "litdata", data) if line.startswith("in order ")]
    after = with_peer("litdata_chunks", "litdata", data)
    assert [line.split(maxsplit=3)[3] for line in before] == [line.split(maxsplit=2)[2] for line in after]


@pytest.mark.parametrize("program", sorted((FOLDER / "migrations").glob("*.py")), ids=lambda path: path.stem)
def test_each_program_is_short_and_shown_once(program: Path) -> None:
    assert len(program.read_text().splitlines()) < 60
    pages = [page.read_text() for page in (FOLDER / "docs").rglob("*.md")]
    assert sum(page.count(f'--8<-- "migrations/{program.name}"') for page in pages) == 1

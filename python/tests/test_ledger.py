"""The lineage of delivered rows, and run logs."""

import json
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
import pytest


def corpus(folder: Path, count: int = 40) -> Path:
    path = folder / "docs.jsonl"
    path.write_text("".join(json.dumps({"id": n}) + "\n" for n in range(count)))
    return path


def packed(path: Path) -> gm.IterDataset[Any]:
    def tokens(document: dict[str, Any]) -> dict[str, Any]:
        n = int(document["id"])
        return {"tokens": np.arange(n % 7 + 1, dtype=np.int32) + 100 * n}

    ds = gm.MapDataset.jsonl(path).shuffle(seed=1).repeat(2).map(tokens).to_iter_dataset()
    return ds.filter(lambda document: len(document["tokens"]) != 3).window_pack(length={"tokens": 16}).batch(2)


def compare(batch: dict[str, Any], lineage: list[dict[str, Any]], path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    for row, tokens in zip(lineage, batch["tokens"][[0, 1]], strict=True):
        for part in row["segments"]:
            (begin, end), (first, last), record = part["tokens"], part["cells"], part["record"]
            assert tokens[first:last].tolist() == [100 * record + at for at in range(begin, end)]
            assert Path(part["file"]) == path
            start, stop = part["bytes"]
            assert path.read_bytes()[start:stop] == lines[record]


@pytest.mark.parametrize("threads", [0, 2])
def test_lineage_is_of_the_rows_delivered_last(tmp_path: Path, threads: int) -> None:
    path = corpus(tmp_path)
    with packed(path).loader(threads=threads) as batches:
        with pytest.raises(gm.StateError, match="no element was delivered"):
            batches.lineage()
        for batch in batches:
            if len(batch["tokens"]) == 2:
                compare(batch, batches.lineage(), path)


def test_lineage_of_a_part_has_its_rows(tmp_path: Path) -> None:
    ds = gm.MapDataset.jsonl(corpus(tmp_path)).shuffle(seed=1).to_iter_dataset().batch(4)
    with ds.loader(part=(1, 2), guard=None) as batches:
        batch = next(batches)
        rows = batches.lineage()
    assert [row["row"] for row in rows] == [2, 3]
    assert [row["segments"][0]["record"] for row in rows] == [int(n) for n in batch["id"]]


def test_a_pipeline_without_a_plan_names_its_stage(tmp_path: Path) -> None:
    ds = gm.MapDataset.jsonl(corpus(tmp_path)).to_iter_dataset().batch(2).rebatch(3)
    with ds.loader() as batches:
        next(batches)
        with pytest.raises(gm.ConfigError, match=r"rebatch \(stage 3\)"):
            batches.lineage()


def test_which_finds_the_lineage_of_each_step(tmp_path: Path) -> None:
    path, log = corpus(tmp_path), tmp_path / "run.ledger"
    ds = packed(path)
    seen: list[list[dict[str, Any]]] = []
    with ds.loader() as batches:
        for _ in range(3):
            next(batches)
            seen.append(batches.lineage())
        state = batches.get_state()
    with ds.loader(ledger=log) as batches:
        batches.set_state(state)
        for _ in batches:
            seen.append(batches.lineage())
    for step in (0, 2, 3, 4, len(seen) - 1):
        assert ds.which(log, step)["rows"] == seen[step]
    assert ds.audit(log)["batches"] == len(seen)
    with pytest.raises(gm.ConfigError, match="the stream ends"):
        ds.which(log, len(seen))
    with path.open("a") as file:
        file.write('{"id": 40}\n')
    with pytest.raises(gm.StateError, match=r"docs.jsonl"):
        packed(path).which(log, 3)

"""Eight tasks of a newcomer, each solved by what the pages of the site show, and compared with a plain computation."""

import itertools
import json
import subprocess
import sysconfig
import time
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
import pytest

COMMAND = Path(sysconfig.get_path("scripts")) / "gristmill"
TOKENIZER = Path(__file__).resolve().parents[2] / "src" / "demo" / "tokenizer.json"
TEXTS = [" ".join(f"the mill wheel turns {n} times".split()[: n % 6 + 1] * (n % 9 + 1)) for n in range(300)]


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    """Two JSON Lines files of the texts."""
    for name, texts in (("a", TEXTS[:200]), ("b", TEXTS[200:])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return str(tmp_path / "*.jsonl")


def documents(corpus: str) -> gm.MapDataset:
    return gm.MapDataset.jsonl(corpus, columns=["text"]).shuffle(seed=1).tokenise(tokenizer=TOKENIZER, column="text")


def packed(corpus: str) -> gm.IterDataset:
    rows = documents(corpus).to_iter_dataset().window_pack(length={"tokens": 32}, over_long="split")
    return rows.batch(8, drop_remainder=True)


def read(loader: Any, most: int | None = None) -> list[np.ndarray]:
    """The tokens of the next batches, of all by default."""
    return [np.asarray(batch["tokens"]) for batch in itertools.islice(loader, most)]


def command(*arguments: object, folder: Path) -> str:
    """What the command prints."""
    words = [str(COMMAND), *map(str, arguments)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_json_lines_become_packed_batches_of_jax(corpus: str) -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed: pip install jax")
    rows = documents(corpus).to_iter_dataset().window_pack(length={"tokens": 32}, over_long="split")
    counts = np.zeros(10**5, int)
    with gm.jax.device_put(rows.batch(8, remainder="pad").loader(threads=2)) as batches:
        for batch in batches:
            assert isinstance(batch["tokens"], jax.Array) and batch["tokens"].shape == (8, 32)
            real = np.asarray(batch["tokens"])[np.asarray(batch["tokens_segment_ids"]) > 0]
            np.add.at(counts, real, 1)
    expected = np.bincount(np.concatenate([element["tokens"] for element in documents(corpus)]), minlength=len(counts))
    assert np.array_equal(counts, expected)


def test_a_run_resumes_in_the_middle_on_another_number_of_threads(corpus: str) -> None:
    ds = packed(corpus)
    with ds.loader(threads=3) as batches:
        before = read(batches, 4)
        saved = json.dumps(batches.get_state())
    with ds.loader(threads=1) as batches:
        batches.set_state(json.loads(saved))
        after = read(batches)
    whole = read(ds.loader())
    assert len(before) == 4 and len(after) == len(whole) - 4 > 3
    assert np.array_equal(np.stack(before + after), np.stack(whole))


def test_the_rows_of_two_hosts_add_up_to_one_run(corpus: str) -> None:
    ds = packed(corpus)
    hosts = [np.stack(read(ds.loader(part=(index, 2), threads=index))) for index in range(2)]
    assert hosts[0].shape[1:] == (4, 32)
    assert np.array_equal(np.concatenate(hosts, axis=1), np.stack(read(ds.loader())))


def test_workers_read_a_custom_source_within_a_budget(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.arange(1000, dtype=np.float32).reshape(250, 4))

    class Rows:
        def __init__(self, path: Path) -> None:
            self.rows = np.load(path, mmap_mode="r")

        def __len__(self) -> int:
            return len(self.rows)

        def __getitem__(self, index: int) -> Any:
            return {"tokens": np.array(self.rows[index])}

    def double(row: dict[str, Any]) -> dict[str, Any]:
        return {"tokens": row["tokens"] * 2}

    ds = gm.MapDataset.source(Rows(tmp_path / "rows.npy")).shuffle(seed=1).map(double).to_iter_dataset().batch(25)
    with ds.mp_prefetch(num_workers=2, ram_budget="1GiB").loader() as batches:
        rows = np.concatenate(read(batches))
        used = batches.report().as_dict()["workers"]
    assert np.array_equal(rows, np.concatenate(read(ds.loader())))
    assert sorted(rows[:, 0]) == [8.0 * n for n in range(250)]
    assert len(used["workers"]) == 2 and used["ram_budget"] == 2**30
    assert 0 < used["slab_high_water_bytes"] + sum(worker["heap_bytes"] for worker in used["workers"]) <= 2**30


def test_three_folders_of_parquet_are_mixed_by_weights(tmp_path: Path) -> None:
    parts = []
    for number, name in enumerate(("web", "books", "code")):
        with gm.sink(tmp_path / name, "parquet") as sink:
            sink.write_all({"folder": number, "n": n} for n in range(200))
        parts.append(gm.MapDataset.parquet(tmp_path / name).shuffle(seed=number))
    mixed = gm.MapDataset.mix(parts, weights=[7, 2, 1])
    with mixed.to_iter_dataset().batch(20, drop_remainder=True).loader(threads=2) as batches:
        folders = [int(folder) for batch in batches for folder in batch["folder"]]
    assert [folders[:100].count(number) for number in range(3)] == [70, 20, 10]
    assert len(folders) > 250


def test_the_command_sweeps_over_the_threads_of_a_pipeline_file(corpus: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(TOKENIZER.read_bytes())
    (tmp_path / "pipeline.yaml").write_text("""
source:
  jsonl: {paths: ["*.jsonl"], columns: [text]}
stages:
  - shuffle: {seed: 1}
  - tokenise: {tokenizer: tokenizer.json, column: text}
  - window_pack: {length: {tokens: 32}, over_long: split}
  - batch: {batch_size: 8, remainder: drop}
""")
    told = json.loads(command("bench", "pipeline.yaml", "--sweep", "threads=1,2", "--steps", 4, "--warmup", 1, "--json", folder=tmp_path))
    assert [point["settings"]["threads"] for point in told["rows"]] == ["1", "2"]
    assert len({point["figures"]["order_hash"] for point in told["rows"]}) == 1
    assert np.array_equal(np.stack(read(gm.IterDataset.from_file(tmp_path / "pipeline.yaml"))), np.stack(read(packed(corpus))))


def test_a_corpus_is_tokenised_to_megatron_files_and_read_in_crops(corpus: str, tmp_path: Path) -> None:
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    command("tokenise", *files, "--tokenizer", TOKENIZER, "--format", "megatron", "--out", "ids", folder=tmp_path)
    ids = np.concatenate([document["tokens"] for document in gm.MapDataset.megatron(tmp_path / "ids", by="document")])
    crops = gm.MapDataset.crops(str(tmp_path / "ids" / "*.bin"), seq_len=64)
    assert len(crops) == len(ids) // 64 > 10
    assert np.array_equal(np.concatenate([crop["tokens"] for crop in crops]), ids[: 64 * len(crops)])
    with crops.shuffle(seed=1).to_iter_dataset().batch(4).loader(threads=2) as batches:
        rows = np.concatenate(read(batches))
    assert sorted(map(tuple, rows)) == sorted(tuple(crop["tokens"]) for crop in crops)


@pytest.mark.alone
def test_the_stage_that_limits_a_pipeline_is_found_and_fixed() -> None:
    def fetch(x: int) -> int:
        time.sleep(0.003)
        return x * 2

    ds = gm.MapDataset.range(160).shuffle(seed=1).map(fetch).to_iter_dataset().batch(4)
    with ds.loader() as batches:
        slow = list(batches)
        verdict = batches.report().as_dict()["verdict"]
    assert verdict["bottleneck"] == "map", verdict
    assert "threads" in verdict["advice"][0]["change"], verdict
    with ds.loader(threads=4) as batches:
        assert np.array_equal(list(batches), slow)


def test_the_notebook_runs_from_its_first_cell_to_its_last() -> None:
    notebook = json.loads((Path(__file__).resolve().parents[1] / "examples" / "first_pipeline.ipynb").read_text())
    names: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert names["step"] == 49 and names["tokens"] > 0

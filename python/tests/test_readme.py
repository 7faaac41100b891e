"""What the README and pages of the site show works, and comes to what they say; that every block runs is in `test_site.py`."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
import pytest

README = Path(__file__).resolve().parents[2] / "README.md"
DOCS = Path(__file__).resolve().parents[1] / "docs"


def test_the_example_runs_as_it_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = README.read_text().split("```python\n")[1].split("```")[0]
    words = "the mill wheel turns é slowly after rain".split()
    texts = [" ".join(words[(n + at) % 8] for at in range(n * 37 % 300)) for n in range(400)]
    (tmp_path / "gpt2.tokenizer.json").write_bytes((README.parent / "src" / "demo" / "tokenizer.json").read_bytes())
    (tmp_path / "corpus").mkdir()
    lines = (json.dumps({"text": text}) + "\n" for text in texts)
    (tmp_path / "corpus" / "a.jsonl").write_text("".join(lines))
    trained: list[dict[str, np.ndarray[Any, Any]]] = []
    names: dict[str, Any] = {"train": trained.append}
    monkeypatch.chdir(tmp_path)
    with contextlib.redirect_stdout(None):
        exec(program, names)
    assert trained[0]["tokens"].shape == (32, 1024)
    ids = np.concatenate([batch["tokens"][batch["tokens_segment_ids"] > 0] for batch in trained])
    source = gm.MapDataset.jsonl("corpus/*.jsonl", columns=["text"])
    each = [element["tokens"] for element in source.tokenise(tokenizer="gpt2.tokenizer.json", column="text")]
    assert len(each) == 400 and sum(map(len, each)) > 40_000
    assert np.array_equal(np.bincount(ids), np.bincount(np.concatenate(each)))
    assert json.dumps(names["state"])


def test_worker_processes_as_they_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (DOCS / "examples" / "workers.md").read_text()
    programs = [text.split("```")[0] for text in page.split("```python\n")]
    program = next(text for text in programs[1:] if "mp_prefetch" in text)
    texts = ["x" * (n * 37 % 900) for n in range(400)]
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    trained: list[dict[str, np.ndarray[Any, Any]]] = []
    names: dict[str, Any] = {"train": trained.append}
    monkeypatch.chdir(tmp_path)
    exec(program, names)
    real = sum(int((batch["ids_segment_ids"] > 0).sum()) for batch in trained)
    assert real == sum(len(text) for text in texts)
    assert names["state"]["delivered"] == len(trained)


def test_a_source_that_reads_many_at_once_is_read_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = [text.split("```")[0] for text in (DOCS / "own.md").read_text().split("```python\n")[1:]]
    program = next(text for text in programs if "__getitems__" in text)
    rows = np.arange(4000, dtype=np.float64).reshape(1000, 4)
    np.save(tmp_path / "rows.npy", rows)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(program, names)
    assert len(names["means"]) == 16
    total = sum(size * mean for size, mean in zip([64] * 15 + [40], names["means"], strict=True))
    assert np.isclose(total, (rows / 255).sum() / 4)


def test_grains_programs_run() -> None:
    program = (DOCS / "coming" / "grain.md").read_text().split("```python\n")[1].split("```")[0]
    # In a process of its own, where nothing is installed yet and nothing stays installed.
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr

"""The recipe, from text to a trained model: both programs train, resume in the middle, and read identical batches."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

PYTHON = Path(__file__).resolve().parents[1]
RECIPE = PYTHON / "examples" / "recipe"
TOKENIZER = PYTHON.parent / "src" / "demo" / "tokenizer.json"
PROGRAMS = {"train_jax.py": "jax", "train_torch.py": "torch"}


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, RECIPE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Writes 400 documents that repeat a few phrases, so that a small model learns them within a few steps."""
    phrases = ["the mill wheel turns slowly after rain", "the miller counts every sack of flour twice", "barley is cheaper than wheat"]
    lines = (" and ".join(phrases[(number * at) % 3] for at in range(number % 11 + 2)) for number in range(400))
    path = tmp_path / "text.jsonl"
    path.write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))
    return path


def run(program: str, text: Path, checkpoint: Path, steps: int) -> list[str]:
    arguments = [text, TOKENIZER, "--checkpoint", checkpoint, "--steps", steps]
    # A thread more than one gains nothing for such small matrices.
    environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HOME": str(text.parent / "cache"), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, RECIPE / program, *arguments]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=240, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def tokens(lines: list[str]) -> list[tuple[str, str]]:
    return [(found[1], found[2]) for found in (re.match(r"step (\d+) loss \S+ tokens (\w+)", line) for line in lines) if found]


def need(library: str) -> None:
    for package in (library, "datasets", "tokenizers"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install {package}")


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_recipe_resumes_with_the_batches_of_an_uninterrupted_run(program: str, text: Path, tmp_path: Path) -> None:
    need(PROGRAMS[program])
    whole = run(program, text, tmp_path / "whole", 20)
    parts = run(program, text, tmp_path / "parts", 8) + run(program, text, tmp_path / "parts", 20)
    assert len(tokens(whole)) == 20 and tokens(parts) == tokens(whole)
    losses = [float(line.split()[3]) for line in whole]
    assert sum(losses[-4:]) < 0.9 * sum(losses[:4]), losses
    # The model continued, too: its loss goes on from where it stopped.
    for one, other in zip(whole, parts):
        assert float(other.split()[3]) == pytest.approx(float(one.split()[3]), rel=0.01)
    validation = float(whole[-1].split("validation ")[1])
    assert validation < losses[0]


def test_no_validation_document_is_trained_on(text: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    need("datasets")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    data = load("data")
    training, validation = data.texts(str(text)).split([0.95, 0.05])
    assert len(training) == 380 and len(validation) == 20
    batch = next(iter(data.split(str(text), str(TOKENIZER))[0]))
    assert batch["tokens"].shape == batch["labels"].shape == (data.BATCH, data.SEQ_LEN)
    # A label is the next token of the same document, or none.
    labels, ids, segments = batch["labels"], batch["tokens"], batch["tokens_segment_ids"]
    goes_on = (segments[:, 1:] == segments[:, :-1]) & (segments[:, 1:] > 0)
    assert (labels[:, :-1][goes_on] == ids[:, 1:][goes_on]).all() and (labels[:, :-1][~goes_on] == -100).all()


def test_the_figure_shows_the_recorded_losses() -> None:
    recorded = [RECIPE / "recorded" / f"{name}.txt" for name in ("jax", "torch")]
    draw = load("draw")
    assert draw.draw(recorded) == (PYTHON / "docs" / "losses.svg").read_text(encoding="utf-8")
    (jax, stopped), (torch, also) = map(draw.read, recorded)
    assert len(jax) == len(torch) and stopped == also is not None
    for steps in (jax, torch):
        assert steps[-1][1] < steps[0][1] - 2
    # Both frameworks read identical batches.
    sums = [re.findall(r"tokens (\w+)", path.read_text()) for path in recorded]
    assert sums[0] == sums[1]


def test_the_page_shows_every_file_of_the_recipe() -> None:
    page = (PYTHON / "docs" / "examples" / "packing.md").read_text()
    for name in ("data.py", *PROGRAMS):
        assert page.count(f'--8<-- "examples/recipe/{name}"') == 1
        assert len((RECIPE / name).read_text().splitlines()) <= 60

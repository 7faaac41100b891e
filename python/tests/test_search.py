"""The search of the built site finds the words of newcomers, on the page that answers them."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

PYTHON = Path(__file__).resolve().parents[1]

# Words that newcomers type, and pages that answer them.
WORDS = {
    "DDP": {"gpus/"},
    "FSDP": {"gpus/"},
    "collate": {"coming/torch/", "own/"},
    "num_workers": {"coming/torch/", "examples/workers/"},
    "prefetch_factor": {"coming/torch/"},
    "validation": {"epochs/"},
    "tokenize": {"examples/packing/"},
    "tokenizer.json": {"examples/packing/"},
    "shard by rank": {"gpus/"},
    "cu_seqlens": {"examples/torch/"},
    "position_ids": {"examples/torch/"},
    "resume": {"checkpoints/"},
    "loss": {"examples/packing/"},
    "credentials": {"formats/"},
}


@pytest.fixture(scope="module")
def sections(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """Builds the site, and returns the sections in the index of its search."""
    for package in ("mkdocs", "material", "mkdocstrings"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install mkdocs-material 'mkdocstrings[python]'")
    site = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-f", PYTHON / "mkdocs.yml", "-d", site]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, str]] = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    return found


@pytest.mark.parametrize("words", WORDS)
def test_the_search_finds_the_words_of_newcomers(words: str, sections: list[dict[str, str]]) -> None:
    # As the search does: a section is found if it has all words.
    def has_all(section: dict[str, str]) -> bool:
        text = f"{section['title']} {section['text']}".lower()
        return all(word in text for word in words.lower().split())

    pages = {section["location"].split("#")[0] for section in sections if has_all(section)}
    assert WORDS[words] <= pages, f"{words}: only in {sorted(pages)}"


def test_every_cause_of_waits_has_its_own_address(sections: list[dict[str, str]]) -> None:
    text = (PYTHON / "docs" / "waits.md").read_text(encoding="utf-8")
    causes = ["start", "restore", "reader", "queue", "evaluation", "head_of_line", "store", "memory", "leases", "death", "lock", "hand_over", "transfer"]
    assert [cause for cause in causes if f"| `{cause}`{{ #{cause} }} |" not in text] == []
    assert any(section["location"].startswith("waits/") for section in sections)

"""What several tests need: files of a few records, and vectors made by Grain itself."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# Read when JAX is imported, which is later: several devices to shard over, where there is but a CPU.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def golden() -> Callable[[str], Any]:
    """Reads a file of vectors that lies beside the repository, or where GRISTMILL_GOLDEN says."""

    def read(name: str) -> Any:
        folder = Path(os.environ.get("GRISTMILL_GOLDEN", REPOSITORY.parent / "shared" / "golden"))
        if not (folder / name).exists():
            pytest.skip(f"no {folder / name}: set GRISTMILL_GOLDEN to the folder of Grain's vectors")
        return json.loads((folder / name).read_text())

    return read


@pytest.fixture
def jsonl(tmp_path: Path) -> Path:
    """Twenty records: a number, a text, and a list of its length."""
    path = tmp_path / "records.jsonl"
    records = [{"n": n, "text": "x" * (n % 5), "ids": list(range(n % 7 + 1))} for n in range(20)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture
def npy(tmp_path: Path) -> Path:
    """Forty rows of four float32."""
    path = tmp_path / "rows.npy"
    np.save(path, np.arange(160, dtype=np.float32).reshape(40, 4))
    return path

"""The comparison with peers: it runs on data of a few kilobytes, tells what differs from what does not, and says who is not there."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benches" / "peers"
# Weekly: each test starts several interpreters, which import PyTorch and all peers.
pytestmark = pytest.mark.weekly
ENVIRONMENTS = ("gristmill", "torch", "grain", "tensorflow", "tokenizers")


@pytest.fixture
def compare(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("compare")


@pytest.fixture
def protocol(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("protocol")


def measured(folder: Path, peers: str, *options: str) -> dict[str, Any]:
    """What the harness writes, run by the interpreter that has whatever is installed here."""
    command = [sys.executable, str(FOLDER / "compare.py"), "--dir", str(folder), "--peers", peers, "--mb=0.1", "--records=600"]
    command += ["--runs=1", "--workers=0", "--json", str(folder / "told.json"), *options]
    command += [f"--python={name}={sys.executable}" for name in ENVIRONMENTS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return {**json.loads((folder / "told.json").read_text()), "printed": done.stdout}


@pytest.mark.parametrize("peer", ["torch", "datasets"])
def test_a_peer_that_is_here_makes_the_same(tmp_path: Path, peer: str) -> None:
    for module in {"torch", "tokenizers", peer}:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed: pip install {module}")
    told = measured(tmp_path, peer)
    rows = {(row["peer"], row["workload"].split("-")[0]): row for row in told["rows"]}
    assert sorted(rows) == sorted((name, kind) for name in ("gristmill", peer) for kind in ("tokens", "records"))
    assert all("reason" not in row for row in rows.values()), rows
    assert rows[peer, "tokens"]["same"] == "same, in order"
    assert rows[peer, "records"]["same"] == "same" and rows[peer, "records"]["checked"]["total"] == 600
    assert all(row["per_second"] > 0 and row["per_cpu_second"] > 0 for row in rows.values())


@pytest.mark.parametrize("peer", ["gigatoken", "fastokens", "tiktoken"])
def test_a_tokenizer_that_is_here_makes_the_same_ids_of_unseen_text(tmp_path: Path, peer: str) -> None:
    if importlib.util.find_spec(peer) is None:
        pytest.skip(f"{peer} is not installed: pip install {peer}")
    told = measured(tmp_path, peer, "--mb=0.5")
    assert [(row["peer"], row["workload"]) for row in told["rows"]] == [("gristmill", "unseen"), (peer, "unseen")]
    assert all(row.get("same") == "same, in order" for row in told["rows"]), told["rows"]


def test_a_peer_that_is_not_here_is_a_row_with_the_reason(tmp_path: Path) -> None:
    missing = next((name for name in ("tensorflow", "litdata", "grain") if importlib.util.find_spec(name) is None), None)
    if missing is None:
        pytest.skip("all peers are installed")
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- peers -->\nold\n<!-- end -->\nafter\n")
    told = measured(tmp_path, {"tensorflow": "tf.data"}.get(missing, missing), "--markdown", str(tmp_path / "table.md"))
    reasons = {row["reason"] for row in told["rows"] if row["peer"] != "gristmill"}
    assert reasons == {f"not installed: ModuleNotFoundError: No module named '{missing}'"}
    ours = [row for row in told["rows"] if row["peer"] == "gristmill"]
    assert ours and all(row["same"] == "same, in order" for row in ours)
    assert f"No module named '{missing}'" in told["printed"] and "| gristmill |" in (tmp_path / "table.md").read_text()
    command = [sys.executable, str(FOLDER / "table.py"), str(tmp_path / "told.json"), str(page)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    assert page.read_text() == f"before\n<!-- peers -->\n{(tmp_path / 'table.md').read_text()}<!-- end -->\nafter\n"


def test_digests_tell_order_from_content(compare: ModuleType, protocol: ModuleType) -> None:
    def digests(*batches: Any) -> Any:
        return protocol.checked(list(batches))

    tokens = np.arange(24, dtype=np.int32).reshape(3, 8)
    whole = digests(tokens)
    assert compare.said(digests(tokens[:1], np.pad(tokens[1:], ((0, 0), (0, 2)), constant_values=-1)), whole) == "same, in order"
    assert compare.said(digests(tokens[::-1]), whole) == "same"
    assert compare.said(digests(tokens + 1), whole) == "others"
    assert compare.said(digests(tokens[:2]), whole) == "16 of 24, others"
    records = {"id": np.arange(4), "image": np.arange(4, dtype=np.uint8).repeat(3072).reshape(4, 32, 32, 3)}
    turned = {name: array[::-1] for name, array in records.items()}
    assert compare.said(digests(turned), digests(records)) == "same"
    assert compare.said(digests({**records, "id": turned["id"]}), digests(records)) == "others"
    twice = {name: array[[0, 0, 2, 2]] for name, array in records.items()}
    assert compare.said(digests(twice), digests(records)) == "others"


def test_rows_are_cut_from_all_documents_in_a_row(protocol: ModuleType) -> None:
    documents = [np.arange(size, dtype=np.int32) for size in (5, 2048, 1, 4100, 0, 7)]
    rows = list(protocol.concatenated(documents))
    assert [len(row) for row in rows] == [2048] * 4
    whole = np.concatenate(rows)
    assert np.array_equal(whole[whole >= 0], np.concatenate(documents)) and (whole[6161:] == -1).all()


def test_batches_are_cut_from_large_arrays(protocol: ModuleType) -> None:
    size = protocol.UNSEEN_ROWS * protocol.UNSEEN_LEN
    whole = np.arange(2 * size + 1500, dtype=np.int32)
    batches = list(protocol.cut([whole[:10], whole[10 : size + 7], whole[size + 7 :]]))
    assert [batch.shape for batch in batches] == [(protocol.UNSEEN_ROWS, protocol.UNSEEN_LEN)] * 2 + [(2, protocol.UNSEEN_LEN)]
    joined = np.concatenate([batch.ravel() for batch in batches])
    assert np.array_equal(joined[: len(whole)], whole) and (joined[len(whole) :] == -1).all()


def test_the_best_number_of_workers_is_kept(compare: ModuleType) -> None:
    contest = compare.Contest(compare.PEERS[0], "tokens", Path("python"), Path())
    contest.runs = {0: [{"units": 10, "wall_s": 1.0}], 2: [{"units": 10, "wall_s": 0.5}], 1: [{"units": 10, "wall_s": 2.0}]}
    assert contest.best() == 2

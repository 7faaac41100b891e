"""Tensors: whose memory they are, in which order they come, and where they go on."""

import dataclasses
import json
import socket
import subprocess
import sys
import warnings
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import gristmill as gm
import numpy as np
import pytest

from parts_pipeline import pipeline

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch, which is large")
data = torch.utils.data


@pytest.fixture(autouse=True)
def no_warnings() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # NumPy arrays that PyTorch's own collation makes are no concern of these tests.
        yield


def rows(npy: Path) -> gm.IterDataset:
    return gm.MapDataset.npy(npy).shuffle(3).to_iter_dataset().batch(4)


def shown(batches: Any) -> list[list[float]]:
    return [batch["data"].flatten().tolist() for batch in batches]


def test_tensors_share_the_memory_of_batches_nobody_else_has(npy: Path) -> None:
    batch = next(rows(npy).loader(writable=True))
    tensor = gm.torch.to_tensors(batch)["data"]
    assert tensor.data_ptr() == batch["data"].__array_interface__["data"][0]
    assert tensor.dtype == torch.float32 and tensor.shape == (4, 4)
    tensor += 1
    assert batch["data"].tolist() == tensor.tolist()


def test_a_batch_whose_conversion_is_interrupted_is_the_next_one_again(npy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = iter(gm.torch.IterableDataset(rows(npy)))
    seen = [next(batches)]

    def interrupted(_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(gm.torch, "to_tensors", interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(batches)
    assert shown([*seen, *batches]) == shown(rows(npy).loader())


def test_a_stream_in_a_data_loader_points_to_the_class_for_it() -> None:
    ds = gm.MapDataset.range(4).to_iter_dataset()
    with pytest.raises(TypeError, match=r"no len\(\).*gristmill\.torch\.IterableDataset\(ds\)"):
        list(torch.utils.data.DataLoader(ds, batch_size=None))
    assert ds and list(ds) == [0, 1, 2, 3] and tuple(ds) == (0, 1, 2, 3)


def test_packed_rows_are_sequences_of_flash_attention() -> None:
    batch = {
        "tokens": np.array([[5, 6, 7, 8, 0, 0], [9, 1, 2, 3, 4, 4]], np.uint32),
        "tokens_segment_ids": np.array([[1, 1, 1, 2, 0, 0], [1, 2, 2, 3, 3, 3]], np.int32),
    }
    for given in (batch, gm.torch.to_tensors(batch)):
        made = gm.torch.varlen(given)
        assert made["input_ids"].tolist() == [[5, 6, 7, 8, 0, 0, 9, 1, 2, 3, 4, 4]]
        assert made["position_ids"].tolist() == [[0, 1, 2, 0, 0, 1, 0, 0, 1, 0, 1, 2]]
        assert made["labels"].tolist() == [[-100, 6, 7, -100, -100, -100, -100, -100, 2, -100, 4, 4]]
        assert made["cu_seq_lens_q"].tolist() == made["cu_seq_lens_k"].tolist() == [0, 3, 4, 6, 7, 9, 12]
        assert (made["max_length_q"], made["max_length_k"]) == (3, 3)
        assert [made[name].dtype for name in ("input_ids", "labels", "position_ids", "cu_seq_lens_q")] == [torch.int64] * 3 + [torch.int32]
    with pytest.raises(gm.ConfigError, match="no column 'tokens_segment_ids'"):
        gm.torch.varlen({"tokens": batch["tokens"]})


def test_sequences_of_flash_attention_are_the_documents_that_were_packed() -> None:
    documents = [list(range(1 + n, 2 + n + n % 7)) for n in range(40)]
    ds = gm.MapDataset.source(documents).map(lambda x: {"tokens": np.array(x)}).to_iter_dataset()
    found = []
    for batch in gm.torch.IterableDataset(ds.window_pack(length={"tokens": 16}).batch(2, drop_remainder=False)):
        made = gm.torch.varlen(batch)
        bounds, tokens = made["cu_seq_lens_q"].tolist(), made["input_ids"][0].tolist()
        positions = made["position_ids"][0].tolist()
        for begin, end in zip(bounds, bounds[1:], strict=False):
            assert positions[begin:end] == list(range(end - begin))
            if any(tokens[begin:end]):
                found.append(tokens[begin:end])
    assert sorted(found) == sorted(documents)


def test_what_is_read_only_is_copied(npy: Path) -> None:
    row = gm.MapDataset.npy(npy)[0]["data"]
    tensor = gm.torch.to_tensors(row)
    tensor += 1
    assert row.tolist() == [0, 1, 2, 3] and tensor.tolist() == [1, 2, 3, 4]


def test_a_file_is_never_written_to(npy: Path) -> None:
    before = npy.read_bytes()
    for element in gm.MapDataset.npy(npy).loader(writable=True):
        gm.torch.to_tensors(element)["data"].zero_()
    assert npy.read_bytes() == before
    assert gm.MapDataset.npy(npy)[1]["data"].tolist() == [4, 5, 6, 7]


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass
class Both:
    x: Any
    name: str


def test_trees_keep_their_shape() -> None:
    tree = {"p": Pair(np.arange(2), [np.float32(1.5)]), "d": Both(np.array([True]), "n"), "t": np.array(["text"]), "i": 3}
    made = gm.torch.to_tensors(tree)
    assert isinstance(made["p"], Pair) and made["p"].a.tolist() == [0, 1]
    assert made["p"].b[0].dtype == torch.float32 and made["p"].b[0].shape == ()
    assert isinstance(made["d"], Both) and made["d"].x.dtype == torch.bool and made["d"].name == "n"
    assert made["t"] is tree["t"] and made["i"] == 3
    lists = gm.torch.to_tensors({"text": ["a", "b"], "numbers": [np.float64(1.5), 2.0]})
    assert lists["text"] == ["a", "b"] and lists["numbers"][0].dtype == torch.float64 and type(lists["numbers"][1]) is float


def test_arrays_that_torch_has_no_name_for() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    brain = gm.torch.to_tensors(np.array([1.5, -2], ml_dtypes.bfloat16))
    assert brain.dtype == torch.bfloat16 and brain.tolist() == [1.5, -2]
    swapped = gm.torch.to_tensors(np.array([1, 2], ">i4"))
    assert swapped.tolist() == [1, 2]
    assert gm.torch.to_tensors(np.arange(4)[::-1]).tolist() == [3, 2, 1, 0]
    assert gm.torch.to_tensors(np.array([2**16 - 1], np.uint16)).tolist() == [2**16 - 1]


@pytest.mark.parametrize("threads", [0, 2])
def test_a_loader_delivers_the_stream(npy: Path, threads: int) -> None:
    ds = gm.torch.IterableDataset(rows(npy), threads=threads)
    loader = data.DataLoader(ds, batch_size=None)
    assert shown(loader) == shown(rows(npy)) == shown(loader)


def test_pinning_needs_a_device_and_changes_nothing(npy: Path) -> None:
    batches = list(gm.torch.IterableDataset(rows(npy), pin_memory=True))
    assert shown(batches) == shown(rows(npy))
    assert all(batch["data"].is_pinned() == torch.cuda.is_available() for batch in batches)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_workers_of_torch_repeat_nothing_and_keep_the_order(npy: Path, workers: int) -> None:
    warnings.simplefilter("ignore")
    loader = data.DataLoader(gm.torch.IterableDataset(rows(npy)), batch_size=None, num_workers=workers)
    assert shown(loader) == shown(rows(npy))


def test_workers_of_torch_that_do_everything_again_are_told(monkeypatch: pytest.MonkeyPatch, npy: Path) -> None:
    class Worker:
        id, num_workers = 0, 3

    monkeypatch.setattr(data, "get_worker_info", lambda: Worker)
    with pytest.warns(UserWarning, match="each of the 3 workers of this DataLoader evaluates the whole pipeline"):
        assert shown(gm.torch.IterableDataset(rows(npy))) == shown(rows(npy))[::3]


def test_a_state_after_every_batch(npy: Path) -> None:
    everything = shown(rows(npy))
    ds = gm.torch.IterableDataset(rows(npy))
    loader = data.DataLoader(ds, batch_size=None)
    assert shown(resumed(npy, ds.state_dict())) == everything
    for done, _ in enumerate(loader, 1):
        state = json.loads(json.dumps(ds.state_dict()))
        assert shown(resumed(npy, state)) == everything[done:]


def resumed(npy: Path, state: Any) -> Any:
    ds = gm.torch.IterableDataset(rows(npy), threads=1)
    ds.load_state_dict(state)
    assert ds.state_dict() == state
    return data.DataLoader(ds, batch_size=None)


def test_only_the_next_pass_starts_at_a_state(npy: Path) -> None:
    everything = shown(rows(npy))
    ds = gm.torch.IterableDataset(rows(npy))
    list(islice(ds, 2))
    ds.load_state_dict(ds.state_dict())
    assert shown(ds) == everything[2:]
    assert shown(ds) == everything


def test_states_of_others_are_refused(npy: Path) -> None:
    ds = gm.torch.IterableDataset(rows(npy))
    state = ds.state_dict()
    ds.load_state_dict({**state, "worker": 1, "workers": 2})
    with pytest.raises(gm.StateError, match="that of worker 1 of 2, and this is worker 0 of 1"):
        iter(ds)
    ds.load_state_dict({"position": 3})
    with pytest.raises(gm.StateError, match="not a state of gristmill.torch"):
        iter(ds)


@pytest.mark.parametrize("workers", [0, 2])
def test_torchdata_saves_and_restores(npy: Path, workers: int) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader", reason="torchdata is not installed")
    warnings.simplefilter("ignore")

    def loader() -> Any:
        return stateful.StatefulDataLoader(gm.torch.IterableDataset(rows(npy)), batch_size=None, num_workers=workers)

    everything = shown(rows(npy))
    running = loader()
    assert shown(islice(running, 3)) == everything[:3]
    state = running.state_dict()
    again = loader()
    again.load_state_dict(state)
    assert shown(again) == everything[3:]


def test_a_dataset_of_random_access_is_one_of_torch_too(npy: Path) -> None:
    warnings.simplefilter("ignore")
    loader = data.DataLoader(gm.MapDataset.npy(npy), batch_size=5)
    assert [tuple(batch["data"].shape) for batch in loader] == [(5, 4)] * 8


def test_the_example_of_the_page_runs_as_it_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).resolve().parents[1] / "docs" / "examples" / "torch.md").read_text()
    program = next(part.split("```")[0] for part in page.split("```python\n")[1:] if "gm.torch.Iter" in part)
    np.save(tmp_path / "rows.npy", np.zeros((640, 8), np.float32))
    monkeypatch.chdir(tmp_path)
    trained: list[Any] = []
    names: dict[str, Any] = {"train": trained.append}
    exec(program, names)
    assert len(trained) == 10 and trained[0]["data"].shape == (64, 8)
    assert json.dumps(names["state"])


def on_three_processes(program: list[str], folder: Path) -> list[str]:
    """Runs a program on three processes, each with its rank as the last argument, and returns their output."""
    running: list[subprocess.Popen[bytes]] = []
    for rank in range(3):
        with (folder / f"out{rank}").open("w") as out:
            running.append(subprocess.Popen([*program, str(rank)], stdout=out, stderr=subprocess.STDOUT))
    try:
        codes = [one.wait(timeout=300) for one in running]
    finally:
        for one in running:
            one.kill()
            one.wait()
    said = [(folder / f"out{rank}").read_text() for rank in range(3)]
    assert codes == [0, 0, 0], said
    return said


def test_processes_leave_and_come_back_and_take_the_batches_of_one(tmp_path: Path) -> None:
    program = [sys.executable, str(Path(__file__).with_name("torch_hosts.py")), str(tmp_path / "store")]
    said = on_three_processes(program, tmp_path)
    whole = [batch["ids"].tolist() for batch in islice(pipeline(), 7)]
    assert json.loads(said[0].splitlines()[-1]) == whole


def test_a_part_follows_from_a_mesh_or_a_group() -> None:
    class Mesh:
        """As `torch.distributed.device_mesh` has them, of which there are none without processes."""

        def __init__(self, ndim: int) -> None:
            self.ndim = ndim

        def get_local_rank(self) -> int:
            return 2

        def size(self) -> int:
            return 4

    assert gm.torch.part(Mesh(1)) == gm.Part(2, 4)
    with pytest.raises(gm.ConfigError, match="2 dimensions"):
        gm.torch.part(Mesh(2))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, list[Any]]]:
    """The error and the number of batches of each case, for each of three processes."""
    folder = tmp_path_factory.mktemp("guard")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    program = [sys.executable, str(Path(__file__).with_name("torch_guard.py")), str(folder), port]
    said = on_three_processes(program, folder)
    lines = [[json.loads(line) for line in text.splitlines() if line.startswith('["')] for text in said]
    return [{case: rest for case, *rest in of_rank} for of_rank in lines]


@pytest.mark.xdist_group("torch_guard")
@pytest.mark.parametrize("what", ["same", "seed", "random", "silent", "store"])
def test_processes_that_read_something_else_stop_each_other(guarded: list[dict[str, list[Any]]], what: str) -> None:
    told = [of_rank[what] for of_rank in guarded]
    if what == "same":
        assert told == [["", 750]] * 3
    elif what == "seed":
        error, batches = told[0]
        assert told == [[error, batches]] * 3 and batches == 0 and "stage 1 is `shuffle(seed=4)` on hosts 0 and 1" in error
    elif what == "silent":
        assert told[2] == ["", 100] and told[0] == told[1] and told[0][1] == 256
        assert told[0][0].startswith("WorkerError: host 2 of 3 has sent nothing for 5 s")
    else:
        error, batches = told[0]
        assert told == [[error, batches]] * 3 and batches == 256
        assert error.startswith("DataError: hosts disagree: batch ") and "differs between hosts 0 and 1 and host 2" in error

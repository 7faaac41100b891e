"""The files for trainers of others: each is run by its trainer, stopped, and goes on with the same batches.

Trainers that take seconds to be imported are run weekly; torchtitan and plain loops stand for them in between.
"""

import asyncio
import dataclasses
import importlib.util
import itertools
import json
import os
import pickle
import re
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import gristmill as gm
import numpy as np
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / "python" / "examples" / "dropins"
DROPINS = sorted(FOLDER.glob("*.py"))


def needed(module: str, package: str) -> Any:
    return pytest.importorskip(module, reason=f"{package} is not installed: pip install {package}")


def loaded(name: str, uses_torch: bool = True) -> ModuleType:
    """The file as a module: in this process, as the packages take seconds to be imported."""
    if uses_torch:
        pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch, which is large")
    spec = importlib.util.spec_from_file_location(f"dropin_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def steps(capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    """Runs a program and returns what it said of its steps."""

    def run(main: Callable[..., None], *arguments: Any) -> list[str]:
        capsys.readouterr()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            main(*arguments)
        return [line for line in capsys.readouterr().out.splitlines() if re.search(r"\bof \[", line)]

    return run


@pytest.mark.parametrize("file", DROPINS, ids=lambda path: path.stem)
def test_it_is_short_and_shown(file: Path) -> None:
    assert len(file.read_text().splitlines()) <= 100
    assert (REPOSITORY / "python/docs/dropins.md").read_text().count(f'--8<-- "examples/dropins/{file.name}"') == 1


# Ten batches are an epoch: in the middle of the first, at its end, in the middle of the second.
@pytest.mark.parametrize("stop", [7, 10, 13])
@pytest.mark.weekly
def test_lightning(tmp_path: Path, steps: Callable[..., list[str]], stop: int) -> None:
    needed("lightning", "lightning")
    main = loaded("lightning_fit").main
    whole = steps(main, tmp_path / "whole", 24)
    parts = steps(main, tmp_path / "parts", stop) + steps(main, tmp_path / "parts", 24)
    assert len(whole) == 24 and parts == whole


@pytest.mark.weekly
def test_lightning_behind_an_epoch_that_is_over(tmp_path: Path, steps: Callable[..., list[str]]) -> None:
    needed("lightning", "lightning")
    dropin = loaded("lightning_fit")

    def fit(folder: str, epochs: int) -> None:
        dropin.lightning.seed_everything(0, verbose=False)
        saving = dropin.ModelCheckpoint(tmp_path / folder, save_last=True)
        options = {"accelerator": "cpu", "devices": 1, "logger": False, "enable_progress_bar": False}
        trainer = dropin.lightning.Trainer(max_epochs=epochs, callbacks=[saving], **options)
        trainer.fit(dropin.Line(), datamodule=dropin.Points(), ckpt_path="last", weights_only=False)

    whole = steps(fit, "whole", 3)
    assert len(whole) == 30 and steps(fit, "parts", 1) + steps(fit, "parts", 3) == whole


# Five steps of two batches each are an epoch.
@pytest.mark.parametrize("stop", [3, 5])
@pytest.mark.weekly
def test_the_trainer_of_hugging_face(tmp_path: Path, steps: Callable[..., list[str]], stop: int) -> None:
    needed("transformers", "transformers")
    needed("accelerate", "accelerate")
    dropin = loaded("huggingface_trainer")

    def main(*arguments: Any) -> None:
        dropin.torch.manual_seed(0)
        dropin.main(*arguments)

    whole = steps(main, tmp_path / "whole", 12)
    parts = steps(main, tmp_path / "parts", stop) + steps(main, tmp_path / "parts", 12)
    assert len(whole) == 24 and parts == whole


@pytest.mark.weekly
def test_sft_of_trl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A resumed run has the losses of an uninterrupted run, and documents of a row do not see each other."""
    transformers = needed("transformers", "transformers")
    for package in ("accelerate", "datasets", "trl"):
        needed(package, package)
    monkeypatch.syspath_prepend(FOLDER)
    dropin = loaded("trl_sft")
    texts = [json.dumps({"prompt": f"say {n} ", "completion": "word " * (n % 7 + 1)}) for n in range(300)]
    (tmp_path / "texts.jsonl").write_text("\n".join(texts))
    file = str(REPOSITORY / "src/demo/tokenizer.json")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=file, eos_token="<|endoftext|>", pad_token="<|endoftext|>")
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2}
    options = {"max_length": 64, "use_cpu": True, "logging_steps": 1, "disable_tqdm": True, "bf16": False, "lr_scheduler_type": "constant"}

    def model() -> Any:
        dropin.torch.manual_seed(0)
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=len(tokenizer), **sizes))

    def losses(folder: str, steps: int) -> list[float]:
        trainer = dropin.main(model(), tokenizer, str(tmp_path / "texts.jsonl"), tmp_path / folder, steps, **options)
        return [line["loss"] for line in trainer.state.log_history if "loss" in line]

    whole = losses("whole", 6)
    assert losses("parts", 3) == whole[:3] and losses("parts", 6) == whole and len(set(whole)) == 6

    capsys.readouterr()
    monkeypatch.chdir(tmp_path)
    dropin.compare(model(), tokenizer, str(tmp_path / "texts.jsonl"), max_length=64, use_cpu=True, bf16=False)
    assert re.fullmatch(r"SFTTrainer: \d+ ns per token, rows: \d+ ns per token", capsys.readouterr().out.splitlines()[-1])

    rows = dropin.rows(str(tmp_path / "texts.jsonl"), tokenizer, 64).batch(2)
    batch, network = next(iter(dropin.Batches(rows))), model().eval()
    assert batch["labels"].shape == (2, 64) and (batch["labels"] >= 0).any()
    with dropin.torch.no_grad():
        packed = network(batch["input_ids"], position_ids=batch["position_ids"], use_cache=False).logits
        for row, ids, positions in zip(packed, batch["input_ids"], batch["position_ids"].tolist(), strict=True):
            starts = [at for at, position in enumerate(positions) if position == 0]
            assert len(starts) > 2
            for start, end in itertools.pairwise([*starts, 64]):
                alone = network(ids[None, start:end], use_cache=False).logits[0]
                assert (alone - row[start:end]).abs().max() < 1e-5


def by_two(name: str, *arguments: Any) -> list[str]:
    """What a program says that two processes run together, over gloo."""
    launch = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    program = [*launch, str(FOLDER / name), *map(str, arguments)]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(program, capture_output=True, text=True, timeout=240, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.weekly
def test_accelerate(tmp_path: Path, steps: Callable[..., list[str]]) -> None:
    needed("accelerate", "accelerate")
    main = loaded("accelerate_loop").main
    whole = steps(main, tmp_path / "whole", 14)
    # Two processes take the first steps together, and one goes on.
    said = by_two("accelerate_loop.py", tmp_path / "parts", 6)
    assert "processes: 2" in said
    first = [line for line in said if line.startswith("step ")]
    assert len(whole) == 14 and first + steps(main, tmp_path / "parts", 14) == whole


@pytest.fixture
def corpus(tmp_path: Path) -> dict[str, Any]:
    """What a configuration says of a corpus."""
    words = "the mill wheel turns slowly after rain and the miller counts every sack of flour twice".split()
    texts = [" ".join(words[(n * 3 + at) % len(words)] for at in range(n % 23 + 1)) for n in range(40)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return {"dataset_path": str(tmp_path / "*.jsonl"), "tokenizer_json": str(REPOSITORY / "src/demo/tokenizer.json")}


def test_torchtitan(tmp_path: Path, corpus: dict[str, Any]) -> None:
    needed("torchtitan.components.dataloader", "torchtitan")
    import torch
    from torch.distributed import checkpoint
    from torchtitan.components.dataloader import BaseDataLoader

    config = loaded("torchtitan_loader").PackedTextLoader.Config(**corpus)

    def build(rank: int, count: int) -> Any:
        # The arguments of torchtitan's trainer.
        sizes = {"seq_len": 16, "local_batch_size": 4 // count, "snapshot_every_n_steps": 1}
        return config.build(dp_world_size=count, dp_rank=rank, tokenizer=None, **sizes)

    whole = build(0, 1)
    assert isinstance(whole, BaseDataLoader)
    taken = list(zip(range(12), whole, strict=False))
    inputs, labels = taken[0][1]
    assert inputs["input"].shape == inputs["positions"].shape == labels.shape == (4, 16)
    assert inputs["input"].dtype == labels.dtype == torch.int64
    # A label is the next input, or none where the next document starts.
    starts = inputs["positions"][:, 1:] == 0
    assert torch.equal(labels[:, :-1][~starts], inputs["input"][:, 1:][~starts])
    assert starts.any() and (labels[:, :-1][starts] == -100).all()

    both = [build(rank, 2) for rank in range(2)]
    parts = [iter(one) for one in both]
    for _, (inputs, labels) in taken[:5]:
        mine = [next(part) for part in parts]
        assert torch.equal(torch.cat([part[0]["input"] for part in mine]), inputs["input"])
        assert torch.equal(torch.cat([part[1] for part in mine]), labels)
    checkpoint.save({"dataloader": both[1]}, checkpoint_id=tmp_path / "dcp", no_dist=True)
    again = build(0, 1)
    checkpoint.load({"dataloader": again}, checkpoint_id=tmp_path / "dcp", no_dist=True)
    for (_, (inputs, labels)), (same, too) in zip(taken[5:], again, strict=False):
        assert torch.equal(same["input"], inputs["input"]) and torch.equal(too, labels)
    build(0, 1).load_state_dict({})


class Configurable:
    """torchtitan's base of configured classes, as far as loaders use it."""

    @dataclasses.dataclass(kw_only=True, slots=True)
    class Config:
        pass


def test_torchtitan_with_grain(
    tmp_path: Path, corpus: dict[str, Any], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The trainer of August 2026 gives one size, the cells of a batch, and a tokenizer; its batches have one axis."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch, which is large")
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed: pip install tokenizers")
    checkout = os.environ.get("TORCHTITAN_CHECKOUT")
    if checkout:
        from gristmill.compat import grain

        grain.install()
        monkeypatch.syspath_prepend(checkout)
    else:
        module = ModuleType("torchtitan.components.data.loader")
        module.__dict__["BaseDataLoader"] = Configurable
        for name in ("torchtitan", "torchtitan.components", "torchtitan.components.data"):
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
        monkeypatch.setitem(sys.modules, module.__name__, module)
    made = loaded("torchtitan_loader").PackedTextLoader
    config = made.Config(dataset_path=corpus["dataset_path"], accept_changes=True)
    inner = tokenizers.Tokenizer.from_file(corpus["tokenizer_json"])
    tokenizer = SimpleNamespace(tokenizer=inner, bos_id=None, eos_id=0)

    def build(rank: int, count: int) -> Any:
        sizes = {"max_context_length": 16, "num_tokens_per_batch": 32}
        loader = made(config, dp_world_size=count, dp_rank=rank, tokenizer=tokenizer, **sizes)
        request.addfinalizer(loader.loader.close)
        return loader

    whole = [build(rank, 2) for rank in range(2)]
    steps = [list(zip(range(8), loader, strict=False)) for loader in whole]
    inputs, labels = steps[0][0][1]
    assert inputs["input"].shape == inputs["positions"].shape == labels.shape == (32,)
    starts = inputs["positions"][1:] == 0
    assert torch.equal(labels[:-1][~starts], inputs["input"][1:][~starts]) and (labels[:-1][starts] == -100).all()
    assert (inputs["input"] == 0).any(), "each document ends with the trainer's token"
    # Two ranks stop after three steps, and one rank goes on with the rows of both.
    first = [build(rank, 2) for rank in range(2)]
    for loader in first:
        list(zip(range(3), loader, strict=False))
    states = [loader.state_dict() for loader in first]
    assert states[0] == states[1] and "dp_rank" not in str(states[0])
    one = build(0, 1)
    one.load_state_dict(states[0])
    rest = [steps[rank][step][1] for step in range(3, 8) for rank in range(2)]
    for (inputs, labels), (wanted, goal) in zip(one, rest, strict=False):
        assert torch.equal(inputs["input"], wanted["input"]) and torch.equal(labels, goal)


@pytest.mark.weekly
def test_the_data_tests_of_torchtitan_run_on_gristmill() -> None:
    """torchtitan's own tests of its Grain loaders, from a checkout: they are not in its package."""
    checkout = os.environ.get("TORCHTITAN_CHECKOUT")
    if not checkout:
        pytest.skip("TORCHTITAN_CHECKOUT names no checkout of torchtitan")
    program = (
        "import sys, gristmill.compat.grain as grain; grain.install(); import pytest; "
        "sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '--rootdir', *sys.argv[1:]]))"
    )
    folder = Path(checkout) / "tests/unit_tests/components/data"
    # Images need einops.
    files = [folder / "test_grain_data.py", *folder.glob("test_qwen*.py" if importlib.util.find_spec("einops") else "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([checkout, *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", program, checkout, *map(str, files)], capture_output=True, text=True, timeout=600, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout[-3000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed and int(passed[1]) >= 80 and "failed" not in done.stdout, done.stdout[-1000:]


def test_the_loop_of_torchtitan(corpus: dict[str, Any]) -> None:
    needed("torchtitan.components.dataloader", "torchtitan")
    trainer = pytest.importorskip("torchtitan.trainer", reason="torchtitan's trainer asks for more than is installed")
    config = loaded("torchtitan_loader").PackedTextLoader.Config(**corpus)
    loader = config.build(dp_world_size=1, dp_rank=0, tokenizer=None, seq_len=16, local_batch_size=2)
    metrics = SimpleNamespace(ntokens_since_last_log=0, data_loading_times=[])
    batches = trainer.Trainer.batch_generator(SimpleNamespace(metrics_processor=metrics), loader)
    assert next(batches)[1].shape == next(batches)[1].shape == (2, 16)
    assert metrics.ntokens_since_last_log == 64


@pytest.fixture
def shards(tmp_path: Path) -> tuple[list[str], Any]:
    """Three files of nanochat's form, and its tokenizer around an encoding of bytes."""
    arrow, parquet, tiktoken = needed("pyarrow", "pyarrow"), needed("pyarrow.parquet", "pyarrow"), needed("tiktoken", "tiktoken")
    rng, paths = np.random.default_rng(5), [str(tmp_path / f"base_data_climbmix/shard_{n:05}.parquet") for n in range(3)]
    Path(paths[0]).parent.mkdir()
    for path in paths:
        texts = ["x" * n + "yz" for n in rng.lognormal(3.3, 1, 2048).astype(int)]
        parquet.write_table(arrow.table({"text": texts}), path, row_group_size=1024)
    pattern = r"""[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"""
    ranks = {bytes([byte]): byte for byte in range(256)}
    encoding = tiktoken.Encoding("rustbpe", pat_str=pattern, mergeable_ranks=ranks, special_tokens={"<|bos|>": 256})
    (tmp_path / "tokenizer").mkdir()
    (tmp_path / "tokenizer/tokenizer.pkl").write_bytes(pickle.dumps(encoding))
    return paths, SimpleNamespace(enc=encoding, get_bos_token_id=lambda: 256)


def rows_by_best_fit(lengths: list[int], cells: int) -> Iterator[list[tuple[int, int]]]:
    """Documents of each row with the tokens that it takes of them, by nanochat's rule and without its code."""
    waiting: list[int] = []
    unread = itertools.count()
    while True:
        row: list[tuple[int, int]] = []
        while space := cells - sum(taken for _, taken in row):
            while len(waiting) < 1000:
                waiting.extend(itertools.islice(unread, 128))
            fitting = [number for number in waiting if lengths[number] <= space]
            # `max` and `min` return the document that was read first.
            chosen = max(fitting, key=lengths.__getitem__) if fitting else min(waiting, key=lengths.__getitem__)
            waiting.remove(chosen)
            row.append((chosen, min(lengths[chosen], space)))
        yield row


def test_nanochat(shards: tuple[list[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    paths, tokenizer = shards
    dropin = loaded("nanochat_loader")

    def start(ranks: int, rank: int = 0, **options: Any) -> Any:
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", str(ranks))
        steps = dropin.loader_with_state(tokenizer, 8 // ranks, 64, "train", device="cpu", paths=paths, **options)
        return itertools.chain([next(steps)], steps)

    taken = list(itertools.islice(start(1), 60))
    documents = gm.MapDataset.parquet(paths[:-1]).tokenise(tokenizer=tokenizer.enc, column="text", prepend_bos=256)
    lengths = [len(document["tokens"]) for document in documents]
    planned = rows_by_best_fit(lengths, 65)
    for inputs, targets, _ in taken:
        rows = itertools.islice(planned, 8)
        whole = [np.concatenate([documents[number]["tokens"][:n] for number, n in row]) for row in rows]
        assert (inputs.numpy() == np.stack(whole)[:, :-1]).all() and (targets.numpy() == np.stack(whole)[:, 1:]).all()
        assert (inputs[:, 0] == 256).all()
    # Four ranks go on from the state that was saved while batch 20 waited, and one from theirs.
    state = json.loads(json.dumps(taken[20][2]))
    ranks = [start(4, rank, resume_state_dict=state) for rank in range(4)]
    for inputs, targets, _ in taken[20:30]:
        parts = [next(rank) for rank in ranks]
        assert torch_equal([part[0] for part in parts], inputs) and torch_equal([part[1] for part in parts], targets)
    states = [next(rank)[2] for rank in ranks]
    assert len({state["gristmill"]["pass"] for state in states}) == 1
    again = start(1, resume_state_dict=states[3])
    assert all(torch_equal([mine], inputs) for (mine, _, _), (inputs, _, _) in zip(again, taken[30:40], strict=False))


def test_nanochat_with_the_rest_of_each_document(shards: tuple[list[str], Any]) -> None:
    paths, tokenizer = shards
    dropin = loaded("nanochat_loader")
    texts = gm.MapDataset.parquet(paths)
    kept, dropping = (dropin.Rows(dropin.BestFit(texts, tokenizer.enc, 65, keep)) for keep in (True, False))
    seen: Counter[int] = Counter()
    for _ in range(1500):
        next(dropping)
        row = next(kept)["tokens"]
        assert row[0] == 256
        seen.update(row[row != 256].tolist())
    read = Counter(token for n in range(kept.next) for token in kept.documents[n]["tokens"][1:].tolist())
    waiting = Counter(token for _, n, start in kept.waiting for token in kept.tokens[n][start:].tolist())
    assert seen + waiting == read and kept.dropped == 0
    assert dropping.dropped > 1500 * 65 // 100


@pytest.mark.weekly
def test_nanochat_itself(shards: tuple[list[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nanochat's loader and the file yield equal batches on one rank."""
    checkout = os.environ.get("NANOCHAT_CHECKOUT")
    if not checkout:
        pytest.skip("NANOCHAT_CHECKOUT names no checkout of nanochat")
    monkeypatch.setenv("NANOCHAT_BASE_DIR", str(tmp_path))
    monkeypatch.syspath_prepend(checkout)
    if importlib.util.find_spec("rustbpe") is None:
        # Trains tokenizers.
        monkeypatch.setitem(sys.modules, "rustbpe", ModuleType("rustbpe"))
    tokenizer = importlib.import_module("nanochat.tokenizer").RustBPETokenizer.from_directory(str(tmp_path / "tokenizer"))
    theirs = importlib.import_module("nanochat.dataloader").tokenizing_distributed_data_loader_with_state_bos_bestfit
    ours = loaded("nanochat_loader").loader_with_state(tokenizer, 8, 64, "train", device="cpu")
    for _, (inputs, targets, _), mine in zip(range(60), theirs(tokenizer, 8, 64, "train", device="cpu"), ours, strict=False):
        assert torch_equal([mine[0]], inputs) and torch_equal([mine[1]], targets)


def torch_equal(parts: list[Any], whole: Any) -> bool:
    return bool((np.concatenate([part.numpy() for part in parts]) == whole.numpy()).all())


@pytest.fixture
def crops(tmp_path: Path) -> dict[str, gm.MapDataset[Any]]:
    """Rows of 8 tokens: those of `a` are below 1,000, and those of `b` are not."""
    for name, first in (("a", 0), ("b", 1000)):
        np.arange(first, first + 800, dtype=np.uint16).tofile(tmp_path / f"{name}.bin")
    return {name: gm.MapDataset.crops(str(tmp_path / f"{name}.bin"), seq_len=8, layout="u16").shuffle(seed=2) for name in "ab"}


STAGES = [(0, {"a": 1.0}), (10, {"a": 0.25, "b": 0.75}), (30, {"b": 1.0})]


def test_levanter(crops: dict[str, gm.MapDataset[Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    # Levanter's trainer is not on PyPI since 2023. The weekly test takes a checkout.
    data, schedule = ModuleType("levanter.data"), ModuleType("levanter.schedule")
    data.__dict__.update(AsyncDataset=type("AsyncDataset", (), {"__class_getitem__": lambda cls, _: cls}), MixtureDataset=None)
    schedule.__dict__.update(BatchSchedule=lambda size: SimpleNamespace(global_data_offset_by_step=lambda step: step * size))
    for name, module in (("levanter", ModuleType("levanter")), (data.__name__, data), (schedule.__name__, schedule)):
        monkeypatch.setitem(sys.modules, name, module)
    dropin = loaded("levanter_dataset", uses_torch=False)

    rows = dropin.Rows(crops["a"], threads=3)
    for indices in ([], [5], [7, 7, 0, 99], range(100)):
        read = asyncio.run(rows.get_batch(indices))
        assert [row.tolist() for row in read] == [crops["a"][index]["tokens"].tolist() for index in indices]
    assert rows.is_finite() and asyncio.run(rows.async_len()) == asyncio.run(rows.current_len()) == 100

    mix = dropin.Rows(dropin.mixed(crops, STAGES, schedule.BatchSchedule(4)))
    assert not mix.is_finite() and asyncio.run(mix.current_len()) is None
    of_b = [bool(row[0] >= 1000) for row in asyncio.run(mix.get_batch(range(200)))]
    assert [sum(of_b[:40]), sum(of_b[40:120]), sum(of_b[120:])] == [0, 60, 80]
    # Later stages change no earlier row.
    shorter = dropin.Rows(dropin.mixed(crops, STAGES[:2], schedule.BatchSchedule(4)))
    for old, new in zip(*(asyncio.run(one.get_batch(range(119, -1, -1))) for one in (mix, shorter)), strict=True):
        assert (old == new).all()
    alone = dropin.mixed(crops, {"b": 1.0}, schedule.BatchSchedule(4))
    assert [row["tokens"][0] for row in alone[:5]] == [row["tokens"][0] for row in crops["b"][:5]]


@pytest.mark.weekly
def test_levanter_itself(crops: dict[str, gm.MapDataset[Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Levanter's loader yields the rows of a mix, in batches of a schedule, and from any step on."""
    checkout = os.environ.get("LEVANTER_CHECKOUT")
    if not checkout:
        pytest.skip("LEVANTER_CHECKOUT names no folder with Levanter's package")
    monkeypatch.syspath_prepend(checkout)
    for package in ("haliax", "equinox", "optax", "draccus", "levanter"):
        needed(package, package)
    import haliax
    import jax
    from levanter.data.loader import DataLoader
    from levanter.data.text import CausalLmDataset
    from levanter.schedule import BatchSchedule, ScheduleStep

    dropin = loaded("levanter_dataset", uses_torch=False)
    sizes = [ScheduleStep(0, 4), ScheduleStep(20, 6)]
    ds = dropin.mixed(crops, STAGES, BatchSchedule(sizes))
    examples = CausalLmDataset(dropin.Rows(ds), haliax.Axis("position", 8), eos_id=1003)
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("data",))
    with mesh, haliax.axis_mapping({"batch": "data"}):
        loader = DataLoader(examples, sizes, mesh=mesh, axis_resources={"batch": "data"}, max_buffered_batches=0, prefetch_size=4)
        whole = [np.asarray(batch.tokens.array) for batch in itertools.islice(loader, 40)]
        again = [np.asarray(batch.tokens.array) for batch in itertools.islice(loader.iter_from_step(25), 15)]
    assert [len(batch) for batch in whole] == [4] * 20 + [6] * 20
    tokens = np.concatenate(whole)
    assert (tokens == np.stack([ds[index]["tokens"] for index in range(len(tokens))])).all()
    assert all((old == new).all() for old, new in zip(whole[25:], again, strict=True))
    # Steps 0 to 9, 10 to 19 and from 30 on.
    assert not (tokens[:40] >= 1000).any() and (tokens[40:80] >= 1000).mean() == 0.75 and (tokens[140:] >= 1000).all()


@pytest.mark.parametrize("backend", ["jax", "torch"])
@pytest.mark.weekly
def test_keras(tmp_path: Path, backend: str) -> None:
    if importlib.util.find_spec("keras") is None:
        pytest.skip("keras is not installed: pip install keras")
    needed(backend, backend)

    # One process, as each needs seconds to import it; the second of its trainings is the first of two parts.
    program = "import keras_fit as k, sys; from pathlib import Path as P; f = P(sys.argv[1])\n"
    program += 'k.main(f / "whole", 15); print("parts"); k.main(f / "parts", 5); k.main(f / "parts", 15)'
    environment = {**os.environ, "KERAS_BACKEND": backend, "CUDA_VISIBLE_DEVICES": ""}
    environment["PYTHONPATH"] = os.pathsep.join([str(FOLDER), environment.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    whole, parts = done.stdout.split("parts\n")
    assert whole.count("step ") == 15 and parts == whole


@pytest.mark.parametrize("stop", [4, 10, 17])
def test_loops_for_reinforcement_learning(tmp_path: Path, steps: Callable[..., list[str]], stop: int) -> None:
    dropin = loaded("rl_loop")
    for folder in ("whole", "parts"):
        (tmp_path / folder).mkdir()
    whole = steps(dropin.train, dropin.loader(), tmp_path / "whole", 100)
    parts = steps(dropin.train, dropin.loader(), tmp_path / "parts", stop)
    parts += steps(dropin.train, dropin.loader(), tmp_path / "parts", 100)
    assert len(whole) == 30 and parts == whole


def test_that_loop_takes_a_loader_of_torchdata_as_well(tmp_path: Path, steps: Callable[..., list[str]]) -> None:
    dropin = loaded("rl_loop")
    stateful = pytest.importorskip("torchdata.stateful_dataloader", reason="torchdata is not installed: pip install torchdata")

    def theirs() -> Any:
        rows = [{"index": n, "ground_truth": str(2 * n)} for n in range(60)]
        return stateful.StatefulDataLoader(rows, batch_size=6)

    parts = steps(dropin.train, theirs(), tmp_path, 4) + steps(dropin.train, theirs(), tmp_path, 100)
    assert len(parts) == 30 and len(theirs()) == len(dropin.loader())

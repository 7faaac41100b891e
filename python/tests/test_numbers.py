"""Every number that a user may give: too small or absurd, it is an error that names it or does no harm, and nothing aborts or hangs."""

import gc
import itertools
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
import pytest
from forks import in_fork

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="each number is tried in a fork")

COMMAND = [sys.executable, "-c", "from gristmill._cli import main; main()"]
ABSURD = (-1, 0, 1 << 31, 1 << 40, 1 << 62, 1 << 63, 1 << 70)
#: Bytes that a fork may take beyond what it has.
ROOM = 2 << 30
SECONDS = 20


def elements() -> gm.MapDataset:
    return gm.MapDataset.range(20).map(lambda x: {"ids": np.full(1 + x % 5, x, np.int32)})


def stream() -> gm.IterDataset:
    return elements().to_iter_dataset()


def numbers() -> gm.MapDataset:
    return gm.MapDataset.range(20).seed(1)


def lines(tmp: Path) -> str:
    return str(tmp / "lines.jsonl")


def rows(**more: Any) -> dict[str, Any]:
    return {"length": {"ids": 8}, **more}


def workers(**options: Any) -> Any:
    return numbers().mp_prefetch(**{"num_workers": 1, "ram_budget": "64MiB", **options}).loader()


def to_sink(tmp: Path, **options: Any) -> Any:
    with gm.sink(tmp / f"sink-{os.getpid()}", **options) as sink:
        for n in range(3):
            sink.write({"n": n})
    return ()


#: By stage and argument: what is done with the number.
TAKE: dict[str, Callable[[int, Path], Any]] = {
    "range start": lambda n, _: gm.MapDataset.range(n, 5),
    "range stop": lambda n, _: gm.MapDataset.range(0, n),
    "range step": lambda n, _: gm.MapDataset.range(0, 20, n),
    "seed": lambda n, _: numbers().seed(n).shuffle(),
    "shuffle seed": lambda n, _: numbers().shuffle(seed=n),
    "map window_shuffle": lambda n, _: numbers().window_shuffle(n),
    "map window_shuffle seed": lambda n, _: numbers().window_shuffle(4, seed=n),
    "slice start": lambda n, _: numbers()[n:],
    "slice step": lambda n, _: numbers()[::n],
    "shard index": lambda n, _: numbers().shard(n, 4),
    "shard count": lambda n, _: numbers().shard(0, n),
    "select_indices": lambda n, _: numbers().select_indices([n]),
    "map repeat": lambda n, _: numbers().repeat(n),
    "random_map seed": lambda n, _: numbers().random_map(lambda x, rng: x, seed=n),
    "map filter min_length": lambda n, _: elements().filter(column="ids", min_length=n),
    "map filter max_length": lambda n, _: elements().filter(column="ids", max_length=n),
    "flat_map": lambda n, _: numbers().flat_map(lambda x: [x], n),
    "map batch": lambda n, _: numbers().batch(n),
    "map batch of arrays": lambda n, _: gm.MapDataset.range(20).map(lambda x: np.int32(x)).batch(n),
    "bad_record_limit": lambda n, _: numbers().to_iter(on_bad_record="skip", bad_record_limit=n),
    "consecutive_bad_record_limit": lambda n, _: numbers().to_iter(on_bad_record="skip", consecutive_bad_record_limit=n),
    "iter seed": lambda n, _: stream().seed(n).window_shuffle(3),
    "window_shuffle": lambda n, _: stream().window_shuffle(n, seed=1),
    "window_shuffle seed": lambda n, _: stream().window_shuffle(4, seed=n),
    "repeat": lambda n, _: stream().repeat(n),
    "limit": lambda n, _: stream().limit(n),
    "skip_bad_records": lambda n, _: stream().skip_bad_records(n),
    "iter random_map seed": lambda n, _: stream().random_map(lambda x, rng: x, seed=n),
    "batch": lambda n, _: numbers().to_iter_dataset().batch(n),
    "native batch": lambda n, tmp: gm.MapDataset.jsonl(lines(tmp)).to_iter_dataset().batch(n),
    "batch drop": lambda n, _: numbers().to_iter_dataset().batch(n, drop_remainder=True),
    "rebatch": lambda n, tmp: gm.MapDataset.jsonl(lines(tmp)).to_iter_dataset().batch(batch_size=4).rebatch(n),
    "interleave": lambda n, _: gm.IterDataset.interleave([stream(), stream()], n),
    "lanes": lambda n, tmp: gm.IterDataset.jsonl(str(tmp / "lines.jsonl.gz"), lanes=n),
    "csv infer_rows": lambda n, tmp: gm.MapDataset.csv(str(tmp / "rows.csv"), infer_rows=n),
    "npz cache_bytes": lambda n, tmp: gm.MapDataset.npz(str(tmp / "rows.npz"), rows=True, cache_bytes=n),
    "crops seq_len": lambda n, tmp: gm.MapDataset.crops(str(tmp / "ids.npy"), seq_len=n),
    "random_crops seq_len": lambda n, tmp: gm.MapDataset.random_crops(str(tmp / "ids.npy"), seq_len=n, seed=1),
    "random_crops seed": lambda n, tmp: gm.MapDataset.random_crops(str(tmp / "ids.npy"), seq_len=4, seed=n),
    "random_crops epoch": lambda n, tmp: gm.MapDataset.random_crops(str(tmp / "ids.npy"), seq_len=4, seed=1, epoch=n),
    "first_fit_pack bins": lambda n, _: stream().first_fit_pack(**rows(num_packing_bins=n)),
    "first_fit_pack seed": lambda n, _: stream().first_fit_pack(**rows(num_packing_bins=4, seed=n)),
    "first_fit_pack length": lambda n, _: stream().first_fit_pack(length={"ids": n}, num_packing_bins=4),
    "first_fit_pack most": lambda n, _: stream().first_fit_pack(**rows(num_packing_bins=4, max_sequences_per_bin=n)),
    "first_fit_pack align": lambda n, _: stream().first_fit_pack(**rows(num_packing_bins=4, align={"ids": n})),
    "best_fit_pack bins": lambda n, _: stream().best_fit_pack(**rows(num_packing_bins=n)),
    "best_fit_pack length": lambda n, _: stream().best_fit_pack(length={"ids": n}, num_packing_bins=4),
    "window_pack window": lambda n, _: stream().window_pack(**rows(window=n)),
    "window_pack length": lambda n, _: stream().window_pack(length={"ids": n}),
    "window_pack most": lambda n, _: stream().window_pack(**rows(max_sequences_per_bin=n)),
    "window_pack batch": lambda n, _: stream().window_pack(**rows()).batch(n),
    "concat length": lambda n, _: stream().concat_then_split_pack(length={"ids": n}),
    "concat bos": lambda n, _: stream().concat_then_split_pack(
        **rows(bos_handling="replace_first_token_with_bos", bos_token_id=n, bos_features=["ids"])
    ),
    "buckets boundaries": lambda n, _: stream().length_buckets(features=["ids"], boundaries=[n], batch=2),
    "buckets batch": lambda n, _: stream().length_buckets(features=["ids"], boundaries=[8], batch=n),
    "buckets tokens": lambda n, _: stream().length_buckets(features=["ids"], boundaries=[8], batch={"tokens": n}),
    "buckets padded": lambda n, _: stream().length_buckets(features=["ids"], boundaries=[8], batch=n, remainder="pad"),
    "buckets window": lambda n, _: stream().length_buckets(features=["ids"], boundaries=[8], batch=2, window=n),
    "loader threads": lambda n, _: numbers().loader(threads=n),
    "loader buffer": lambda n, _: numbers().loader(threads=1, buffer=n),
    "num_workers": lambda n, _: workers(num_workers=n),
    "max_workers": lambda n, _: workers(num_workers=None, max_workers=n),
    "threads_per_worker": lambda n, _: workers(threads_per_worker=n),
    "per_worker_buffer_size": lambda n, _: workers(per_worker_buffer_size=n),
    "ram_budget": lambda n, _: workers(ram_budget=n),
    "worker_heap": lambda n, _: workers(worker_heap=n),
    "max_element": lambda n, _: workers(max_element=n),
    "retries": lambda n, _: workers(retries=n),
    "deadline": lambda n, _: workers(deadline=n),
    "sink shard_bytes": lambda n, tmp: to_sink(tmp, shard_bytes=n),
    "sink shard_records": lambda n, tmp: to_sink(tmp, shard_records=n),
    "sink group": lambda n, tmp: to_sink(tmp, format="parquet", group=n),
    "sink threads": lambda n, tmp: to_sink(tmp, threads=n),
    "sink memory": lambda n, tmp: to_sink(tmp, memory=n),
    "store requests": lambda n, _: gm.store_options(requests=n),
    "store attempts": lambda n, _: gm.store_options(attempts=n),
    "store memory": lambda n, _: gm.store_options(memory=n),
    "store cache_size": lambda n, _: gm.store_options(cache_size=n),
    "store timeout": lambda n, _: gm.store_options(timeout=n),
    "store stall": lambda n, _: gm.store_options(stall=n),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import gzip

    folder = tmp_path_factory.mktemp("numbers")
    text = "".join(f'{{"n": {n}}}\n' for n in range(20))
    (folder / "lines.jsonl").write_text(text)
    (folder / "lines.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "rows.csv").write_text("a,b\n" + "1,2\n" * 20)
    np.savez_compressed(folder / "rows.npz", x=np.arange(20))
    np.save(folder / "ids.npy", np.arange(100, dtype=np.uint16))
    return folder


def tried(take: Callable[[int, Path], Any], number: int, folder: Path) -> str:
    """What comes of the number: "fine", or the error of the package that names it."""
    # What this process held before is left alone, with all tests behind it: the collection at the end of the fork would write to every page.
    gc.freeze()
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if sys.platform == "linux" else 0
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
    signal.alarm(SECONDS)
    try:
        made = take(number, folder)
        for _ in itertools.islice(made or (), 3):
            pass
    except gm.Error as error:
        return str(error)
    return "fine"


@pytest.mark.parametrize("argument", TAKE)
def test_an_absurd_number_is_named_or_does_no_harm(argument: str, files: Path) -> None:
    for number in ABSURD:
        said = in_fork(lambda number=number: tried(TAKE[argument], number, files))
        assert said == "fine" or any(char.isdigit() for char in said), f"{number}: {said}"


REFUSED = {
    "batch -1": (lambda: stream().batch(-1), "batch: batch_size is -1, and must be 0 or more"),
    "batch by name": (lambda: stream().batch(batch_size=-1), "-1"),
    "threads -1": (lambda: stream().loader(threads=-1), "threads: -1 is less than 0"),
    "threads": (lambda: stream().loader(threads=10**6), "threads is 1000000, and must be 4096 or less"),
    "buffer": (lambda: stream().loader(threads=1, buffer=1 << 40), "buffer is 1099511627776, and must be 1048576 or less"),
    "seed": (lambda: numbers().shuffle(seed=1 << 32), "shuffle: seed is 4294967296, and must be 4294967295 or less"),
    "negative seed": (lambda: numbers().shuffle(-1), "shuffle: seed is -1, and must be 0 or more"),
    "index": (lambda: numbers().select_indices([0, -1]), "select_indices: indices is -1, and must be 0 or more"),
    "bins": (
        lambda: iter(stream().first_fit_pack(length={"ids": 8}, num_packing_bins=1 << 40)),
        "packing into 1099511627776 bins, and there can be 1 to 16777216",
    ),
    "ram_budget": (lambda: gm.MpOptions(ram_budget=16384), "ram_budget is 16384 bytes, and must be 1 MiB or more"),
    "huge ram_budget": (lambda: gm.MpOptions(ram_budget="99999999TiB"), "ram_budget: `99999999TiB` is no amount of memory"),
    "retries": (lambda: gm.MpOptions(retries=1 << 40), "retries: is 1099511627776, and must be at most 4294967295"),
    "workers": (lambda: gm.MpOptions(num_workers=1 << 20), "num_workers: is 1048576, and must be at most 4096"),
    "sink": (lambda: gm.sink("nowhere", threads=-1), "sink: threads is -1, and must be 0 or more"),
    "deadline": (lambda: gm.MpOptions(deadline=float("inf")), "deadline: needs a number"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_number_that_cannot_be_is_named_with_its_limit(case: str) -> None:
    ask, expected = REFUSED[case]
    with pytest.raises(gm.ConfigError) as raised:
        ask()
    assert expected in str(raised.value)


def test_a_budget_without_a_unit_is_asked_about() -> None:
    with pytest.raises(gm.ConfigError) as raised:
        gm.MpOptions(ram_budget=16384)
    assert "did you mean 16384MiB?" in str(raised.value.help)


@pytest.mark.parametrize("budget", ["50MiB", "50M", "50Mi", "0.048828125GiB", "52428800", 50 << 20])
def test_a_budget_is_read_as_the_command_line_reads_it(budget: int | str) -> None:
    with pytest.raises(gm.ConfigError, match=r"ram_budget is 50 MiB; 2 x \(64 MiB of heap"):
        iter(numbers().mp_prefetch(num_workers=2, ram_budget=budget))


def test_a_budget_beyond_the_machine_is_remarked(caplog: pytest.LogCaptureFixture) -> None:
    with gm.MapDataset.range(9).mp_prefetch(ram_budget="500TiB", worker_heap="64MiB").loader() as it:
        assert next(it) == 0
    assert any("ram_budget is 500 TiB, but the machine has" in record.message for record in caplog.records)


@pytest.mark.parametrize("arguments", [["--threads", "100000"], ["--buffer", "1000000000"], ["--ram", "16384"]])
def test_the_command_line_refuses_absurd_numbers_at_once(arguments: list[str], files: Path, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(f"source:\n  jsonl: {files}/lines.jsonl\nstages:\n  - to_iter\n  - batch: 4\n")
    command = [*COMMAND, "run", str(tmp_path / "p.yaml"), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2 and ("must be" in ended.stderr or "at most" in ended.stderr), ended.stderr


def test_explain_refuses_a_budget_of_a_few_bytes(files: Path, tmp_path: Path) -> None:
    pipeline = f"source:\n  jsonl: {files}/lines.jsonl\nstages:\n  - to_iter\nexecutor: {{ram_budget: 16384}}\n"
    (tmp_path / "p.yaml").write_text(pipeline)
    command = [*COMMAND, "explain", str(tmp_path / "p.yaml")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2 and "did you mean 16384MiB?" in ended.stderr, ended.stderr


def test_a_batch_that_cannot_be_allocated_is_an_error() -> None:
    """Rows that are there, and a batch of them that is not to be had."""

    def work() -> str:
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        large = gm.MapDataset.npy(path).repeat(1 << 20).to_iter_dataset().batch(4096)
        try:
            next(iter(large))
        except gm.ConfigError as error:
            return str(error)
        return "no error"

    path = "/dev/null"
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/rows.npy"
        np.save(path, np.zeros((2, 1 << 20), np.float32))
        assert "cannot allocate 16 GiB of memory for one array" in in_fork(work)

"""Forks of a program with open loaders: the child owns none of them, and makes its own."""

import json
import os
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
import pytest
from forks import PATIENCE, in_fork, refused
from servers import free_port, running

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    # Forks collect what they inherit.
    pytest.mark.usefixtures("own_heap"),
]

HOW: dict[str, Callable[[gm.IterDataset], gm.DatasetIterator]] = {
    "threads": lambda ds: ds.loader(threads=2),
    "one thread": lambda ds: ds.loader(threads=1, buffer=1),
    "workers": lambda ds: ds.mp_prefetch(num_workers=1, ram_budget="1GiB").loader(),
    "native workers": lambda ds: ds.mp_prefetch(ram_budget="256MiB").loader(),
    "workers=0": lambda ds: ds.mp_prefetch(num_workers=0).loader(),
}

ASK: dict[str, Callable[[gm.DatasetIterator], Any]] = {
    "next": next,
    "get_state": gm.DatasetIterator.get_state,
    "set_state": lambda it: it.set_state({}),
    "report": gm.DatasetIterator.report,
    "start_prefetch": gm.DatasetIterator.start_prefetch,
}


def numbers(python: bool) -> gm.IterDataset:
    ds = gm.MapDataset.range(1 << 40)
    return (ds.map(abs) if python else ds).to_iter_dataset().batch(4)


@pytest.mark.parametrize("how", HOW)
def test_a_loader_of_the_parent_is_an_error_in_a_fork_and_goes_on_in_the_parent(how: str) -> None:
    with HOW[how](numbers(python=how != "native workers")) as it:
        first = [next(it)[0] for _ in range(3)]
        for ask in ASK.values():
            said = in_fork(lambda ask=ask: refused(lambda: ask(it)))
            assert f"this iterator belongs to process {os.getpid()}" in said, said
        assert in_fork(it.close) == "None"
        first += [next(it)[0] for _ in range(50)]
        assert first == list(range(0, 4 * 53, 4))
        assert it.get_state()["delivered"] == 53


@pytest.mark.parametrize("how", HOW)
def test_a_fork_drops_the_loader_of_its_parent_silently(how: str) -> None:
    held = [HOW[how](numbers(python=how != "native workers"))]
    next(held[0])
    assert in_fork(held.clear) == "None"
    assert next(held[0])[0] == 4
    held[0].close()


ENDS = ["pass", "sys.exit()", "os._exit(0)", "del it", "it.close()", "del it; gc.collect(); sys.exit()"]


@pytest.mark.parametrize("how", ["loader(threads=2)", "mp_prefetch(num_workers=1, ram_budget='1GiB').loader()", "loader()"])
def test_however_a_fork_ends_it_ends_silently(how: str) -> None:
    program = f"""
        import gc, os, sys
        import gristmill as gm
        it = gm.MapDataset.range(1 << 40).map(abs).to_iter_dataset().{how}
        next(it)
        for end in {ENDS!r}:
            pid = os.fork()
            if pid == 0:
                exec(end)
                # The whole way out of the interpreter.
                sys.exit(0)
            assert os.waitpid(pid, 0)[1] == 0, end
        assert next(it) == 1
        print("done")
    """
    ended = run(program)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")


def run(program: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_a_loader_without_threads_goes_on_in_each_process_by_itself() -> None:
    it = numbers(python=True).loader()
    next(it)
    assert in_fork(lambda: next(it)[0]) == "4"
    assert next(it)[0] == 4


def test_a_fork_does_not_wait_for_a_thread_that_was_just_asking_an_iterator() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def waits(x: int) -> int:
        inside.set()
        go_on.wait()
        return x

    it = gm.MapDataset.range(10).map(waits).to_iter_dataset().loader()
    asks = threading.Thread(target=next, args=(it,))
    asks.start()
    inside.wait()
    assert "belongs to process" in in_fork(lambda: refused(lambda: next(it)))
    assert in_fork(it.close) == "None"
    go_on.set()
    asks.join()


def test_a_function_of_the_pipeline_may_fork() -> None:
    def forks(x: int) -> int:
        return int(in_fork(lambda: x + 1))

    for how in (gm.IterDataset.loader, HOW["threads"]):
        assert list(how(gm.MapDataset.range(5).map(forks).to_iter_dataset())) == [1, 2, 3, 4, 5]


def test_a_fork_reads_the_dataset_whose_rows_a_thread_was_just_decoding(tmp_path: Path) -> None:
    """Threads that read one row group wait for each other: their turn would never come in a fork."""
    with gm.sink(tmp_path / "rows", format="parquet", compression="zstd") as sink:
        for n in range(20_000):
            sink.write({"n": n, "x": np.full(40, n * 7919 % 1009, np.int64)})
    rows = gm.MapDataset.parquet(str(tmp_path / "rows" / "*.parquet"), cache_bytes=1).shuffle(1)
    with rows.repeat().to_iter_dataset().batch(8).loader(threads=2) as it:
        for _ in range(5):
            next(it)
            assert in_fork(lambda: rows[3]["x"].shape) == "(40,)"


#: Serves ranges of ten records, whatever the path.
SERVER = """
import http.server, sys
DATA = b'{"n": 1}\\n' * 10
class Ranges(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(DATA)))
        self.send_header("ETag", '"1"')
        self.end_headers()
    def do_GET(self):
        first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        part = DATA[first : last + 1]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(DATA)}")
        self.send_header("Content-Length", str(len(part)))
        self.send_header("ETag", '"1"')
        self.end_headers()
        self.wfile.write(part)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Ranges).serve_forever()
"""


def test_what_was_opened_of_a_server_is_an_error_in_a_fork_which_opens_it_anew() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/r.jsonl"
    with running([sys.executable, "-c", SERVER, str(port)], lambda: socket.create_connection(("127.0.0.1", port)).close()):
        opened = gm.MapDataset.jsonl(url)
        assert opened[3]["n"] == 1
        assert "an open object of a store belongs to process" in in_fork(lambda: refused(lambda: opened[4]))
        assert in_fork(lambda: gm.MapDataset.jsonl(url)[4]["n"]) == "1"
        assert opened[5]["n"] == 1


def batches(threads: int, workers: int | None) -> list[int]:
    ds = gm.MapDataset.range(40).map(abs).to_iter_dataset()
    if workers is not None:
        ds = ds.mp_prefetch(num_workers=workers, ram_budget="1GiB")
    return [int(batch.sum()) for batch in ds.batch(10).loader(threads=threads)]


@pytest.mark.parametrize(("threads", "workers"), [(0, None), (2, None), (0, 1)])
@pytest.mark.parametrize("how", ["threads", "workers"])
def test_a_fork_makes_loaders_of_its_own(how: str, threads: int, workers: int | None) -> None:
    with HOW[how](numbers(python=True)) as it:
        next(it)
        assert in_fork(lambda: batches(threads, workers)) == str([45, 145, 245, 345])
        next(it)


def test_a_fork_opens_files_although_its_parent_has_threads_for_that(jsonl: Path, npy: Path, tmp_path: Path) -> None:
    """Indices of lines are built by all cores, and large batches are made in memory that is used again."""
    large = tmp_path / "large.jsonl"
    large.write_text("".join(json.dumps({"n": n, "x": "x" * 100}) + "\n" for n in range(60_000)))

    def opens() -> int:
        lines = gm.MapDataset.jsonl(str(large))
        rows = gm.MapDataset.npy(str(npy)).repeat(1000).to_iter_dataset().batch(8192)
        return len(lines) + len(gm.MapDataset.jsonl(str(jsonl))) + sum(len(b["data"]) for b in rows.loader(threads=2))

    expected = opens()
    with HOW["threads"](numbers(python=False)) as it:
        next(it)
        assert in_fork(opens) == str(expected)


@pytest.mark.parametrize("how", ["Pool", "ProcessPoolExecutor"])
def test_pools_of_forks_make_loaders_without_a_word(how: str) -> None:
    program = f"""
        import concurrent.futures, multiprocessing
        import gristmill as gm
        def work(n):
            ds = gm.MapDataset.range(40).map(abs).to_iter_dataset().batch(10)
            it = ds.loader(threads=n % 3)
            first = next(it)
            # Left open: the process ends with it.
            work.kept = it
            return int(first.sum())
        fork = multiprocessing.get_context("fork")
        with gm.MapDataset.range(1 << 40).map(abs).to_iter_dataset().loader(threads=2) as it:
            next(it)
            if {how!r} == "Pool":
                with fork.Pool(2) as pool:
                    found = pool.map(work, range(6))
                    pool.close()
                    pool.join()
            else:
                with concurrent.futures.ProcessPoolExecutor(2, mp_context=fork) as pool:
                    found = list(pool.map(work, range(6)))
            next(it)
        process = fork.Process(target=print, args=("child",))
        process.start()
        process.join()
        print(found, process.exitcode)
    """
    ended = run(program)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"child\n{[45] * 6} 0\n", "")


def test_torch_evaluates_with_workers_while_a_loader_is_open() -> None:
    pytest.importorskip("torch")
    program = """
        import numpy as np, torch
        import gristmill as gm
        train = gm.MapDataset.range(1 << 40).map(abs).to_iter_dataset().batch(4)
        class Rows(torch.utils.data.Dataset):
            def __len__(self):
                return 32
            def __getitem__(self, n):
                return np.float32(n)
        class Stream(torch.utils.data.IterableDataset):
            def __iter__(self):
                return iter(gm.MapDataset.range(8).map(np.float32).to_iter_dataset().loader(threads=1))
        for open_train in (lambda: train.loader(threads=2), lambda: train.mp_prefetch(num_workers=1, ram_budget="1GiB").loader()):
            with open_train() as it:
                next(it)
                for ds in (Rows(), Stream()):
                    loader = torch.utils.data.DataLoader(ds, batch_size=8, num_workers=2, multiprocessing_context="fork")
                    print(sum(float(batch.sum()) for batch in loader))
                next(it)
    """
    ended = run(program)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "496.0\n56.0\n" * 2, "")


#: Of a program whose `it` is a pass over 4-row batches with batches under way: what a fork is told of it, and how it ends.
ASKED = """
        asks = {asks!r}
        for end in {ends!r}:
            pid = os.fork()
            if pid == 0:
                for ask in asks:
                    try:
                        print("no error, but", eval(ask), flush=True)
                    except gm.WorkerError as error:
                        assert f"this iterator belongs to process {{os.getppid()}}" in str(error), error
                exec(end)
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0, end
        print(int(next(it)["x"][0]), "done")
        it.close()
"""


@pytest.mark.parametrize("how", ["ds", "ds.loader(threads=2)", "ds.mp_prefetch(num_workers=1, ram_budget='1GiB').loader()"])
def test_batches_on_devices_are_an_error_in_a_fork_and_go_on_in_the_parent(how: str) -> None:
    pytest.importorskip("jax")
    asks = ["next(it)", "it.get_state()", "it.set_state({})", "it.start_prefetch()", "it.report()"]
    program = f"""
        import gc, os, sys, warnings
        warnings.simplefilter("ignore")
        import jax
        import gristmill as gm
        ds = gm.MapDataset.range(1 << 20).map(lambda x: {{"x": x}}).to_iter_dataset().batch(4)
        it = gm.jax.device_put({how}, buffer=3)
        assert int(next(it)["x"][0]) == 0
    """
    ended = run(program + ASKED.format(asks=asks, ends=["pass", "it.close()", "it.__exit__()", "del it; gc.collect()"]))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "4 done\n", "")


def test_batches_in_page_locked_memory_are_an_error_in_a_fork() -> None:
    pytest.importorskip("torch")
    program = """
        import gc, os, sys, warnings
        warnings.simplefilter("ignore")
        import gristmill as gm
        ds = gm.MapDataset.range(1 << 20).map(lambda x: {"x": x}).to_iter_dataset().batch(4)
        it = iter(gm.torch.IterableDataset(ds, pin_memory=True))
        assert int(next(it)["x"][0]) == 0
    """
    asks = ["next(it)", "it.state_dict()", "it.load_state_dict({})", "it.report()"]
    ended = run(program + ASKED.format(asks=asks, ends=["pass", "it.close()", "del it; gc.collect()", "sys.exit()"]))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "4 done\n", "")


def test_a_fork_neither_writes_to_a_sink_of_its_parent_nor_ends_it(tmp_path: Path) -> None:
    with gm.sink(tmp_path / "out", shard_records=2) as sink:
        sink.write({"n": 1})
        for ask in (lambda: sink.write({"n": 2}), sink.finish, sink.stop, lambda: sink.records):
            assert "this sink belongs to process" in in_fork(lambda ask=ask: refused(ask))
        assert in_fork(lambda: sink.__exit__(None, None, None)) == "None"
        sink.write({"n": 2})
    assert [r["n"] for r in gm.MapDataset.jsonl(str(tmp_path / "out" / "*.jsonl"))] == [1, 2]


@pytest.mark.parametrize("daemon", [True, False])
def test_a_thread_that_iterates_ends_with_the_program(daemon: bool) -> None:
    """A daemon does so silently; another is told that its iterator was closed."""
    program = f"""
        import threading
        import gristmill as gm
        it = gm.MapDataset.range(1 << 40).map(abs).to_iter_dataset().loader(threads=2)
        begun = threading.Event()
        def iterate():
            for _ in it:
                begun.set()
        threading.Thread(target=iterate, daemon={daemon}).start()
        begun.wait()
    """
    ended = run(program)
    assert (ended.returncode, ended.stdout) == (0, "")
    assert ended.stderr == "" if daemon else "ValueError: the iterator is closed" in ended.stderr

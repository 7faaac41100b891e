"""Two processes of `jax.distributed` end at the same step, whatever their data, and what one lacks no other waits for."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
import parts_pipeline
import pytest

pytest.importorskip("jax", reason="JAX is not installed: pip install jax")

# For all scenes of a program: a step that waits for the other process waits for ever.
LIMIT_S = 200
# All tests here run in one process, and after one another: each program has as many processes as a small machine has cores, or more.
pytestmark = [pytest.mark.xdist_group("jax_hosts"), pytest.mark.timeout(900)]

#: What each process saw of a scene, or the complaint of a process that failed in it.
Seen = dict[str, list[Any] | str]


def scenes(program: str, count: int, devices: int, names: Sequence[str], folder: Path | None = None) -> Seen:
    """Runs scenes in `count` processes of a program, each with `devices` devices. After one that fails, new processes run the rest."""
    came: Seen = {}
    while len(came) < len(names):
        left = names[len(came) :]
        out, complaint = together(program, count, devices, left, folder)
        # Other lines are Gloo's.
        lines = [[json.loads(line) for line in text.splitlines() if line.startswith('["')] for text in out]
        seen = list(zip(*lines, strict=False))
        came |= {each[0][0]: [value for _, value in each] for each in seen}
        if len(seen) < len(left):
            came[left[len(seen)]] = complaint or "a process ended without a result"
        elif complaint:
            came[left[-1]] = complaint
    return came


def together(program: str, count: int, devices: int, names: Sequence[str], folder: Path | None) -> tuple[list[str], str]:
    """What the processes print, and the complaint of those that failed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    flags = f"--xla_force_host_platform_device_count={devices}"
    environment = dict(os.environ, XLA_FLAGS=flags, JAX_PLATFORMS="cpu")
    start = [sys.executable, str(Path(__file__).with_name(program)), address]
    running: list[subprocess.Popen[str]] = []
    with tempfile.TemporaryDirectory() as outputs, ExitStack() as files:
        for process in range(count):
            out, err = (files.enter_context(open(f"{outputs}/{name}{process}", "w+")) for name in ("out", "err"))
            command = [*start, str(process), str(count), *names]
            running.append(subprocess.Popen(command, stdout=out, stderr=err, text=True, env=environment, cwd=folder))
        try:
            until = time.monotonic() + LIMIT_S
            # One that fails leaves the others waiting.
            while any(one.poll() is None for one in running) and not any(one.poll() for one in running):
                if time.monotonic() > until:
                    break
                # Looks again: nothing waits for the first of several processes.
                time.sleep(0.02)
            late = f"they are at it for {LIMIT_S} s\n" if time.monotonic() > until else ""
            codes = [one.poll() for one in running]
        finally:
            for one in running:
                one.kill()
                one.wait()
        out, err = ([Path(f"{outputs}/{name}{at}").read_text() for at in range(count)] for name in ("out", "err"))
    # The others did not end by themselves.
    complaints = [complaint or f"exit status {code}" for code, complaint in zip(codes, err, strict=True) if code not in (0, None)]
    return out, late + "\n".join(complaints)


@pytest.fixture(scope="module")
def hosts() -> Seen:
    """What two processes saw, each of two devices."""
    return scenes("jax_hosts.py", 2, 2, ["drop", "agree", "parts", "listed", "failing", "pad", "settings", "memory", "mixed"])


@pytest.fixture(scope="module")
def run(hosts: Seen) -> Callable[[str], list[Any]]:
    """What the two processes saw of a scene."""
    return lambda scene: seen_of(hosts, scene)


def seen_of(came: Seen, scene: str) -> list[Any]:
    """What all processes saw of a scene, which must not have failed."""
    seen = came[scene]
    assert not isinstance(seen, str), seen
    return seen


@pytest.fixture(scope="module")
def resumed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[Seen]]]:
    """The folder of the corpora, and what four processes, then two, three and one saw of the pipelines of `jax_parts.py`."""
    folder = tmp_path_factory.mktemp("parts")
    parts_pipeline.write_corpora(folder)
    came: dict[str, list[Seen]] = {"pipeline": [], "shown": []}
    for count in (4, 2, 3, 1):
        # A pipeline that failed has no state to go on from.
        names = [name for name, before in came.items() if not any(isinstance(seen[name], str) for seen in before)]
        seen = scenes("jax_parts.py", count, 1, names, folder)
        for name in names:
            came[name].append(seen)
    return folder, came


def steps_of(came: list[Seen], scene: str) -> list[Any]:
    """The steps that the first process saw, of all numbers of processes."""
    return [step for seen in came for step in seen_of(seen, scene)[0]]


def sums(*batches: list[int]) -> list[list[float]]:
    return [[sum(batch), 2 * sum(batch), 1] for batch in batches]


def by_four(count: int) -> list[list[int]]:
    return [[4 * k + 1, 4 * k + 2, 4 * k + 3, 4 * k + 4] for k in range(count)]


def test_drop_ends_all_after_the_same_step(run: Callable[[str], list[Any]]) -> None:
    seen = run("drop")
    assert [one["all"] for one in seen] == [sums(*by_four(5))] * 2
    # Of 21 elements one process has 11, and with them a batch that is no whole one, and the other has none there.
    assert seen[0]["one by one"] == [
        sums(*by_four(5))[4:],
        "DataError: a batch has shape (1,), and this process must supply 2 of 4 rows",
    ]
    assert seen[1]["one by one"] == [
        sums(*by_four(5))[4:],
        "DataError: the data of process 1 ended after 5 batches, and max_steps is 6",
    ]
    assert {one["no number"] for one in seen} == {"ConfigError: end='drop' over several processes requires `max_steps`"}


def test_agree_ends_all_in_front_of_the_first_batch_that_one_lacks(run: Callable[[str], list[Any]]) -> None:
    expected = {
        **{f"depth {depth}": sums(*by_four(3)) for depth in (0, 2, 9)},
        "nothing": [],
        "at most": 2,
        "resumed": sums(*by_four(3))[2:],
        "again": [0, 3],
    }
    assert run("agree") == [expected] * 2


def test_what_goes_wrong_on_one_process_ends_the_others(run: Callable[[str], list[Any]]) -> None:
    seen = run("failing")
    assert [one["before"] for one in seen] == [sums(*by_four(3))] * 2
    assert seen[0]["then"] == "DataError: process 1 failed at this batch, so all processes end"
    assert seen[1]["then"] == "KeyError: 'thirteen'"
    assert [one["after"] for one in seen] == [0, 0]
    assert seen[0]["short"] == "DataError: process 1 failed at this batch, so all processes end"
    assert seen[1]["short"] == "DataError: a batch has shape (1,), and this process must supply 2 of 4 rows"


def test_pad_gives_all_the_same_steps_and_shapes(run: Callable[[str], list[Any]]) -> None:
    seen = run("pad")
    rows = [*by_four(5), [21]]
    # Weights are 0 where something is padded: neither it nor the number of rows counts.
    assert [one["all"] for one in seen] == [[[sum(four), 2 * sum(four), len(four)] for four in rows]] * 2
    assert [one["traced"] for one in seen] == [1, 1]
    empty = [[[-7, -7]]] * 2
    first, second = ([[[x, x]] for x in range(1 + host, 20, 2)] for host in range(2))
    # Two shards of a row for each of five steps.
    for one, expected in zip(seen, [first[:2] + empty * 4, second[:8] + empty], strict=True):
        assert one["uneven"] == expected
        for done in range(6):
            assert one[f"from {done}"] == expected[2 * done :], done
        assert one["none"] == "DataError: this process has no batch, and a batch of padding needs an example"


def test_what_would_never_meet_is_refused_before_the_first_step(run: Callable[[str], list[Any]]) -> None:
    seen = run("settings")
    assert seen[0] == seen[1]
    assert seen[0] == {
        "max_steps": "ConfigError: max_steps is 5 on process 0 and 6 on process 1",
        "end": "ConfigError: end is drop on process 0 and pad on process 1",
        "buffer": "ConfigError: buffer is 0 on process 0 and 1 on process 1",
        "another buffer is no matter": 3,
        "step": "ConfigError: the first step is 0 on process 0 and 1 on process 1",
    }


def test_the_arrays_of_a_process_lie_where_its_batch_did(run: Callable[[str], list[Any]]) -> None:
    assert run("memory") == [[0, 512]] * 2


def test_columns_go_where_each_is_sent(run: Callable[[str], list[Any]]) -> None:
    shapes = [[4], [], [3], [4, 3]]
    assert run("mixed") == [[shapes, [[host] * 4, True, 7]] for host in range(2)]


@pytest.mark.parametrize(
    ("length", "batch", "drop", "pad"), [(0, 4, 0, 0), (3, 4, 0, 1), (4, 4, 1, 1), (5, 4, 1, 2), (9, 2, 4, 5)]
)
def test_steps_are_those_that_all_shards_have(length: int, batch: int, drop: int, pad: int) -> None:
    assert (gm.jax.steps_for(length, batch), gm.jax.steps_for(length, batch, "pad")) == (drop, pad)
    for count in (n for n in (1, 2, 4) if batch % n == 0):
        shards = [gm.MapDataset.range(length).shard(index, count) for index in range(count)]
        assert min(len(shard) // (batch // count) for shard in shards) == drop
        assert max(-(-len(shard) // (batch // count)) for shard in shards) == pad


def test_no_steps_of_nothing() -> None:
    for length, batch in [(-1, 4), (3, 0)]:
        with pytest.raises(gm.ConfigError, match=f"length is {length} and global_batch is {batch}; at least 0 and 1 are required"):
            gm.jax.steps_for(length, batch)


def test_parts_of_one_pipeline_are_its_global_batches(run: Callable[[str], list[Any]]) -> None:
    first, second = run("parts")
    assert (first["part"], second["part"]) == ("gristmill.Part(0, 2)", "gristmill.Part(1, 2)")
    # Each process has a device of both halves of the batch, and so all of it.
    assert first["peers"] == second["peers"] == "gristmill.Part(0, 1)"
    assert (first["crossed"], second["crossed"]) == ([0, 1, 4, 5], [2, 3, 6, 7])
    assert first["state"] == second["state"] and first["sums"] == second["sums"]

    ds = gm.MapDataset.range(1, 41).shuffle(7).filter(lambda x: x % 5 != 0)
    whole = ds.to_iter_dataset().window_shuffle(6, 1).batch(4)
    assert first["sums"] == sums(*(batch.tolist() for batch in whole))


def test_rows_lie_where_their_numbers_say_in_whatever_order_a_part_lists_them(run: Callable[[str], list[Any]]) -> None:
    ds = gm.MapDataset.range(48).shuffle(7).filter(lambda x: x % 5 != 0).to_iter_dataset().batch(8, drop_remainder=True)
    whole = [batch.tolist() for batch in ds]
    assert len(whole) == 4
    seen = run("listed")
    for one, rows in zip(seen, ([0, 1, 4, 5], [2, 3, 6, 7]), strict=True):
        assert one["rows"] == rows
        shards = [[[start, batch[start : start + 2]] for start in rows[::2]] for batch in whole]
        for name in ("crossed", "reversed", "all"):
            assert one[name] == [shards, [sum(batch) for batch in whole]], name
        # Each process has devices of both halves.
        halves = [[[start, batch[start : start + 4]] for start in (0, 4)] for batch in whole]
        assert one["peers"] == [halves, [sum(batch) for batch in whole]]
    assert [one["uneven"] for one in seen] == [[[0, 1, 2, 3], [0, 1, 2, 3]], [[4, 5], [4, 5]]]
    asked = "and its devices hold 0 to 7"
    assert seen[0]["everywhere"] == f"ConfigError: the part of process 0 has rows 0 to 1, 4 to 5, {asked}"
    assert seen[1]["of others"] == "ConfigError: the part of process 1 has rows 4 to 7, and its devices hold 2 to 3, 6 to 7"
    assert seen[0]["of others"] == "DataError: process 1 failed at this batch, so all processes end"
    assert all("are not contiguous: its devices hold" in one["of nobody"] for one in seen)


def test_four_processes_go_on_as_two_then_three_then_one(resumed: tuple[Path, dict[str, list[Seen]]]) -> None:
    seen = steps_of(resumed[1]["pipeline"], "pipeline")
    rows = [batch["ids"].sum(axis=1) for batch in parts_pipeline.pipeline()]
    assert seen == [[int(row.sum()), int((row * np.arange(1, parts_pipeline.BATCH + 1)).sum())] for row in rows]
    assert len(seen) > 14


def test_what_the_page_shows_goes_on_as_any_number_of_processes(
    resumed: tuple[Path, dict[str, list[Seen]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """JSON Lines, tokenised, a mix of three, filtered, packed, in batches: four processes, then two, three and one."""
    folder, came = resumed
    seen = steps_of(came["shown"], "shown")
    monkeypatch.chdir(folder)
    rows = [batch["tokens"].astype(np.int32).sum(axis=1, dtype=np.int32) for batch in parts_pipeline.shown()]
    weights = np.arange(1, 385, dtype=np.int32)
    assert seen == [[int(row.sum(dtype=np.int32)), int((row * weights).sum(dtype=np.int32))] for row in rows]
    assert len(seen) > 10


def test_processes_that_read_something_else_stop_each_other() -> None:
    came = scenes("jax_guard.py", 3, 1, ["same", "seed", "random"])
    whole = 4500 // 6
    assert seen_of(came, "same") == [[["", whole]] * 3] * 3
    seed = "hosts disagree: stage 1 is `shuffle(seed=4)` on hosts 0 and 1 and `shuffle(seed=5)` on host 2"
    assert seen_of(came, "seed") == [[f"ConfigError: {seed}", 0]] * 3
    first, *others = seen_of(came, "random")
    assert others == [first, first]
    error, batches = first
    assert error.startswith("DataError: hosts disagree: batch ") and "differs between hosts 0 and 1 and host 2" in error
    assert batches == 256 and 0 <= int(error.split()[4]) < 128


def test_a_scene_that_fails_leaves_the_other_scenes_alone(tmp_path: Path) -> None:
    (tmp_path / "pipeline.json").write_text("no state")
    parts_pipeline.write_corpora(tmp_path)
    came = scenes("jax_parts.py", 1, 1, ["pipeline", "shown"], tmp_path)
    assert "no state" in came["pipeline"] or "Error" in came["pipeline"]
    assert len(seen_of(came, "shown")[0]) > 10

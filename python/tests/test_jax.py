"""Batches on JAX's devices: those of the plain loop, in its order, wherever they are sharded and resumed."""

import gc
import json
import os
import socket
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
import pytest
from gristmill import _tree
from jax_batches import batches, shown

jax = pytest.importorskip("jax", reason="JAX is not installed: pip install jax")

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("buffer", [0, 1, 2, 5, 100])
@pytest.mark.parametrize("threads", [0, 2])
def test_the_batches_are_those_of_the_plain_loop(buffer: int, threads: int) -> None:
    plain = [shown(batch) for batch in batches()]
    with gm.jax.device_put(batches().loader(threads=threads), buffer=buffer) as sent:
        arrays = list(sent)
    assert [shown(batch) for batch in arrays] == plain
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree_util.tree_leaves(arrays))
    assert isinstance(arrays[0]["in"]["pair"], tuple)


@pytest.mark.parametrize("buffer", [0, 2, 4])
def test_so_many_batches_are_sent_ahead(buffer: int) -> None:
    asked: list[int] = []
    ds = gm.MapDataset.range(10).map(lambda x: asked.append(x) or {"x": np.int32(x)})
    sent = gm.jax.device_put(ds, buffer=buffer)
    assert asked == []
    for seen in range(1, 11):
        assert int(next(sent)["x"]) == seen - 1
        assert asked == list(range(min(10, seen + buffer)))


def test_a_state_is_where_the_consumer_is() -> None:
    plain = [shown(batch) for batch in batches()]
    through = gm.jax.device_put(batches(), buffer=3)
    for done in range(len(plain) + 1):
        state = json.dumps(through.get_state())
        resumed = gm.jax.device_put(batches().loader(threads=2), buffer=1)
        resumed.set_state(json.loads(state))
        assert json.dumps(resumed.get_state()) == state
        assert [shown(batch) for batch in resumed] == plain[done:], done
        without = batches().loader()
        without.set_state(state)
        assert [shown(batch) for batch in without] == plain[done:]
        assert [shown(batch) for batch in [next(through, None)] if batch] == plain[done : done + 1]


def test_a_state_of_another_pipeline_changes_nothing() -> None:
    sent = gm.jax.device_put(batches())
    plain = [shown(batch) for batch in batches()]
    assert shown(next(sent)) == plain[0]
    with pytest.raises(gm.StateError):
        sent.set_state(batches(9).loader().get_state())
    assert [shown(batch) for batch in sent] == plain[1:]


def failing_at(bad: int, error: BaseException) -> gm.MapDataset:
    def function(x: int) -> dict[str, Any]:
        if x == bad and not raised:
            raised.append(x)
            raise error
        return {"x": np.int32(x)}

    raised: list[int] = []
    return gm.MapDataset.range(8).map(function)


def test_an_error_is_raised_at_its_batch() -> None:
    sent = gm.jax.device_put(failing_at(5, KeyError("five")), buffer=4)
    assert [int(next(sent)["x"]) for _ in range(5)] == [0, 1, 2, 3, 4]
    state = sent.get_state()
    with pytest.raises(KeyError, match="five") as raised:
        next(sent)
    assert any("5 elements were delivered" in note for note in raised.value.__notes__)
    assert list(sent) == [] and sent.get_state() == state
    sent.set_state(state)
    assert [int(batch["x"]) for batch in sent] == [5, 6, 7]


def test_an_interrupt_loses_no_batch() -> None:
    sent = gm.jax.device_put(failing_at(3, KeyboardInterrupt()))
    seen = [int(next(sent)["x"])]
    with pytest.raises(KeyboardInterrupt):
        next(sent)
    assert seen + [int(batch["x"]) for batch in sent] == list(range(8))


@pytest.mark.parametrize(
    ("leaf", "says"),
    [
        ("text", r"batch\['in'\]\['leaf'\] is str, and devices hold only numbers"),
        (["a", "b"], r"batch\['in'\]\['leaf'\]\[0\] is str"),
        (np.array(["a"]), r"is an array of <U1"),
        (np.array([None]), r"is an array of object"),
        (np.array(["2020"], "M8[D]"), r"is an array of datetime64"),
        (b"bytes", r"is bytes"),
        (np.array([1 << 40]), r"is int64 with values 1099511627776 to 1099511627776, and JAX converts it to int32"),
    ],
)
def test_what_no_device_holds_is_refused_by_name(leaf: Any, says: str) -> None:
    ds = gm.MapDataset.source([{"x": np.ones(2), "in": {"leaf": 1}}, {"x": np.ones(2), "in": {"leaf": leaf}}])
    sent = gm.jax.device_put(ds)
    next(sent)
    with pytest.raises(gm.DataError, match=says) as raised:
        next(sent)
    assert raised.value.help


def test_text_of_native_sources_is_dropped_before(jsonl: Path) -> None:
    ds = gm.MapDataset.jsonl(jsonl, index_cache="off", columns=["n", "text"]).to_iter_dataset()
    with pytest.raises(gm.DataError, match=r"batch\['text'\]\[0\] is str") as raised:
        next(gm.jax.device_put(ds.batch(4)))
    assert "drop_columns" in str(raised.value.help)
    first = next(gm.jax.device_put(ds.drop_columns("text").batch(4)))
    assert first["n"].tolist() == [0, 1, 2, 3]


def test_arrays_of_every_dtype_arrive() -> None:
    names = "bool uint8 int8 uint16 int16 float16 uint32 int32 float32 complex64 bfloat16".split()
    element = {name: np.arange(4).astype(jax.numpy.dtype(name)) for name in names}
    sent = next(gm.jax.device_put(gm.MapDataset.source([element])))
    assert {name: str(array.dtype) for name, array in sent.items()} == {name: name for name in names}
    assert all(np.array_equal(sent[name], element[name]) for name in names)


def test_a_closed_iterator() -> None:
    source = batches().loader(threads=2)
    with gm.jax.device_put(source) as sent:
        batch = next(sent)
        state = sent.get_state()
        assert sent.report().as_dict()
    for closed in (sent, source):
        with pytest.raises(ValueError, match="closed"):
            next(closed)
    sent.close()
    assert sent.get_state() == state
    assert shown(batch) == shown(next(iter(batches())))


def test_a_negative_buffer_is_refused() -> None:
    with pytest.raises(gm.ConfigError, match="buffer is -1, and must be 0 or more"):
        gm.jax.device_put(batches(), buffer=-1)


def test_a_depth_is_a_buffer() -> None:
    assert len(list(gm.jax.device_put(batches(), None, 1))) == len(list(gm.jax.device_put(batches(), depth=1))) == 6
    with pytest.raises(gm.ConfigError, match="buffer=1 and depth=1 are both given, and are one option"):
        gm.jax.device_put(batches(), buffer=1, depth=1)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"end": "stop"}, "end is 'stop', and must be one of drop, pad, agree"),
        ({"max_steps": 0}, "max_steps is 0, and must be 1 or more"),
        ({"pad_values": {"x": 1}}, "`pad_values` is given without padding: end is None"),
        ({"end": "pad"}, "requires `global_batch`"),
    ],
)
def test_ends_that_make_no_sense_are_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(gm.ConfigError, match=says):
        gm.jax.device_put(batches(), **settings)


def test_max_steps_counts_those_before_a_resume() -> None:
    plain = [shown(batch) for batch in batches()]
    for end in (None, "drop", "agree"):
        sent = gm.jax.device_put(batches(), end=end, max_steps=4)
        seen = [shown(next(sent)), shown(next(sent))]
        resumed = gm.jax.device_put(batches(), end=end, max_steps=4)
        resumed.set_state(sent.get_state())
        assert seen + [shown(batch) for batch in resumed] == plain[:4]
        assert len(list(gm.jax.device_put(batches(), end=end, max_steps=40))) == len(plain)


def test_padding_fills_the_last_batch_and_those_behind_it() -> None:
    plain = [np.asarray(batch["x"]) for batch in batches()]
    values = {"x": -1, "in": {"pair": 7}}
    for steps in (None, 4, 6, 8):
        sent = list(gm.jax.device_put(batches(), end="pad", global_batch=4, max_steps=steps, pad_values=values))
        assert len(sent) == (steps or 6)
        assert {(batch["x"].shape, batch["weights"].dtype.name) for batch in sent} == {((4, 3), "float32")}
        for batch, whole in zip(sent, plain, strict=False):
            assert np.array_equal(batch["x"][batch["weights"] > 0], whole)
        rows = sum(int(batch["weights"].sum()) for batch in sent)
        assert rows == min(23, 4 * len(sent))
        for batch in sent:
            padding = np.asarray(batch["weights"]) == 0
            assert np.all(np.asarray(batch["x"])[padding] == -1)
            assert all(np.all(np.asarray(part)[padding] == 7) for part in batch["in"]["pair"])


def test_a_state_among_padding_is_for_padding() -> None:
    sent = gm.jax.device_put(batches(), end="pad", global_batch=4, max_steps=8)
    states = [sent.get_state()] + [sent.get_state() for _ in sent]
    assert [state.get("padding_batches", 0) for state in states] == [0] * 7 + [1, 2]
    for done, state in enumerate(states):
        sent.set_state(json.dumps(state))
        assert len(list(sent)) == 8 - done
    with pytest.raises(gm.StateError, match="after 2 batches of padding, and this pass does not pad"):
        gm.jax.device_put(batches()).set_state(states[-1])


@pytest.mark.parametrize(
    ("ds", "settings", "says"),
    [
        (batches(), {"global_batch": 3}, "a batch has 4 rows, and each process supplies 3 rows of a global batch"),
        (batches(), {"weights": "x"}, "the batch already has a column 'x'"),
        (batches(), {"pad_values": {"y": 0}}, r"`pad_values` has unknown columns \['y'\]; a batch has \['in', 'x'\]"),
        (batches(), {"pad_values": {"x": "a"}, "global_batch": 5}, r"batch\['x'\] is float32 and cannot be padded with 'a'"),
        (gm.MapDataset.range(8).to_iter_dataset().batch(4), {}, "a batch is ndarray, and padding adds a column of weights"),
        (
            gm.MapDataset.source([{"x": np.zeros(2), "y": np.zeros(3)}]).to_iter_dataset(),
            {},
            r"the columns of a batch have \[2, 3\] rows",
        ),
    ],
)
def test_what_cannot_be_padded_is_an_error_at_its_batch(ds: Any, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(gm.Error, match=says):
        next(gm.jax.device_put(ds, **{"end": "pad", "global_batch": 4, **settings}))


def test_arrays_outlive_the_pass_and_its_memory(npy: Path) -> None:
    ds = gm.MapDataset.npy(npy).to_iter_dataset().batch(8)
    expected = [batch["data"].copy() for batch in ds]
    with gm.jax.device_put(ds) as sent:
        arrays = list(sent)
    del sent, ds
    assert all(np.array_equal(array["data"], rows) for array, rows in zip(arrays, expected, strict=True))


def test_a_batch_may_be_donated() -> None:
    ds = gm.MapDataset.range(64).map(lambda x: np.full(1000, x, np.int32)).to_iter_dataset().batch(4)
    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    # The second epoch has the very memory of the first, which no step may have written to.
    with gm.jax.device_put(ds.cache().repeat(2)) as sent:
        sums = [int(step(batch).sum()) for batch in sent]
    assert sums == 2 * [1000 * (16 * n + 10) for n in range(16)]


def test_the_memory_of_a_batch_is_held_until_it_has_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    arrived = False
    monkeypatch.setattr(gm.jax._iterator.Sent, "has_arrived", lambda _: arrived)
    made: list[weakref.ref[Any]] = []

    def function(x: int) -> dict[str, Any]:
        # JAX copies it, into 32 bits, and so has no use for it afterwards.
        array = np.full(100, x, np.int64)
        made.append(weakref.ref(array))
        return {"x": array}

    sent = gm.jax.device_put(gm.MapDataset.range(9).map(function), buffer=1)

    def alive() -> list[bool]:
        gc.collect()
        return [array() is not None for array in made]

    jax.block_until_ready([next(sent) for _ in range(3)])
    assert alive() == [True] * 4
    arrived = True
    jax.block_until_ready(next(sent))
    assert alive() == [False] * 4 + [True]
    sent.close()
    assert alive() == [False] * 5


def counted() -> tuple[Callable[[Any], Any], list[Any]]:
    """A jitted step, and the shapes for which it was traced."""
    traced: list[Any] = []

    @jax.jit
    def step(batch: Any) -> Any:
        traced.append(batch["x"].shape)
        return batch["x"].sum()

    return step, traced


def test_a_step_compiles_once_for_an_epoch_with_a_ragged_end() -> None:
    ds = gm.MapDataset.range(23).map(lambda x: {"x": np.full(3, x, np.float32)}).repeat(2).to_iter_dataset()
    step, traced = counted()
    sums = [float(step(batch)) for batch in gm.jax.device_put(ds.batch(4, drop_remainder=True))]
    assert traced == [(4, 3)] and len(sums) == 11
    step, traced = counted()
    padded = ds.map(lambda e: {"x": e["x"][:, None]}).length_buckets(
        features="x", boundaries=[3], batch=4, remainder="pad"
    )
    total = sum(float(step(batch)) for batch in gm.jax.device_put(padded))
    assert traced == [(4, 3, 1)] and total == 2 * 3 * sum(range(23))
    step, traced = counted()
    for batch in gm.jax.device_put(ds.batch(4)):
        step(batch)
    assert traced == [(4, 3), (2, 3)]


OF_TWO = """
import sys
import jax
jax.distributed.initialize(sys.argv[1], num_processes=2, process_id=int(sys.argv[2]), initialization_timeout=60)
import gristmill as gm
import numpy as np

# The devices of process 1 come first: shards are not numbered as processes are.
devices = sorted(jax.devices(), key=lambda device: (-device.process_index, device.id))
rows = jax.sharding.NamedSharding(jax.sharding.Mesh(np.array(devices), ("data",)), jax.sharding.PartitionSpec("data"))
shard = gm.jax.shard_for(rows, 8)
assert shard == (1 - jax.process_index(), 2), shard
ds = gm.MapDataset.range(20).map(lambda x: {"x": np.full(2, x, np.float32)}).shard(*shard).to_iter_dataset().batch(4)
try:
    gm.jax.device_put(ds, rows)
except gm.ConfigError as refused:
    assert "global_batch" in str(refused)
whole = []
with gm.jax.device_put(ds, {"x": rows}, global_batch=8) as sent:
    try:
        for batch in sent:
            assert batch["x"].shape == (8, 2) and batch["x"].sharding == rows
            whole.append(sorted((s.index[0].start, s.data[:, 0].tolist()) for s in batch["x"].addressable_shards))
    except gm.DataError as refused:
        whole.append(str(refused))
print(whole)
"""


def test_two_processes_make_one_batch() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    environment = dict(os.environ, XLA_FLAGS="--xla_force_host_platform_device_count=2", JAX_PLATFORMS="cpu")
    running = [
        subprocess.Popen(
            [sys.executable, "-c", OF_TWO, address, str(process)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for process in range(2)
    ]
    told = []
    try:
        for process in running:
            out, err = process.communicate(timeout=120)
            assert process.returncode == 0, err
            told.append(eval(out.splitlines()[-1]))
    finally:
        for process in running:
            process.kill()
    short = "a batch has shape (2, 2), and this process must supply 4 of 8 rows"
    assert told[1] == [[(0, [0, 2]), (2, [4, 6])], [(0, [8, 10]), (2, [12, 14])], short]
    assert told[0] == [[(4, [1, 3]), (6, [5, 7])], [(4, [9, 11]), (6, [13, 15])], short]


def test_the_example_resumes_where_it_stopped(tmp_path: Path) -> None:
    def train(checkpoint: str, steps: int) -> Iterator[str]:
        program = REPOSITORY / "python" / "examples" / "jax_train.py"
        command = [sys.executable, str(program), str(tmp_path / checkpoint), str(steps)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return iter(done.stdout.splitlines())

    whole = list(train("whole", 40))
    assert len(whole) == 40 and float(whole[-1].split()[-1]) < float(whole[0].split()[-1])
    assert [*train("parts", 13), *train("parts", 40)] == whole


def test_the_example_of_the_page_runs_as_it_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (REPOSITORY / "python" / "docs" / "examples" / "jax.md").read_text()
    program = page.split("```python\n")[1].split("```")[0]
    rows = np.arange(4000, dtype=np.float32).reshape(1000, 4)
    np.save(tmp_path / "rows.npy", rows)
    monkeypatch.chdir(tmp_path)
    seen: list[Any] = []
    names: dict[str, Any] = {"step": lambda params, batch: seen.append(batch["data"]) or params, "params": None}
    exec(program, names)
    assert [array.shape for array in seen] == [(256, 4)] * 3
    assert len(np.unique(np.concatenate(seen), axis=0)) == 768
    assert all(len(array.devices()) == jax.device_count() for array in seen)
    assert json.dumps(names["state"])


@jax.tree_util.register_pytree_node_class
class Registered:
    """A class that only JAX knows how to take apart."""

    def __init__(self, x: Any, name: str) -> None:
        self.x, self.name = x, name

    def tree_flatten(self) -> tuple[tuple[Any], str]:
        return (self.x,), self.name

    @classmethod
    def tree_unflatten(cls, name: str, parts: Any) -> "Registered":
        return cls(*parts, name)


def test_a_class_that_jax_was_told_of_is_a_tree() -> None:
    ds = gm.MapDataset.range(4).map(lambda x: {"a": Registered(np.full(2, x), "one")}).batch(4)
    (batch,) = ds
    assert type(batch["a"]) is Registered and batch["a"].name == "one"
    assert batch["a"].x.tolist() == [[0, 0], [1, 1], [2, 2], [3, 3]]


def test_such_a_class_is_a_leaf_for_those_who_know_nothing_of_jax() -> None:
    one = Registered(np.arange(2), "one")
    assert _tree.walk({"a": [one]}, lambda _, leaf: leaf, of_jax=False)["a"][0] is one
    assert _tree.walk(one, lambda path, _: path, "one").x == "one/0"


def test_jax_is_imported_when_it_is_used() -> None:
    program = "import sys, gristmill as gm; print('jax' in sys.modules); gm.jax.device_put; print('jax' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "False\nTrue\n"
    with pytest.raises(AttributeError, match="'gristmill' has no attribute 'torhc'"):
        gm.torhc  # noqa: B018


def test_without_jax_it_is_said_what_to_install() -> None:
    program = "import sys; sys.modules['jax'] = None; import gristmill as gm; gm.jax"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.endswith("ModuleNotFoundError: gristmill.jax needs JAX: pip install jax\n")

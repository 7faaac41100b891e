"""Several hosts: parts of global batches, which any number of hosts puts together to the same."""

import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import gristmill as gm
import numpy as np
import pytest

BATCH = 12


class Pair(NamedTuple):
    x: Any
    y: Any


def native() -> gm.IterDataset:
    return gm.MapDataset.range(100).shuffle(3).to_iter_dataset().batch(BATCH, drop_remainder=True)


def elements() -> gm.IterDataset:
    ds = gm.MapDataset.range(100).shuffle(3).map(lambda x: {"x": np.int32(x), "t": np.full(3, x)})
    return ds.filter(lambda element: element["x"] % 7 != 0).to_iter_dataset().batch(BATCH, drop_remainder=True)


def tuples() -> gm.IterDataset:
    ds = gm.MapDataset.range(60).map(lambda x: Pair(np.float32(x), {"z": [np.int8(x % 100)], "name": str(x)}))
    return ds.to_iter_dataset().batch(BATCH)


def made() -> gm.IterDataset:
    """Batches that a function of the user makes."""
    return gm.MapDataset.range(60).to_iter_dataset().batch(BATCH, batch_fn=lambda xs: {"x": np.array(xs), "s": [str(x) for x in xs]})


def workers() -> gm.IterDataset:
    return elements().mp_prefetch(gm.MpOptions(num_workers=2))


def leaves(batch: Any) -> list[Any]:
    if isinstance(batch, dict):
        return [leaf for part in batch.values() for leaf in leaves(part)]
    if isinstance(batch, tuple) or (isinstance(batch, list) and not isinstance(batch[0], (str, int))):
        return [leaf for part in batch for leaf in leaves(part)]
    return [np.asarray(batch).tolist()]


def rows(batch: Any) -> list[tuple[Any, ...]]:
    return list(zip(*((str(row) for row in leaf) for leaf in leaves(batch)), strict=True))


@pytest.mark.parametrize("make", [native, elements, tuples, made, workers])
@pytest.mark.parametrize("threads", [0, 2])
def test_parts_are_the_rows_of_the_whole(make: Any, threads: int) -> None:
    whole = [rows(batch) for batch in make().loader(workers=False)]
    assert len(whole) >= 5
    for count in (1, 2, 3, 12):
        parts = [[rows(batch) for batch in make().loader(threads=threads, part=(i, count))] for i in range(count)]
        assert [[row for part in batch for row in part] for batch in zip(*parts, strict=True)] == whole


def test_a_state_is_that_of_all_and_goes_on_in_any() -> None:
    whole = [rows(batch) for batch in elements()]
    hosts = [elements().loader(part=f"{i}/4") for i in range(4)]
    first = [[rows(next(host)) for host in hosts] for _ in range(3)]
    states = [host.get_state() for host in hosts]
    assert all(state == states[0] for state in states)
    later = [elements().loader(threads=1, part=gm.Part(i, 2)) for i in range(2)]
    for host in later:
        host.set_state(states[3])
    rest = list(zip(*([rows(batch) for batch in host] for host in later), strict=True))
    assert [[row for part in batch for row in part] for batch in [*first, *rest]] == whole


def test_hosts_come_and_go_and_give_steps_back() -> None:
    whole = [rows(batch) for batch in native()]
    for threads in (0, 2):
        host = native().loader(threads=threads, part=(0, 2))
        assert (host.rows, rows(next(host)), host.rows) == (None, whole[0][:6], [0, 1, 2, 3, 4, 5])
        host.repart((2, 3))
        assert rows(next(host)) == whole[1][8:]
        host.back()
        host.repart(gm.Part.listed([11, 0], BATCH))
        assert (rows(next(host)), host.rows) == ([whole[1][11], whole[1][0]], [11, 0])
        next(host)
        host.back(2)
        assert host.get_state()["delivered"] == 1
        with pytest.raises(gm.StateError, match="cannot go back"):
            host.back(1)
        assert host.get_state()["delivered"] == 1
        # A place to go on from keeps the part.
        host.set_state(host.get_state())
        assert rows(next(host)) == [whole[1][11], whole[1][0]]


def test_what_is_no_part_is_refused() -> None:
    with pytest.raises(gm.ConfigError, match="there is no part 4/4"):
        native().loader(part=(4, 4))
    with pytest.raises(gm.ConfigError, match="`x` is no part"):
        native().loader(part="x")
    with pytest.raises(TypeError, match="a part is a gristmill.Part"):
        native().loader(part=3)  # type: ignore[arg-type]
    with pytest.raises(gm.ConfigError, match="a global batch of 12 rows does not divide among 5 parts"):
        next(native().loader(part=(0, 5)))
    with pytest.raises(gm.DataError, match="has no rows"):
        next(gm.MapDataset.range(3).to_iter_dataset().loader(part=(0, 1)))
    with pytest.raises(gm.DataError, match="has no rows 'a'"):
        next(gm.MapDataset.range(3).map(lambda x: {"a": np.int32(x)}).to_iter_dataset().loader(part=(0, 1)))


def test_it_is_told_what_each_host_evaluates() -> None:
    def told(ds: gm.IterDataset) -> str:
        return " ".join(str(ds.explain()).split())

    assert "hosts each of several evaluates only its own rows: indices determine them" in told(native())
    assert "all elements and takes its rows: filter (stage 3) drops elements" in told(elements())
    assert "all elements and takes its rows: a function makes its batches" in told(made())
    host = native().loader(part=(1, 3))
    next(host)
    assert "part 1/3 · this host evaluates only its own rows" in str(host.report())
    assert "part" not in native().loader().report().as_dict()


@pytest.mark.parametrize("how", [{"threads": 0}, {"threads": 2}, {"workers": True}])
def test_of_the_elements_of_other_hosts_none_is_evaluated(tmp_path: Any, how: Any) -> None:
    def noted(x: int) -> Any:
        (tmp_path / str(x)).touch()
        return {"x": np.int32(x)}

    ds = gm.MapDataset.range(48).map(noted).to_iter_dataset().batch(BATCH)
    if how.get("workers"):
        ds = ds.mp_prefetch(gm.MpOptions(num_workers=1))
    seen = [batch["x"].tolist() for batch in ds.loader(part=(1, 4), **how)]
    assert seen == [[3, 4, 5], [15, 16, 17], [27, 28, 29], [39, 40, 41]]
    assert sorted(int(path.name) for path in tmp_path.iterdir()) == sorted(x for batch in seen for x in batch)


def test_a_part_is_a_value() -> None:
    for part in (gm.Part(3, 64), gm.Part.listed([4, 1], 8)):
        assert pickle.loads(pickle.dumps(part)) == part
        assert eval(repr(part), {"gristmill": gm}) == part
        assert len({part, pickle.loads(pickle.dumps(part))}) == 1
    assert gm.Part(3, 64).rows(128) == [6, 7] and gm.Part.listed([4, 1], 8).rows(8) == [4, 1]
    with pytest.raises(gm.ConfigError, match="listed for 8"):
        gm.Part.listed([4, 1], 8).rows(9)


def test_the_rest_goes_to_those_who_have_it() -> None:
    def padded() -> Iterator[Any]:
        return gm.MapDataset.range(15).map(lambda x: {"x": np.int32(x)}).to_iter_dataset().batch(12, remainder="pad").loader(part=(1, 4))

    last = list(padded())[-1]
    assert last["x"].tolist() == [0, 0, 0] and last["batch_mask"].tolist() == [False] * 3


LENGTHS = [900, 10, 20, 30, 1000, 800, 40, 50, 60, 700, 70, 80]


def uneven() -> gm.IterDataset:
    ds = gm.MapDataset.range(36).map(lambda x: {"x": np.int32(x), "length": np.int32(LENGTHS[x % BATCH])})
    return ds.to_iter_dataset().batch(BATCH)


def uneven_tree() -> gm.IterDataset:
    """The same in batches that a function of the user makes."""

    def batch(elements: list[dict[str, Any]]) -> Any:
        return Pair(np.array([e["x"] for e in elements]), {"length": np.array([e["length"] for e in elements])})

    ds = gm.MapDataset.range(36).map(lambda x: {"x": np.int32(x), "length": np.int32(LENGTHS[x % BATCH])})
    return ds.to_iter_dataset().batch(BATCH, batch_fn=batch)


@pytest.mark.parametrize(("make", "column"), [(uneven, "length"), (uneven_tree, "y/length")])
@pytest.mark.parametrize("threads", [0, 2])
def test_rows_are_dealt_by_what_they_cost(make: Any, column: str, threads: int) -> None:
    whole = [rows(batch) for batch in make()]
    cost = gm.Cost.attention(64, lengths=column)
    balanced = [make().loader(threads=threads, part=(i, 2), deal=gm.Deal.balanced(cost, 2)) for i in range(2)]
    shadow = make().loader(threads=threads, part=(1, 2), deal=gm.Deal.shadow(cost))
    start = balanced[0].get_state()
    for batch in whole:
        dealt = [(rows(next(host)), host.rows or []) for host in balanced]
        assert all([batch[number] for number in numbers] == got for got, numbers in dealt)
        assert sorted(number for _, numbers in dealt for number in numbers) == list(range(BATCH))
        assert sorted(LENGTHS[number] for number in dealt[0][1][:3]) == [70, 700, 1000]
        assert (rows(next(shadow)), shadow.rows) == (batch[6:], list(range(6, 12)))
    told = " ".join(str(shadow.report()).split())
    assert "a balanced deal would save" in told and f"costs are read from `{column}`" in told
    assert "a balanced deal saves" in " ".join(str(balanced[0].report()).split())
    # Another part keeps the deal, and so does a place to go on from.
    balanced[0].set_state(start)
    balanced[0].repart((1, 2))
    assert [rows(batch) for batch in balanced[0]] == [[batch[number] for number in dealt[1][1]] for batch in whole]


def test_a_deal_that_cannot_be_is_refused() -> None:
    cost = gm.Cost(1, 1)
    with pytest.raises(gm.ConfigError, match="rows cannot be dealt among ranks without a part"):
        uneven().loader(deal=gm.Deal.shadow(cost))
    with pytest.raises(gm.ConfigError, match="lists its rows"):
        uneven().loader(part=gm.Part.listed([0], BATCH), deal=gm.Deal.balanced(cost))
    with pytest.raises(gm.ConfigError, match="no column of a batch ends in segment_ids or segmentation.*there are x, length"):
        next(uneven().loader(part=(0, 2), deal=gm.Deal.balanced(cost)))
    with pytest.raises(gm.ConfigError, match="not both"):
        gm.Cost(1, segments="a", lengths="b")
    with pytest.raises(TypeError, match='a deal is "even"'):
        uneven().loader(part=(0, 2), deal="balanced")  # type: ignore[arg-type]


def test_a_deal_is_a_value() -> None:
    costs = [gm.Cost(3), gm.Cost.attention(8, window=5, causal=False, segments="s"), gm.Cost.column("patches")]
    for value in [*costs, *(gm.Deal.balanced(cost) for cost in costs), gm.Deal.shadow(costs[0], 4)]:
        assert pickle.loads(pickle.dumps(value)) == value
        assert eval(repr(value), {"gristmill": gm}) == value
        assert len({value, pickle.loads(pickle.dumps(value))}) == 1
    assert repr(costs[1]) == "gristmill.Cost(192, 4, 5, 's', None)"
    assert gm.Deal.balanced(costs[0]) != gm.Deal.shadow(costs[0])


class Board:
    """What hosts that are threads of this process have written."""

    def __init__(self, host: int, said: dict[tuple[int, int], str]) -> None:
        self.host, self.said = host, said
        self.begun: list[gm.Part] = []

    def begin(self, part: gm.Part) -> None:
        self.begun.append(part)

    def post(self, round: int, statement: str) -> None:
        self.said[round + 1000 * len(self.begun), self.host] = statement

    def read(self, round: int) -> list[str | None]:
        return [self.said.get((round + 1000 * len(self.begun), host)) for host in range(2)]


def side_by_side(host: Any) -> list[Any]:
    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(host, range(2)))


def guarded(odd: int | None, how: Any, guard: Any, make: Any) -> list[Any]:
    """What two hosts were told, of which the second has another element from some on."""

    def host(index: int) -> Any:
        def own(x: int) -> int:
            return x + 3 if index == 1 and odd is not None and x >= odd else x

        loader = make(own).loader(part=(index, 2), guard=guard(index), guard_timeout=60, **how)
        seen = 0
        try:
            for _ in loader:
                seen += 1
        except gm.Error as error:
            return str(error), seen
        return "", seen

    return side_by_side(host)


def of_numbers(own: Any) -> gm.IterDataset:
    return gm.MapDataset.range(3600).map(own).filter(lambda x: x % 3 != 1).map(lambda x: {"x": np.int32(x)}).to_iter_dataset().batch(BATCH)


def of_trees(own: Any) -> gm.IterDataset:
    def batch(elements: list[int]) -> Any:
        return Pair(np.array(elements), {"text": [str(x) for x in elements]})

    return gm.MapDataset.range(3600).map(own).to_iter_dataset().batch(BATCH, batch_fn=batch)


@pytest.mark.parametrize("make", [of_numbers, of_trees])
@pytest.mark.parametrize("how", [{"threads": 0}, {"threads": 2}])
@pytest.mark.parametrize("folder", [False, True])
def test_hosts_that_read_something_else_stop_each_other(tmp_path: Any, make: Any, how: Any, folder: bool) -> None:
    def guard() -> Any:
        said: dict[tuple[int, int], str] = {}
        return lambda index: tmp_path / "guard" if folder else Board(index, said)

    batches = len(list(make(lambda x: x)))
    assert guarded(None, how, guard(), make) == [("", batches)] * 2
    first, second = guarded(2000, how, guard(), make)
    assert first == second and first[1] in (256, batches)
    batch = 2000 * batches // 3600
    assert first[0].startswith(f"hosts disagree: batch {batch} is the first that differs between host 0 and host 1"), first


def test_an_exchange_is_told_of_each_beginning() -> None:
    said: dict[tuple[int, int], str] = {}
    boards = [Board(host, said) for host in range(2)]

    def host(index: int) -> Any:
        loader = elements().loader(part=(index, 2), guard=boards[index], guard_timeout=60)
        start = loader.get_state()
        first = rows(next(loader))
        loader.set_state(start)
        assert rows(next(loader)) == first
        loader.repart((1 - index, 2))
        loader.back()
        return first, rows(next(loader))

    (first, other), (second, another) = side_by_side(host)
    assert (first, second) == (another, other)
    assert boards[0].begun == [gm.Part(0, 2), gm.Part(0, 2), gm.Part(1, 2)]


class Alone(Board):
    def __init__(self) -> None:
        super().__init__(0, {})

    def read(self, round: int) -> list[str | None]:
        return super().read(round)[:1]


def test_a_silent_host_and_a_failing_exchange_are_errors() -> None:
    loader = elements().loader(part=(0, 2), guard=Board(0, {}), guard_timeout=0.2)
    with pytest.raises(gm.WorkerError, match=r"host 1 of 2 has sent nothing for 0 s: the other hosts are after batch 0"):
        next(loader)

    class Broken(Board):
        def post(self, round: int, statement: str) -> None:
            raise ConnectionError("the store is gone")

    with pytest.raises(ConnectionError, match="the store is gone"):
        next(elements().loader(part=(0, 2), guard=Broken(0, {})))
    # It needs nobody where nobody else is, and looks at nothing where it is told so.
    alone = elements().loader(part=(0, 1), guard=Alone())
    assert rows(next(alone)) == rows(next(elements().loader(part=(0, 1), guard=None)))
    assert "there are no other hosts" in str(alone.report())


def test_an_exception_of_one_host_is_told_to_the_other() -> None:
    said: dict[tuple[int, int], str] = {}

    def host(index: int) -> Any:
        def own(x: int) -> int:
            if index == 1 and x == 20:
                raise KeyError("twenty")
            return x

        try:
            return list(of_numbers(own).loader(part=(index, 2), guard=Board(index, said), guard_timeout=60))
        except (KeyError, gm.Error) as error:
            return f"{type(error).__name__}: {error}"

    other, failed = side_by_side(host)
    assert failed == "KeyError: 'twenty'"
    assert "WorkerError: host 1 has failed at batch" in other and "twenty" in other


def test_what_is_no_guard_is_refused(tmp_path: Any) -> None:
    with pytest.raises(TypeError, match='a guard is "auto", None, a folder'):
        native().loader(part=(0, 2), guard=3)  # type: ignore[arg-type]
    with pytest.raises(gm.ConfigError, match="hosts cannot be compared without a part"):
        native().loader(guard=tmp_path)
    with pytest.raises(gm.ConfigError, match="does not determine the index of this host"):
        next(native().loader(part=gm.Part.listed([0], BATCH), guard=tmp_path))
    with pytest.raises(ValueError, match="guard_timeout: is -1, and must be a number of seconds"):
        native().loader(guard_timeout=-1)


def packed(made: list[int]) -> gm.IterDataset:
    """Packed rows of Python's own elements, each of which is noted in `made`."""

    def sequence(x: int) -> dict[str, Any]:
        made.append(x)
        return {"ids": np.full(x % 5 + 1, x, np.int32)}

    ds = gm.MapDataset.range(2000).shuffle(3).map(sequence).filter(lambda e: e["ids"][0] % 7 != 0)
    return ds.to_iter_dataset().window_pack(length={"ids": 16}, window=32).batch(BATCH, drop_remainder=True)


@pytest.mark.parametrize("threads", [0, 2])
def test_hosts_plan_by_keys_and_make_their_own_elements(tmp_path: Path, threads: int) -> None:
    made: list[int] = []
    whole = list(packed(made).loader())
    everything = len(made)
    [keys] = packed(made).make_keys(tmp_path)
    assert keys["records"] == 2000 and not keys["was_there"] and keys["elements"] == sum(x % 7 != 0 for x in range(2000))
    assert packed(made).make_keys(tmp_path)[0]["was_there"]
    for index in range(4):
        made.clear()
        with packed(made).loader(part=(index, 4), keys=tmp_path, threads=threads) as loader:
            own = list(loader)
            assert "plans all rows from keys" in str(loader.report())
        for mine, theirs in zip(own, whole, strict=True):
            for name, rows in theirs.items():
                np.testing.assert_array_equal(mine[name], rows[3 * index : 3 * index + 3])
        # Those of dropped records are not made at all.
        assert len(made) < everything / 3
    with pytest.raises(gm.ConfigError, match="there are no keys for"):
        packed(made).loader(part=(0, 4), keys=tmp_path / "none")
    with pytest.raises(gm.ConfigError, match="keys would not help"):
        gm.MapDataset.range(9).to_iter_dataset().batch(3).make_keys(tmp_path)


def four_by_keys(ds: Any, keys: Path, whole: list[dict[str, Any]], made: list[int]) -> Iterator[int]:
    """Checks that four hosts plan by `keys` and have the rows of `whole` between them; gives how many elements each has `made`."""
    for index in range(4):
        with ds.loader(part=(index, 4), keys=keys, threads=2) as loader:
            # Without the sample that is compared with the keys.
            made.clear()
            own = list(loader)
            assert "plans all rows from keys" in str(loader.report())
        for mine, theirs in zip(own, whole, strict=True):
            for name, rows in theirs.items():
                np.testing.assert_array_equal(mine[name], rows[3 * index : 3 * index + 3])
        yield len(made)


def test_functions_behind_a_shuffle_have_keys_of_their_own(tmp_path: Path) -> None:
    made: list[int] = []

    def sequence(x: int) -> dict[str, Any]:
        made.append(x)
        return {"ids": np.full(x % 5 + 1, x, np.int32)}

    ds = gm.MapDataset.range(2000).map(sequence).to_iter_dataset().window_shuffle(64, seed=3)
    ds = ds.filter(lambda e: e["ids"][0] % 7 != 0).map(lambda e: {"ids": e["ids"][1:]})
    ds = ds.window_pack(length={"ids": 16}, window=32).batch(BATCH, drop_remainder=True)
    whole = list(ds.loader())
    everything = len(made)
    assert sorted(keys["elements"] for keys in ds.make_keys(tmp_path)) == [1714, 1714, 2000]
    for own in four_by_keys(ds, tmp_path, whole, made):
        assert own < everything / 3
    # A pass evaluates everything, and notes the keys of the border and of both functions.
    with ds.loader(part=(0, 2), keys=tmp_path / "recorded", record_keys=True) as loader:
        assert all(np.array_equal(mine["ids"], theirs["ids"][:6]) for mine, theirs in zip(loader, whole, strict=True))
        notes = " ".join(str(loader.report()).split())
    assert notes.count("are recorded: the next start plans with them") == 3, notes
    assert sorted(keys["was_there"] for keys in ds.make_keys(tmp_path / "recorded")) == [True] * 3


def test_functions_behind_a_flat_map_have_keys_for_each_of_its_elements(tmp_path: Path) -> None:
    made: list[int] = []

    def sequence(x: int) -> dict[str, Any]:
        made.append(x)
        return {"ids": np.full(x % 5 + 1, x, np.int32)}

    def halves(e: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"ids": e["ids"][:2]}, {"ids": e["ids"][1:] + 1}][: 1 + e["ids"][0] % 2]

    ds = gm.MapDataset.range(2000).map(sequence).to_iter_dataset().window_shuffle(64, seed=3).flat_map(halves)
    ds = ds.window_shuffle(32, seed=5).filter(lambda e: len(e["ids"]) > 0 and e["ids"][0] % 7 != 0)
    ds = ds.map(lambda e: {"ids": e["ids"][:3]}).window_pack(length={"ids": 16}, window=32)
    ds = ds.batch(BATCH, drop_remainder=True)
    whole = list(ds.loader())
    everything = len(made)
    assert "with `keys` it would evaluate only its own" in " ".join(str(ds.explain()).split())
    kept = sum(1 for x in range(2000) for y in [x, x + 1][: 1 + x % 2] if y % 7 != 0 and not (y > x and x % 5 == 0))
    assert [keys["elements"] for keys in ds.make_keys(tmp_path)] == [2000, 3000, kept, kept]
    for own in four_by_keys(ds, tmp_path, whole, made):
        assert own < everything / 2


def test_the_first_pass_records_the_keys_that_the_next_plans_by(tmp_path: Path) -> None:
    made: list[int] = []
    with packed(made).loader(part=(0, 2), keys=tmp_path, record_keys=True, threads=2) as loader:
        whole = list(loader)
        assert "are recorded: the next start plans with them" in " ".join(str(loader.report()).split())
    assert packed(made).make_keys(tmp_path)[0]["was_there"]
    with packed(made).loader(part=(0, 2), keys=tmp_path, record_keys=True) as loader:
        again = list(loader)
        assert "plans all rows from keys" in str(loader.report())
    for mine, theirs in zip(again, whole, strict=True):
        np.testing.assert_array_equal(mine["ids"], theirs["ids"])
    with pytest.raises(gm.ConfigError, match="keys cannot be recorded without a folder for them"):
        packed(made).loader(record_keys=True)
    shuffled = packed(made).map(lambda batch: batch)
    with shuffled.loader(part=(0, 2), keys=tmp_path, record_keys=True) as loader:
        next(loader)
        report = str(loader.report())
        assert "keys are not recorded, as they would not help: map (stage " in " ".join(report.split()), report


@pytest.mark.parametrize("threads", [0, 2])
def test_records_that_a_pass_does_not_come_to_are_made_at_its_end(tmp_path: Path, threads: int) -> None:
    made: list[int] = []

    def sequence(x: int) -> dict[str, Any]:
        made.append(x)
        return {"ids": np.full(x % 5 + 1, x, np.int32)}

    ds = gm.MapDataset.range(2000).map(sequence)[:1500].to_iter_dataset()
    ds = ds.window_pack(length={"ids": 16}, window=32).batch(BATCH, drop_remainder=True)
    with ds.loader(keys=tmp_path, record_keys=True, threads=threads) as loader:
        for _ in loader:
            pass
        assert sorted(made) == list(range(2000))
        assert "are recorded: the next start plans with them" in " ".join(str(loader.report()).split())
    assert ds.make_keys(tmp_path)[0]["was_there"]


def test_keys_that_would_not_help_are_left_out_of_account(tmp_path: Path) -> None:
    ds = gm.MapDataset.range(60).map(lambda x: {"x": np.int32(x)}).to_iter_dataset().cache().filter(lambda e: e["x"] % 3 > 0)
    ds = ds.batch(BATCH, drop_remainder=True)
    whole = [batch["x"].tolist() for batch in ds.loader()]
    for record in (True, False):
        with ds.loader(part=(0, 2), keys=tmp_path, record_keys=record) as loader:
            assert [batch["x"].tolist() for batch in loader] == [rows[:6] for rows in whole]
            assert "evaluates all elements and takes its rows" in " ".join(str(loader.report()).split())

"""Exceptions keep their type and traceback, and say where they came from."""

import threading
import traceback
from collections.abc import Callable
from typing import Any

import gristmill as gm
import pytest


class Spoiled(Exception):
    pass


def fails_at_three(x: int, *_: object) -> int:
    if x == 3:
        raise Spoiled(x)
    return x


class FailingSource:
    def __len__(self) -> int:
        return 9

    def __getitem__(self, index: int) -> int:
        return fails_at_three(index)


def sums(numbers: list[int]) -> int:
    return sum(fails_at_three(x) for x in numbers)


NUMBERS = gm.MapDataset.range(9)
CASES: dict[str, tuple[gm.MapDataset | gm.IterDataset, str]] = {
    "map": (NUMBERS.map(fails_at_three), "stage 1 map, element 3"),
    "filter": (NUMBERS.filter(fails_at_three), "stage 1 filter, element 3"),
    "random_map": (NUMBERS.random_map(fails_at_three, seed=1), "stage 1 random_map, element 3"),
    "map_with_index": (NUMBERS.map_with_index(fails_at_three), "stage 1 map_with_index, element 3"),
    "source": (gm.MapDataset.source(FailingSource()).shuffle(1), "stage 0 source, element "),
    "flat_map": (NUMBERS.to_iter_dataset().flat_map(lambda x: [fails_at_three(x)]), "stage 1 flat_map, element 3"),
    "stream": (NUMBERS.to_iter_dataset().window_shuffle(4, 1).map(fails_at_three), "stage 3 map"),
    "batch_fn": (NUMBERS.to_iter_dataset().filter(bool).batch(2, batch_fn=sums), "batch"),
}


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("case", CASES)
def test_the_exception_of_a_function(case: str, threads: int) -> None:
    ds, place = CASES[case]
    with ds.loader(threads=threads) as it, pytest.raises(Spoiled) as caught:
        list(it)
    assert caught.value.args == (3,)
    frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert frames[-1] == "fails_at_three"
    assert any(place in note for note in caught.value.__notes__), caught.value.__notes__


@pytest.mark.parametrize("run", [{}, {"threads": 2}, {"workers": 1}])
def test_behind_a_shuffle_the_record_is_named_beside_the_place(run: dict[str, int]) -> None:
    shuffled = gm.MapDataset.range(2000).shuffle(seed=3)
    place = next(at for at, number in enumerate(shuffled) if number == 1234)

    def fails(x: int) -> int:
        if x == 1234:
            raise Spoiled(x)
        return x

    ds = shuffled.map(fails).to_iter_dataset().batch(4)
    ds = ds.mp_prefetch(num_workers=1) if "workers" in run else ds
    with ds.loader(threads=run.get("threads", 0)) as it, pytest.raises(Exception) as caught:
        list(it)
    assert f"gristmill: element {place} is record 1234 of range" in caught.value.__notes__
    with pytest.raises(Spoiled) as once:
        shuffled.map(fails)[place]
    assert f"gristmill: element {place} is record 1234 of range" in once.value.__notes__


def test_it_comes_in_its_place_and_ends_the_pass() -> None:
    it = iter(NUMBERS.map(fails_at_three))
    assert [next(it), next(it), next(it)] == [0, 1, 2]
    with pytest.raises(Spoiled):
        next(it)
    assert list(it) == []
    assert it.get_state()["state"]["next_index"] == 3


def test_random_access_says_it_too() -> None:
    ds = NUMBERS.map(fails_at_three)
    with pytest.raises(Spoiled) as caught:
        ds[3]
    assert caught.value.__notes__ == ["gristmill: stage 1 map, element 3"]


def stops(_: int) -> int:
    raise StopIteration


def test_a_function_cannot_end_the_data_by_accident() -> None:
    with pytest.raises(RuntimeError, match="StopIteration") as caught:
        list(NUMBERS.map(stops))
    assert isinstance(caught.value.__cause__, StopIteration)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, MemoryError])
def test_any_exception_passes(kind: type[BaseException]) -> None:
    def raises(_: int) -> int:
        raise kind

    with pytest.raises(kind):
        next(iter(NUMBERS.map(raises)))


REFUSED: list[tuple[Callable[[], Any], str, str]] = [
    (lambda: NUMBERS.shuffle(), "stage 1 shuffle: a random stage has no seed", "put `.seed"),
    (lambda: NUMBERS.repeat(0), "stage 1 repeat", ""),
    (lambda: NUMBERS.to_iter_dataset().limit(0), "stage 2 limit", ""),
    (lambda: NUMBERS.loader(threads=1).set_state("{"), "not a checkpoint", ""),
    (lambda: gm.MapDataset.jsonl("/no/such.jsonl"), "jsonl.paths: no file /no/such.jsonl", ""),
    (lambda: gm.MapDataset.jsonl("/no/such.jsonl", colums="a"), "no file", ""),
    (lambda: NUMBERS.to_iter_dataset().rebatch(batch=3), "rebatch: unknown key `batch`", "`batch_size`"),
    (lambda: NUMBERS.to_iter_dataset().rebatch("3"), "needs a whole number, got the text \"3\"", "quotes"),
]


@pytest.mark.parametrize(("ask", "says", "help"), REFUSED)
def test_what_is_impossible_is_refused_where_it_is_asked(ask: Callable[[], Any], says: str, help: str) -> None:
    with pytest.raises(gm.Error) as caught:
        ask()
    assert isinstance(caught.value, ValueError)
    assert says in str(caught.value)
    assert help in (caught.value.help or "")


def test_wrong_calls_are_type_errors() -> None:
    ds: Any = NUMBERS.to_iter_dataset()
    for call in (lambda: ds.map(3), lambda: ds.rebatch(1, 2), lambda: ds.rebatch(1, batch_size=1), lambda: ds.filter()):
        with pytest.raises(TypeError):
            call()


def test_an_argument_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    ds: Any = gm.MapDataset.range(3)
    with pytest.raises(ValueError, match="nested deeper than 32"):
        ds.drop_columns(endless)
    with pytest.raises(ValueError, match="0 elements"):
        gm.MapDataset.select_from_datasets([ds], [])


def test_a_function_cannot_ask_its_own_iterator() -> None:
    own: list[gm.DatasetIterator] = []
    own.append(iter(NUMBERS.map(lambda _: own[0].get_state())))
    with pytest.raises(ValueError, match="already running"):
        next(own[0])
    assert own[0].get_state()["delivered"] == 0


@pytest.mark.parametrize("threads", [0, 1, 3])
@pytest.mark.parametrize("ask", ["next", "close", "set_state", "back", "repart"])
def test_a_function_that_moves_its_own_iterator_gets_an_error(ask: str, threads: int) -> None:
    asks: dict[str, Callable[[gm.DatasetIterator], Any]] = {
        "next": next,
        "close": gm.DatasetIterator.close,
        "set_state": lambda it: it.set_state(state),
        "back": gm.DatasetIterator.back,
        "repart": lambda it: it.repart((0, 2)),
    }
    own, told = list[gm.DatasetIterator](), list[str]()
    is_there = threading.Event()

    def asking(x: int) -> int:
        is_there.wait(60)
        if x == 3:
            with pytest.raises(ValueError, match="already running: one of its functions called it"):
                asks[ask](own[0])
            told.append(ask)
        return x

    ds = gm.MapDataset.range(8).map(asking).to_iter_dataset().batch(2)
    how: dict[str, Any] = {"threads": threads} if threads else {}
    with ds.loader(**how) as it:
        state = it.get_state()
        own.append(it)
        is_there.set()
        assert [batch.tolist() for batch in it] == [[0, 1], [2, 3], [4, 5], [6, 7]]
        own.clear()
    assert told == [ask]


def test_a_function_may_drop_its_own_iterator() -> None:
    own, dropped = list[gm.DatasetIterator](), threading.Event()
    is_there = threading.Event()

    def drop(x: int) -> int:
        is_there.wait(60)
        own.clear()
        dropped.set()
        return x

    own.append(gm.MapDataset.range(8).map(drop).loader(threads=1))
    is_there.set()
    assert dropped.wait(60)

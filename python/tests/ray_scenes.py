"""Scenes with a Ray cluster on this machine, in a process of their own: writes what came of each to a file, as JSON.

A cluster is not started for each of them, since that takes seconds.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gristmill as gm
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

SCENES: dict[str, Callable[[], Any]] = {}
#: Where Ray writes what its object store does not find room for.
SPILLED = Path(tempfile.mkdtemp())


def scene(run: Callable[[], Any]) -> Callable[[], Any]:
    """Notes a scene under its name."""
    SCENES[run.__name__] = run
    return run


def sized(x: int) -> dict[str, Any]:
    """An element of 0 to 8 KiB."""
    return {"x": np.full(x * 37 % 1000, x, np.int64), "at": x}


def pipeline() -> gm.IterDataset[Any]:
    """Functions, elements that are dropped, and stages that depend on the order."""
    ds = gm.MapDataset.range(4000).shuffle(seed=3).filter(lambda x: x % 7 != 2).map(sized)
    return ds.to_iter_dataset().window_shuffle(window_size=50, seed=4).batch(8, batch_fn=list)


def plain(batches: Any) -> list[list[tuple[int, bytes]]]:
    """The same as what compares."""
    return [[(element["at"], element["x"].tobytes()) for element in batch] for batch in batches]


def on_ray(**options: Any) -> Any:
    """A pass by actors."""
    return gm.ray.loader(pipeline(), **{"actors": 2, "ram_budget": "32MiB", "block": "256KiB", **options})


@scene
def the_stream_is_that_of_this_process() -> Any:
    want = plain(pipeline())
    return [plain(on_ray(actors=actors)) == want for actors in (1, 3, (1, 3))]


@scene
def an_actor_that_is_killed_is_replaced() -> Any:
    want, got = plain(pipeline()), []
    with on_ray() as batches:
        for number, batch in enumerate(batches):
            got += plain([batch])
            if number in (20, 60):
                worker = batches.report().as_dict()["workers"]["workers"][0]
                os.kill(worker["pid"], signal.SIGKILL)
                # Time to notice the death before the end of the pass, on a machine that has all batches by then.
                time.sleep(0.3)
        replaced = batches.report().as_dict()["workers"]["replaced"]
    return {"equal": got == want, "replaced": replaced}


@scene
def states_restore_with_any_number_of_actors_and_with_none() -> Any:
    want = plain(pipeline())
    with on_ray(actors=3) as batches:
        head = [plain([next(batches)])[0] for _ in range(30)]
        state = batches.get_state()
    with on_ray(actors=1) as batches:
        batches.set_state(state)
        middle = [plain([next(batches)])[0] for _ in range(30)]
        state = batches.get_state()
    rest = pipeline().loader()
    rest.set_state(state)
    return head + middle + plain(rest) == want


def fails(x: int) -> int:
    """Fails for one element."""
    if x == 777:
        raise ValueError("seven hundred and seventy-seven")
    return x


@scene
def what_a_function_raises_arrives() -> Any:
    try:
        list(gm.ray.loader(gm.MapDataset.range(1000).map(fails), actors=2, ram_budget="32MiB", block="256KiB"))
    except ValueError as error:
        text = "".join(traceback.format_exception(error))
        return {"said": str(error), "place": "in fails" in text, "element": "777" in text}
    return "nothing was raised"


@scene
def parts_add_up() -> Any:
    ds = gm.MapDataset.range(960).map(sized).map(lambda element: element["at"]).to_iter_dataset().batch(8)
    rows: list[int] = []
    for index in range(2):
        for batch in gm.ray.loader(ds, actors=1, ram_budget="32MiB", block="256KiB", part=(index, 2)):
            rows += batch.tolist()
    return sorted(rows) == list(range(960))


@scene
def a_slow_loop_fills_no_more_than_the_budget() -> Any:
    # Twice as much as the object store holds passes through it.
    budget, spilled = 8 << 20, False
    big = gm.MapDataset.range(3200).map(lambda x: np.full(1 << 17, x % 251, np.uint8)).to_iter_dataset()
    with gm.ray.loader(big, actors=2, ram_budget=budget, block="1MiB") as elements:
        for number, element in enumerate(elements):
            assert element[0] == number % 251
            # A slow loop: blocks pile up if nothing limits them.
            time.sleep(0.0005)
            if number % 100 == 0:
                spilled = spilled or any(path.is_file() for path in SPILLED.rglob("*"))
        used = elements.report().as_dict()["workers"]["slab_high_water_bytes"]
    return {"used": used, "budget": budget, "spilled": spilled}


def of_all_widths(x: int) -> dict[str, Any]:
    """Integers of all widths, floats, text and bytes; the same of an element whenever it is made."""
    random = np.random.default_rng(x)
    element: dict[str, Any] = {"text": "words " * (x % 50), "raw": random.bytes(x % 300), "list": [x, str(x), None, x / 7]}
    for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        most = np.iinfo(dtype).max
        element[dtype] = random.integers(0, min(most, 50_000), x % 400, dtype, endpoint=True)
        element[f"any {dtype}"] = random.integers(np.iinfo(dtype).min, most, x % 90, dtype, endpoint=True)
        element[f"sums {dtype}"] = np.cumsum(random.integers(0, 9, 100), dtype=dtype)
    element["signs"] = random.integers(-100, 30_000, 500, np.int32)
    element["nan"] = np.array([np.nan, -0.0, np.inf, random.random()], np.float32)
    return element | {dtype: random.normal(size=(x % 20, 8)).astype(dtype) for dtype in ("float16", "float32", "float64")}


def exactly(value: Any) -> Any:
    """The same as what compares: bits, not numbers."""
    if isinstance(value, dict):
        return {name: exactly(part) for name, part in value.items()}
    return (str(value.dtype), value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value


@scene
def blocks_that_cross_packed_are_the_same_bit_for_bit() -> Any:
    ds = gm.MapDataset.range(1500).shuffle(seed=5).map(of_all_widths).to_iter_dataset()
    want = [exactly(element) for element in ds]
    options: dict[str, Any] = {"actors": 2, "ram_budget": "8MiB", "block": "512KiB"}
    found: dict[str, Any] = {}
    for compress in ("always", "never", "auto"):
        with gm.ray.loader(ds, **options, compress=compress) as elements:
            same = [exactly(element) for element in elements] == want
            report = elements.report()
        workers = report.as_dict()["workers"]
        used = workers["slab_high_water_bytes"] <= 8 << 20
        found[compress] = {"same": same, "in budget": used, "links": workers["links"], "text": " ".join(str(report).split())}
    return found


def actors_of_pools() -> list[str]:
    """The names of actors that pools have."""
    from ray.util import list_named_actors

    return [each["name"] for each in list_named_actors(all_namespaces=True) if each["namespace"] == "gristmill"]


def leaves_nothing() -> bool:
    """Whether all actors of pools end. They take seconds, on a busy machine more."""
    end = time.monotonic() + 120
    while actors_of_pools() and time.monotonic() < end:
        # Looks again: Ray tells nobody that an actor has ended.
        time.sleep(0.2)
    return not actors_of_pools()


class Trainer:
    """A trainer in a process of its own, which shares the pool `name`."""

    def __init__(self, name: str, **options: Any) -> None:
        import ray

        self.file = Path(tempfile.mkdtemp()) / "came.json"
        address = ray.get_runtime_context().gcs_address
        arguments = ["--trainer", address, str(self.file), json.dumps({"pool": name, **options})]
        self.process = subprocess.Popen([sys.executable, __file__, *arguments], stderr=subprocess.PIPE, text=True)

    def came(self) -> Any:
        """What it says at its end."""
        _, said = self.process.communicate(timeout=400)
        return json.loads(self.file.read_text()) if self.process.returncode == 0 else said[-2000:]

    def wait_until_at_work(self) -> None:
        """Waits for its first batches."""
        while not self.file.exists() and self.process.poll() is None:
            # Looks again: the trainer is another process.
            time.sleep(0.02)


def slow(x: int) -> dict[str, Any]:
    """An element that takes a while."""
    # So that trainers and actors are at work together.
    time.sleep(0.001)
    return sized(x)


def dies(x: int) -> dict[str, Any]:
    """The same, but for one that ends its process: that at index 1200 of 3000, when other trainers are at work, too."""
    if x == 1095:
        os._exit(3)
    return slow(x)


def hangs(x: int) -> dict[str, Any]:
    """The same, but for one that never ends."""
    if x == 777:
        # A function that hangs, until its actor is ended.
        time.sleep(10_000)
    return slow(x)


#: Functions of trainers, by the fault that they have.
FAULTS: dict[str | None, Callable[[int], Any]] = {None: slow, "dies": dies, "hangs": hangs}


def slow_pipeline(function: Callable[[int], Any] = slow) -> gm.IterDataset[Any]:
    """Elements of which each takes a while."""
    ds = gm.MapDataset.range(3000).shuffle(seed=3).map(function)
    return ds.to_iter_dataset().window_shuffle(window_size=50, seed=4).batch(8, batch_fn=list)


def digest_of(batches: Any) -> str:
    """A digest of all batches."""
    return hashlib.sha256(repr(plain(batches)).encode()).hexdigest()


def train(address: str, file: str, options: dict[str, Any]) -> None:
    """A trainer of a pool, in a process of its own."""
    import ray

    ray.init(address=address, log_to_driver=False)
    if meeting := options.pop("meeting", None):
        Path(meeting, str(os.getpid())).touch()
        while len(os.listdir(meeting)) < 2:
            # Looks again: the other trainer is another process.
            time.sleep(0.01)
    begun = time.monotonic()
    function = FAULTS[options.pop("fault", None)]
    until = options.pop("until", None)
    given = {"actors": 2, "ram_budget": "16MiB", "block": "256KiB", **options}
    digest, got = hashlib.sha256(), []
    with gm.ray.loader(slow_pipeline(function), **given) as batches:
        for number, batch in enumerate(batches):
            got += plain([batch])
            if number == 5:
                Path(file).write_text("{}")
            while number == 200 and until is not None and not Path(until).exists():
                # Looks again: the end of the other trainer is seen by the process that started both.
                time.sleep(0.01)
        report = batches.report()
        workers = report.as_dict()["workers"]
    digest.update(repr(got).encode())
    said = {"digest": digest.hexdigest(), "pool": workers["pool"], "replaced": workers["replaced"], "text": str(report)}
    Path(file).write_text(json.dumps({**said, "seconds": time.monotonic() - begun, "stages": report.as_dict()["stages"]}))
    ray.shutdown()


@scene
def two_trainers_share_a_pool() -> Any:
    # They begin together: an answer is kept for the other trainer as long as that is not far behind.
    meeting = tempfile.mkdtemp()
    trainers = [Trainer("two", meeting=meeting) for _ in range(2)]
    trainers[0].wait_until_at_work()
    actors = sorted(actors_of_pools())
    came = [trainer.came() for trainer in trainers]
    return {"want": digest_of(slow_pipeline()), "came": came, "actors": actors, "left": leaves_nothing()}


@scene
def a_trainer_that_is_killed_leaves_the_other_alone() -> Any:
    dead, alive = Trainer("killed"), Trainer("killed")
    dead.wait_until_at_work()
    dead.process.kill()
    dead.process.wait()
    return {"want": digest_of(slow_pipeline()), "came": alive.came(), "left": leaves_nothing()}


@scene
def an_element_that_kills_actors_is_its_trainers_alone() -> Any:
    # They begin together, and one is not through before the other has ended.
    meeting, ended = tempfile.mkdtemp(), Path(tempfile.mkdtemp(), "ended")
    alive, dead = Trainer("poison", meeting=meeting, until=str(ended)), Trainer("poison", meeting=meeting, fault="dies")
    said = dead.came()
    ended.touch()
    came = alive.came()
    return {"want": digest_of(slow_pipeline()), "came": came, "said": said, "left": leaves_nothing()}


@scene
def notes_say_whose_element_ended_an_actor() -> Any:
    from gristmill.ray._pooled import Notes

    def blames() -> list[str]:
        """The blame of two trainers of an actor."""
        return [Notes().blame("an actor", lease) for lease in ("first", "second")]

    found = [blames()]
    Notes().add("an actor", "first")
    found.append(blames())
    Notes().add("an actor", "second", kills=True)
    found.append(blames())
    Notes().drop("an actor", "second")
    Notes().drop("an actor", "first")
    return [*found, blames()]


@scene
def an_element_that_hangs_is_its_trainers_alone() -> Any:
    alive, hung = Trainer("hang"), Trainer("hang", fault="hangs", deadline=2.0, hedge=None)
    came, said = alive.came(), hung.came()
    return {"want": digest_of(slow_pipeline()), "came": came, "said": said, "left": leaves_nothing()}


@scene
def a_pool_that_is_another_is_refused() -> Any:
    with on_ray(pool="mine", actors=1) as batches:
        next(batches)
        try:
            on_ray(pool="mine", cpus_per_actor=2)
        except gm.ConfigError as error:
            said = str(error)
    return {"said": said, "left": leaves_nothing()}


@scene
def a_command_runs_a_pipeline_file() -> Any:
    command = Path(sysconfig.get_path("scripts")) / "gristmill"
    folder = Path(tempfile.mkdtemp())
    (folder / "texts.jsonl").write_text("".join(f'{{"text": "{"word " * (i % 50)}"}}\n' for i in range(3000)))
    (folder / "p.yaml").write_text(
        "source: {jsonl: {paths: texts.jsonl}}\n"
        "stages: [seed: 3, shuffle, to_iter, {window_shuffle: {window_size: 40}}, batch: 8]\n"
    )

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([command, "run", "p.yaml", *arguments], cwd=folder, capture_output=True, text=True, check=False)

    here, there = run("--inline", "--order-hash"), run("--on", "ray://auto", "--workers", "2", "--ram", "64MiB", "--json")
    lost = run("--on", "ray://127.0.0.1:1", "--order-hash")
    return {
        "here": here.stdout.strip() or here.stderr,
        "there": json.loads(there.stdout)["order_hash"] if there.stdout else there.stderr,
        "by": there.stdout and json.loads(there.stdout)["report"]["workers"]["workers"][0]["host"],
        "lost": (lost.returncode, lost.stdout, lost.stderr.strip().splitlines()[-2:]),
    }


@scene
def impossible_arguments_are_named() -> Any:
    said = []
    sizes: list[dict[str, Any]] = [{"block": "8 stones"}, {"block": "16MiB"}, {"compress": "yes"}, {"deadline": 0}]
    for options in [{"actors": 0}, {"actors": (3, 2)}, {"cpus_per_actor": 0}, *sizes]:
        try:
            on_ray(**options)
        except gm.ConfigError as error:
            said.append(str(error))
    return said


def main() -> None:
    """Runs all scenes."""
    import ray

    ray.init(
        "local",
        num_cpus=4,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=200 << 20,
        object_spilling_directory=str(SPILLED),
    )
    came: dict[str, Any] = {}
    chosen = sys.argv[2:] or list(SCENES)
    for name, run in ((name, SCENES[name]) for name in chosen):
        begun = time.monotonic()
        try:
            came[name] = run()
        except Exception:
            came[name] = traceback.format_exc()
        print(f"{name}: {time.monotonic() - begun:.1f} s", file=sys.stderr)
    Path(sys.argv[1]).write_text(json.dumps(came))
    ray.shutdown()


if __name__ == "__main__":
    if sys.argv[1] == "--trainer":
        train(*sys.argv[2:4], json.loads(sys.argv[4]))
    else:
        main()

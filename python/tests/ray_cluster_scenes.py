"""Scenes with a Ray cluster of several nodes on this machine, in a process of their own: writes what came of each to a file, as JSON.

    python ray_cluster_scenes.py FILE            runs all scenes
    python ray_cluster_scenes.py drive ADDRESS FOLDER    a driver for one of them, which kills it

Each node has an address of its own, 127.0.0.1 and so on; the first has no cores, so that actors run on others than the driver.
"""

from __future__ import annotations

import hashlib
import json
import logging
import logging.handlers
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gristmill as gm
import numpy as np
from gristmill.ray import _driver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

#: Nodes that are gone are seen after a second or two.
HEALTH = {"health_check_period_ms": 500, "health_check_timeout_ms": 1000, "health_check_failure_threshold": 2}
#: The object store of a node.
STORE = 96 << 20
#: The time after which a scene gives up what it waits for.
LONG = 30.0

SCENES: dict[str, Callable[[Nodes], Any]] = {}


class Nodes:
    """A cluster, whose folder is Ray's."""

    def __init__(self, folder: Path) -> None:
        from ray.cluster_utils import Cluster

        self.spilled = folder / "spilled"
        head = {"num_cpus": 0, "include_dashboard": False, "_system_config": HEALTH}
        self.cluster: Any = Cluster(initialize_head=True, head_node_args={**head, **self._common(1)})
        self._last = 1
        self.two = [self.add(), self.add()]

    def _common(self, number: int) -> dict[str, Any]:
        spilled = {"object_spilling_directory": str(self.spilled)}
        return {"node_ip_address": f"127.0.0.{number}", "object_store_memory": STORE, **spilled}

    def add(self) -> Any:
        """One more node, of two cores."""
        self._last += 1
        return self.cluster.add_node(num_cpus=2, resources={"one": 1}, **self._common(self._last))

    def remove(self, node: Any) -> None:
        """Kills all that runs on a node."""
        self.cluster.remove_node(node, allow_graceful=False)


def scene(run: Callable[[Nodes], Any]) -> Callable[[Nodes], Any]:
    """Notes a scene under its name."""
    SCENES[run.__name__] = run
    return run


def sized(x: int) -> dict[str, Any]:
    """An element of 0 to 8 KiB."""
    return {"x": np.full(x * 37 % 1000, x, np.int64), "at": x}


def pipeline(count: int = 8000, made: Callable[[int], Any] = sized) -> gm.IterDataset[Any]:
    """Functions, elements that are dropped, and stages that depend on the order."""
    ds = gm.MapDataset.range(count).shuffle(seed=3).filter(lambda x: x % 7 != 2).map(made)
    return ds.to_iter_dataset().window_shuffle(window_size=50, seed=4).batch(8, batch_fn=list)


def on_ray(ds: gm.IterDataset[Any], **options: Any) -> Any:
    """A pass by actors, whose blocks are so large that they lie in an object store: Ray puts smaller ones into its messages."""
    return gm.ray.loader(ds, **{"actors": 2, "ram_budget": "16MiB", "block": "192KiB", **options})


class Digest:
    """What was read: all batches in their order, and the longest time that one was waited for."""

    def __init__(self) -> None:
        self._hash, self.batches, self.longest = hashlib.sha256(), 0, 0.0

    def add(self, batch: list[Any]) -> None:
        """One more batch."""
        self.batches += 1
        for element in batch:
            self._hash.update(element["at"].to_bytes(8, "little") + element["x"].tobytes())
        self._hash.update(b"|")

    def read(self, batches: Iterable[Any], count: int | None = None) -> Iterator[int]:
        """Reads `count` batches, or all; yields how many there are after each."""
        for batch in self.timed(batches):
            self.add(batch)
            yield self.batches
            if count is not None:
                count -= 1
                if count == 0:
                    return

    def timed(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Notes the longest wait."""
        reading = iter(batches)
        while True:
            begun = time.monotonic()
            batch = next(reading, None)
            self.longest = max(self.longest, time.monotonic() - begun)
            if batch is None:
                return
            yield batch

    def all(self, batches: Iterable[Any], count: int | None = None) -> str:
        """Reads `count` batches, or all; the digest then."""
        for _ in self.read(batches, count):
            pass
        return self.text

    @property
    def text(self) -> str:
        """The digest of what was read."""
        return f"{self.batches} {self._hash.hexdigest()[:16]}"


def workers(batches: Any) -> list[dict[str, Any]]:
    """What the report says of each worker."""
    return [worker for worker in batches.report().as_dict()["workers"]["workers"] if worker["pid"]]


def noted(batches: Any, start: str) -> int:
    """How often something was noted whose text begins so."""
    return sum(count for text, count in batches.report().as_dict()["notes"] if text.startswith(start))


#: Options of a pass with an actor on each node: Ray's spreading is none that one could count on.
ONE_EACH: dict[str, Any] = {"resources": {"one": 1}}
HEDGED = "ranges asked of another worker"


def until(holds: Callable[[], bool]) -> bool:
    """Whether something holds within a while."""
    end = time.monotonic() + LONG
    while not (held := holds()) and time.monotonic() < end:
        # Looks again: what holds is a matter of other processes.
        time.sleep(0.05)
    return held


@scene
def blocks_are_spread_over_nodes(nodes: Nodes) -> Any:
    digest, tasks = Digest(), dict[str, int]()
    with on_ray(pipeline(), actors=4) as batches:
        # Whoever comes first has the work of all until the others are there.
        until(lambda: len(workers(batches)) == 4)
        before = {worker["pid"]: worker["tasks"] for worker in workers(batches)}
        digest.all(batches)
        for worker in workers(batches):
            tasks[worker["host"]] = tasks.get(worker["host"], 0) + worker["tasks"] - before.get(worker["pid"], 0)
        stages = [[host["host"] for host in stage.get("hosts", [])] for stage in batches.report().as_dict()["stages"]]
    return {"equal": digest.text == Digest().all(pipeline()), "tasks": tasks, "stages": stages}


@scene
def an_actor_that_is_stopped_is_hedged(nodes: Nodes) -> Any:
    digest = Digest()
    with on_ray(pipeline(), **ONE_EACH) as batches:
        for number in digest.read(batches):
            if number == 400:
                stopped = workers(batches)[0]["pid"]
                before, digest.longest = digest.longest, 0.0
                os.kill(stopped, signal.SIGSTOP)
        hedged, replaced = noted(batches, HEDGED), batches.report().as_dict()["workers"]["replaced"]
        state = Path(f"/proc/{stopped}/stat").read_text().rpartition(")")[2].split()[0]
    # Whoever is stopped hears nothing of its end: Ray kills it after a while.
    gone = until(lambda: not alive(stopped))
    equal = digest.text == Digest().all(pipeline())
    return {"equal": equal, "hedged": hedged, "replaced": replaced, "state": state, "gone": gone, "stall": digest.longest, "before": before}


def alive(pid: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@scene
def the_end_comes_while_hedges_are_under_way(nodes: Nodes) -> Any:
    def made(x: int) -> dict[str, Any]:
        import ray

        # The node whose last elements take for ever.
        if ray.util.get_node_ip_address() == late and os.path.exists(slow):
            # Slow enough to be hedged.
            time.sleep(0.5)
        return sized(x)

    late, digest = "127.0.0.2", Digest()
    with tempfile.TemporaryDirectory() as folder:
        slow = f"{folder}/slow"
        with on_ray(pipeline(made=made), **ONE_EACH) as batches:
            for number in digest.read(batches):
                if number == 780:
                    Path(slow).touch()
            hedged = noted(batches, HEDGED)
            begun = time.monotonic()
        closed = time.monotonic() - begun
    return {"equal": digest.text == Digest().all(pipeline()), "hedged": hedged, "closed": closed, "stall": digest.longest}


@scene
def states_go_on_with_one_four_and_two_actors(nodes: Nodes) -> Any:
    digest, state, seen = Digest(), None, []
    for actors, count in ((1, 100), (4, 350), (2, None)):
        with on_ray(pipeline(), actors=actors) as batches:
            if state is not None:
                batches.set_state(state)
            digest.all(batches, 10)
            until(lambda actors=actors, batches=batches: len(workers(batches)) == actors)
            digest.all(batches, count)
            state = batches.get_state()
            seen.append(len(workers(batches)))
    return {"equal": digest.text == Digest().all(pipeline()), "actors": seen}


@scene
def actors_come_within_a_pass(nodes: Nodes) -> Any:
    def slow(x: int) -> dict[str, Any]:
        # So slow that more actors than one are worth it.
        time.sleep(0.002)
        return sized(x)

    digest, most = Digest(), 0
    with on_ray(pipeline(made=slow), actors=(1, 4)) as batches:
        for number in digest.read(batches):
            if number % 20 == 0:
                most = max(most, len(workers(batches)))
    return {"equal": digest.text == Digest().all(pipeline()), "actors": most}


@scene
def what_a_function_raises_on_another_node_arrives(nodes: Nodes) -> Any:
    def fails(x: int) -> Any:
        if x == 777:
            raise ValueError("seven hundred and seventy-seven")
        return sized(x)

    try:
        Digest().all(on_ray(pipeline(made=fails)))
    except ValueError as error:
        return {"said": str(error), "text": "".join(traceback.format_exception(error))}
    return "nothing was raised"


@scene
def a_driver_that_is_killed_is_restored(nodes: Nodes) -> Any:
    came = []
    for actors in (3, None):
        with tempfile.TemporaryDirectory() as folder:
            driver = subprocess.Popen([sys.executable, __file__, "drive", nodes.cluster.address, folder])
            saved = Path(folder) / "state"
            begun = until(saved.exists)
            actor = int((Path(folder) / "actor").read_text()) if begun else 0
            driver.kill()
            driver.wait()
            gone = until(lambda actor=actor: not alive(actor))
            count, state = json.loads(saved.read_text())
        digest, ds = Digest(), pipeline()
        digest.all(ds, count)
        with on_ray(ds, actors=actors) if actors else ds.loader() as batches:
            batches.set_state(state)
            digest.all(batches)
        came.append({"equal": digest.text == Digest().all(pipeline()), "gone": gone, "at": count})
    return came


def drive(address: str, folder: Path) -> None:
    """Reads slowly, and keeps its state in a file."""
    import ray

    ray.init(address=address, log_to_driver=False)
    digest = Digest()
    with on_ray(pipeline()) as batches:
        for number in digest.read(batches):
            if number % 20 == 0:
                (folder / "actor").write_text(str(workers(batches)[0]["pid"]))
                (folder / "new").write_text(json.dumps([number, batches.get_state()]))
                (folder / "new").rename(folder / "state")
                # Time to be killed at this state.
                time.sleep(0.2)


@scene
def a_slow_loop_keeps_memory_flat(nodes: Nodes) -> Any:
    # Twice as much as an object store holds passes through the driver's.
    budget, high, spilled, rss = 8 << 20, 0, False, []
    big = gm.MapDataset.range(1600).map(lambda x: np.full(1 << 17, x % 251, np.uint8)).to_iter_dataset()
    with on_ray(big, ram_budget=budget, block="1MiB") as elements:
        for number, element in enumerate(elements):
            assert element[0] == number % 251
            # A slow loop: blocks pile up if nothing limits them.
            time.sleep(0.001)
            if number % 50 == 49:
                high = max(high, store_used())
                spilled = spilled or any(path.is_file() for path in nodes.spilled.rglob("*"))
                rss.append(private())
        taken = elements.report().as_dict()["workers"]["slab_high_water_bytes"]
    return {"high": high, "store": STORE, "spilled": spilled, "rss": rss, "taken": taken, "budget": budget}


def store_used() -> int:
    """The most that the object store of a node holds."""
    from ray._private.state import available_resources_per_node, total_resources_per_node

    free = {node: has.get("object_store_memory", 0) for node, has in available_resources_per_node().items()}
    return int(max(has.get("object_store_memory", 0) - free.get(node, 0) for node, has in total_resources_per_node().items()))


def private() -> int:
    """Memory of this process that no other has."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Private"))


@scene
def a_node_is_removed_and_another_added(nodes: Nodes) -> Any:
    digest = Digest()
    with on_ray(pipeline(24000), actors=3) as batches:

        def hosts() -> set[str]:
            return {worker["host"] for worker in workers(batches) if worker["tasks"]}

        reading = digest.read(batches)
        while len(hosts()) < 2:
            next(reading)
        before, digest.longest = hosts(), 0.0
        nodes.remove(nodes.two[0])
        # What it had is asked of the other node.
        for _ in range(100):
            next(reading)
        new = nodes.add().node_ip_address
        end = time.monotonic() + LONG
        while new not in hosts() and time.monotonic() < end and next(reading, None):
            # Leaves elements for the node that comes.
            time.sleep(0.05)
        after = hosts()
        for _ in reading:
            pass
        replaced = batches.report().as_dict()["workers"]["replaced"]
    equal = digest.text == Digest().all(pipeline(24000))
    return {"equal": equal, "replaced": replaced, "before": sorted(before), "after": sorted(after), "new": new, "stall": digest.longest}


@scene
def an_environment_that_cannot_be_made_is_told(nodes: Nodes) -> Any:
    try:
        Digest().all(on_ray(pipeline(), runtime_env={"conda": "no such environment"}))
    except gm.WorkerError as error:
        return {"said": str(error)}
    return "nothing was raised"


@scene
def actors_that_do_not_come_are_told_of(nodes: Nodes) -> Any:
    said = logging.handlers.QueueHandler(queue.SimpleQueue())
    logging.getLogger("gristmill").addHandler(said)
    digest, usual = Digest(), _driver._LONG
    _driver._LONG = 0.5
    with on_ray(pipeline(), actors=1, resources={"late": 1}) as batches:
        reading = threading.Thread(target=digest.all, args=(batches,))
        reading.start()
        until(lambda: said.queue.qsize() > 0)
        nodes.cluster.add_node(num_cpus=1, resources={"late": 1}, **nodes._common(9))
        reading.join(LONG)
    _driver._LONG = usual
    logging.getLogger("gristmill").removeHandler(said)
    return {"equal": digest.text == Digest().all(pipeline()), "said": [said.queue.get().getMessage() for _ in range(said.queue.qsize())]}


@scene
def a_cluster_that_is_lost_is_told(nodes: Nodes) -> Any:
    import ray

    digest, begun = Digest(), 0.0
    try:
        with on_ray(pipeline(100_000)) as batches:
            for number in digest.read(batches):
                if number == 100:
                    begun = time.monotonic()
                    ray.shutdown()
    except gm.WorkerError as error:
        came = {"said": str(error), "took": time.monotonic() - begun, "again": ray.is_initialized()}
        ray.init(address=nodes.cluster.address, log_to_driver=False)
        return came
    return "nothing was raised"


def left(mark: str) -> list[str]:
    """Processes that Ray has started here, and files of its object stores."""
    found = [str(path) for path in Path("/dev/shm").glob("plasma*")]
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int(process.name) != os.getpid() and mark.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


def main(file: Path) -> None:
    """Runs all scenes."""
    import ray

    folder = Path(tempfile.mkdtemp(prefix="gr"))
    os.environ["RAY_TMPDIR"] = str(folder)
    came: dict[str, Any] = {}
    try:
        nodes = Nodes(folder)
        ray.init(address=nodes.cluster.address, log_to_driver=False)
        for name, run in SCENES.items():
            begun = time.monotonic()
            try:
                came[name] = run(nodes)
            except Exception:
                came[name] = traceback.format_exc()
            print(f"{name}: {time.monotonic() - begun:.1f} s: {came[name]}", file=sys.stderr, flush=True)
        ray.shutdown()
        nodes.cluster.shutdown()
        until(lambda: not left(str(folder)))
        came["left"] = left(str(folder))
    finally:
        shutil.rmtree(folder)
    file.write_text(json.dumps(came))


if __name__ == "__main__":
    if sys.argv[1] == "drive":
        drive(sys.argv[2], Path(sys.argv[3]))
    else:
        main(Path(sys.argv[1]))

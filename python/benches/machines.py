"""Actors on another node of a Ray cluster, beside what Ray itself moves in the same minute.

    python python/benches/machines.py [-r ROUNDS] [NAME ...]

Use an optimised build of the package, and a network without surprises: `unshare -Urn sh -c 'ip link set lo up; "$@"' sh python …`. The
cluster has two nodes on this machine: that of the driver, without cores, and that of the actors. What is compared takes turns, and the
figure is the best of the rounds, the ratio of rates their median. Names:

    rate      blocks of 8 MiB that pass by, beside `ray.get` of blocks that lie ready on the other node
    batches   batches of 5 KB in blocks of 8 MiB, beside one Ray object each
    block     CPU time of the coordinator for a block, and that of the threads that speak with Ray
    idle      memory of an actor that has made a block and waits, beyond that of an actor of Ray's
    first     time from `gm.ray.loader` to the first batch
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import gristmill as gm
import numpy as np
from measure import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Row = tuple[str, dict[str, str]]
MIB = 1 << 20
BLOCK = 8 * MIB
#: Bytes of a batch of the system that pickled batches from node to node, and what it moved: bytes and batches a second.
SMALL, ITS_BYTES, ITS_BATCHES = 5 << 10, 4.11e6, 812
BUDGET = 128 * MIB
TICK = 1 / os.sysconf("SC_CLK_TCK")


class Ready:
    """An actor of Ray's that has blocks ready, and nothing of gristmill."""

    def blocks(self, count: int, size: int) -> Any:
        """References of `count` objects that lie here."""
        import ray

        return [ray.put(np.full(size, n & 255, np.uint8)) for n in range(count)]

    def pid(self) -> int:
        """Its process."""
        return os.getpid()


def on_ray(ds: Any, **options: Any) -> Any:
    """A pass by an actor on the other node."""
    return gm.ray.loader(ds, **{"actors": 1, "cpus_per_actor": 2, "threads": 2, "ram_budget": BUDGET, "block": BLOCK, **options})


def rows_of(folder: Path, size: int) -> gm.IterDataset[Any]:
    """Rows of so many bytes, without end, out of 64 MiB."""
    file = folder / f"{size}.npy"
    if not file.exists():
        np.save(file, np.ones((64 * MIB // size, size), np.uint8))
    return gm.MapDataset.npy(file, field="x").repeat().to_iter_dataset()


def timed(reading: Iterator[Any], warm: int, count: int) -> float:
    """Of `count` things a second, after the first ones."""
    for _ in range(warm):
        next(reading)
    begun = time.perf_counter()
    for _ in range(count):
        next(reading)
    return count / (time.perf_counter() - begun)


def ours(ds: Any, warm: int, count: int, **options: Any) -> float:
    with on_ray(ds, **options) as batches:
        return timed(iter(batches), warm, count)


def rays(actor: Any, count: int, size: int, window: int = BUDGET // BLOCK) -> float:
    """Objects that lie ready, a second; so many are fetched ahead, as many as may be under way to ours."""
    import ray

    refs = ray.get(actor.blocks.remote(count, size))
    begun = time.perf_counter()
    for at in range(count):
        ray.wait(refs[at : at + window], num_returns=1, timeout=0, fetch_local=True)
        ray.get(refs[at])
        refs[at] = None
    return count / (time.perf_counter() - begun)


def rate(folder: Path, actor: Any, rounds: int) -> list[Row]:
    count = 40
    per_block = BLOCK // (64 << 10)
    got = [(ours(rows_of(folder, 64 << 10), 8 * per_block, count * per_block) / per_block, rays(actor, count, BLOCK)) for _ in range(rounds)]
    best, limit = (max(each) * BLOCK / 1e6 for each in zip(*got, strict=True))
    share = median(mine / theirs for mine, theirs in got)
    cells = {"gristmill": f"{best:.0f} MB/s", "Ray": f"{limit:.0f} MB/s", "asked": "≥ 80 %", "ratio": f"{share:.0%}"}
    return [("blocks of 8 MiB", cells)]


def batches(folder: Path, actor: Any, rounds: int) -> list[Row]:
    got = [(ours(rows_of(folder, SMALL), 4000, 40_000), rays(actor, 400, SMALL)) for _ in range(rounds)]
    best, limit = (max(each) for each in zip(*got, strict=True))
    return [
        (
            "batches of 5 KB",
            {"gristmill": f"{best:.0f}/s", "Ray": f"{limit:.0f}/s", "asked": f"≥ {100 * ITS_BATCHES}/s", "ratio": f"{best / ITS_BATCHES:.0f} ×"},
        ),
        (
            "their bytes",
            {
                "gristmill": f"{best * SMALL / 1e6:.0f} MB/s",
                "Ray": f"{limit * SMALL / 1e6:.0f} MB/s",
                "asked": f"≥ {100 * ITS_BYTES / 1e6:.0f} MB/s",
                "ratio": f"{best * SMALL / ITS_BYTES:.0f} ×",
            },
        ),
    ]


def cpu_of_threads() -> dict[str, float]:
    """CPU seconds of the threads of this process, by the name of each."""
    taken: dict[str, float] = {}
    of_python = {str(thread.native_id): thread.name for thread in threading.enumerate() if thread.name != "MainThread"}
    for task in Path("/proc/self/task").iterdir():
        name, _, rest = (task / "stat").read_text().partition("(")[2].rpartition(")")
        name = of_python.get(task.name, name)
        fields = rest.split()
        taken[name] = taken.get(name, 0.0) + (int(fields[11]) + int(fields[12])) * TICK
    return taken


def block(folder: Path, actor: Any, rounds: int) -> list[Row]:
    # Blocks of 64 KiB, so that there are many of them; as they lie, since the coordinator's thread would unpack them, too.
    told = []
    for _ in range(rounds):
        with on_ray(rows_of(folder, SMALL), block="64KiB", ram_budget="16MiB", compress="never") as passing:
            timed(iter(passing), 4000, 1)
            begun, tasks, cpu = time.perf_counter(), passed(passing), cpu_of_threads()
            while time.perf_counter() - begun < 3:
                next(passing)
            after, count = cpu_of_threads(), passed(passing) - tasks
            took = {name: (after[name] - cpu.get(name, 0.0)) / count for name in after}
        told.append((took.get("gristmill-worke", 0.0), took.get("gristmill-ray", 0.0), count))
    coordinator, driver = min(each[0] for each in told), min(each[1] for each in told)
    return [
        ("a block, coordinator", {"gristmill": f"{coordinator * 1e6:.0f} µs", "asked": "< 50 µs"}),
        ("a block, threads that speak with Ray", {"gristmill": f"{driver * 1e6:.0f} µs"}),
        ("blocks in 3 s", {"gristmill": f"{max(each[2] for each in told)}"}),
    ]


def passed(batches: Any) -> int:
    """Blocks that came."""
    return sum(worker["tasks"] for worker in batches.report().as_dict()["workers"]["workers"])


def own(pid: int) -> float:
    """Memory of a process that no other has, in MiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private")) / 1024


def idle(folder: Path, actor: Any, rounds: int) -> list[Row]:
    import ray

    # A new one, which has made nothing.
    fresh = ray.remote(Ready).options(num_cpus=1).remote()
    bare = min(own(ray.get(fresh.pid.remote())) for _ in range(rounds))
    told = {}
    numbers = gm.MapDataset.range(64).map(lambda x: np.full(64 << 10, x, np.uint8)).to_iter_dataset()
    np.save(folder / "few.npy", np.ones((64, 64 << 10), np.uint8))
    few = gm.MapDataset.npy(folder / "few.npy", field="x").to_iter_dataset()
    for name, ds in (("native stages", few), ("Python functions", numbers)):
        with on_ray(ds) as passing:
            for _ in passing:
                pass
            time.sleep(1)
            pid = passing.report().as_dict()["workers"]["workers"][0]["pid"]
            told[name] = own(pid)
    return [
        (f"an idle actor, {name}", {"gristmill": f"{here:.0f} MiB", "Ray": f"{bare:.0f} MiB", "asked": "< 60 MiB more", "ratio": f"{here - bare:.0f} MiB more"})
        for name, here in told.items()
    ]


def first(folder: Path, actor: Any, rounds: int) -> list[Row]:
    told = []
    for _ in range(rounds):
        begun = time.perf_counter()
        with on_ray(gm.MapDataset.range(10_000).map(lambda x: {"x": x}).to_iter_dataset().batch(64)) as passing:
            next(passing)
            told.append(time.perf_counter() - begun)
    return [("the first batch", {"gristmill": f"{min(told):.2f} s", "asked": "< 3 s"})]


PARTS: dict[str, Callable[[Path, Any, int], list[Row]]] = {
    "rate": rate, "batches": batches, "block": block, "idle": idle, "first": first,
}  # fmt: skip


def main() -> None:
    import ray
    from ray.cluster_utils import Cluster

    arguments = argparse.ArgumentParser(description="Actors on another node, beside Ray itself.")
    arguments.add_argument("-r", "--rounds", type=int, default=3)
    arguments.add_argument("names", nargs="*", metavar="NAME", choices=[*PARTS, []])
    asked = arguments.parse_args()
    ray_folder = tempfile.TemporaryDirectory(prefix="gr", ignore_cleanup_errors=True)
    os.environ["RAY_TMPDIR"] = ray_folder.name
    common = {"object_store_memory": 2048 * MIB}
    cluster: Any = Cluster(
        initialize_head=True, head_node_args={**common, "num_cpus": 0, "node_ip_address": "127.0.0.1", "include_dashboard": False}
    )
    cluster.add_node(**common, num_cpus=4, node_ip_address="127.0.0.2")
    ray.init(address=cluster.address, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        actor = ray.remote(Ready).options(num_cpus=1).remote()
        ray.get(actor.pid.remote())
        rows = [row for name in asked.names or PARTS for row in PARTS[name](Path(folder), actor, asked.rounds)]
    print(table(("figure", "gristmill", "Ray", "ratio", "asked"), rows))
    ray.shutdown()
    cluster.shutdown()
    ray_folder.cleanup()


if __name__ == "__main__":
    main()

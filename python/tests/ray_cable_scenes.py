"""Two machines with a cable between them, as network namespaces: writes what came of each scene to a file, as JSON.

    python ray_cable_scenes.py FILE                  lays cables, starts Ray on both ends, and runs all scenes
    python ray_cable_scenes.py drive FILE FOLDER     the driver, on the first machine

It wants to be root of namespaces of its own for networks, mounts and processes: `unshare -Urnmpf --mount-proc`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gristmill as gm
import numpy as np
from long_link import LongLink, tap
from ray_cluster_scenes import LONG, Digest, left, noted, until, workers

if TYPE_CHECKING:
    from collections.abc import Callable

HERE, THERE = "10.77.0.1", "10.77.0.2"
#: Seconds that the cable is cut.
CUT = 10
SCENES: dict[str, Callable[[Path], Any]] = {}


def scene(run: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """Notes a scene under its name."""
    SCENES[run.__name__] = run
    return run


def tokens(x: int) -> dict[str, Any]:
    """Ids of a vocabulary of 32,000: 0 to 16 KiB."""
    return {"x": np.arange(x * 37 % 2000, dtype=np.int64) * (x + 7) % 31991, "at": x}


def pipeline() -> gm.IterDataset[Any]:
    """More than is read of it."""
    ds = gm.MapDataset.range(1_000_000).shuffle(seed=3).map(tokens)
    return ds.to_iter_dataset().window_shuffle(window_size=50, seed=4).batch(8, batch_fn=list)


def on_ray(**options: Any) -> Any:
    """A pass by actors."""
    return gm.ray.loader(pipeline(), **{"actors": 2, "ram_budget": "16MiB", "block": "256KiB", **options})


def read(batches: Any, goes_on: Callable[[int], bool]) -> dict[str, Any]:
    """Reads as long as it is to go on, and compares."""
    digest, begun = Digest(), time.monotonic()
    with batches:
        for number in digest.read(batches):
            if not goes_on(number):
                break
        took = time.monotonic() - begun
        hedged, hosts = noted(batches, "ranges asked of another worker"), [worker["host"] for worker in workers(batches)]
        told = batches.report().as_dict()["workers"]
    equal = digest.text == Digest().all(pipeline(), digest.batches)
    rate, links = told["handed_over_bytes"] / took, told.get("links", [])
    came = {"equal": equal, "batches": digest.batches, "stall": digest.longest, "hedged": hedged, "hosts": hosts}
    return {**came, "rate": rate, "links": links}


@scene
def the_cable_is_cut(folder: Path) -> Any:
    mended = folder / "mended"
    came: dict[str, Any] = {}
    reading = threading.Barrier(3)

    def goes_on(name: str) -> Callable[[int], bool]:
        last: list[int] = []

        def so(number: int) -> bool:
            if number == 50:
                reading.wait(LONG)
            # So slow that the pass outlives the cut.
            time.sleep(0.01)
            if mended.exists() and not last:
                last.append(number + 200)
            return not last or number < last[0]

        return so

    def one(name: str, **options: Any) -> None:
        try:
            came[name] = read(on_ray(**options), goes_on(name))
        except Exception:
            came[name] = traceback.format_exc()

    asked: dict[str, dict[str, Any]] = {"both": {"each": 1}, "there": {"there": 1}}
    passes = [threading.Thread(target=one, args=(name,), kwargs={"resources": at}) for name, at in asked.items()]
    for thread in passes:
        thread.start()
    reading.wait(LONG)
    (folder / "cut").touch()
    for thread in passes:
        thread.join(3 * LONG)
    return came


@scene
def the_link_is_slow(folder: Path) -> Any:
    return changed(folder, "slow", 1000)


@scene
def the_link_is_long_and_loses_packets(folder: Path) -> Any:
    # At 1 % of loss and 40 ms, TCP brings about a megabyte a second.
    return changed(folder, "lossy", 300)


def changed(folder: Path, how: str, count: int) -> Any:
    """Reads so many batches over a link that was changed."""
    (folder / how).touch()
    until((folder / f"{how} done").exists)
    told = (folder / f"{how} done").read_text()
    return told or read(on_ray(resources={"there": 1}), lambda number: number < count)


def drive(file: Path, folder: Path) -> None:
    """Runs all scenes."""
    import ray

    ray.init(address=f"{HERE}:6379", log_to_driver=False)
    came: dict[str, Any] = {}
    for name, run in SCENES.items():
        begun = time.monotonic()
        try:
            came[name] = run(folder)
        except Exception:
            came[name] = traceback.format_exc()
        print(f"{name}: {time.monotonic() - begun:.1f} s: {came[name]}", file=sys.stderr, flush=True)
    ray.shutdown()
    file.write_text(json.dumps(came))


def do(*command: str) -> None:
    """Runs a command that must end well."""
    subprocess.run(command, check=True, timeout=60, stdout=subprocess.DEVNULL)


def lay_cables() -> None:
    """A bridge, and a cable from it to each machine."""
    do("mount", "-t", "tmpfs", "tmpfs", "/run")
    do("ip", "link", "add", "bridge", "type", "bridge")
    do("ip", "link", "set", "bridge", "up")
    for name, address in (("here", HERE), ("there", THERE)):
        do("ip", "netns", "add", name)
        do("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        do("ip", "link", "set", name, "master", "bridge", "up")
        for interface in ("lo", "eth0"):
            do("ip", "-n", name, "link", "set", interface, "up")
        do("ip", "-n", name, "address", "add", f"{address}/24", "dev", "eth0")


def start(name: str, address: str, folder: Path, resources: dict[str, int], *options: str) -> None:
    """Starts Ray on a machine."""
    ray = [sys.executable, "-m", "ray.scripts.scripts", "start", f"--node-ip-address={address}", f"--temp-dir={folder}/{name}"]
    has = ["--num-cpus=3", f"--object-store-memory={96 << 20}", f"--resources={json.dumps(resources)}"]
    do("ip", "netns", "exec", name, *ray, *has, "--disable-usage-stats", *options)


#: Changes of the link, by the name of the file that asks for them.
LINKS = {
    "slow": ["tbf", "rate", "200mbit", "burst", "32kbit", "latency", "400ms"],
    "lossy": ["netem", "delay", "40ms", "loss", "1%", "rate", "200mbit"],
}


def tend(folder: Path) -> None:
    """Does to the cable what files ask for."""
    if (folder / "cut").exists():
        (folder / "cut").unlink()
        do("ip", "link", "set", "there", "down")
        # How long the link is down.
        time.sleep(CUT)
        do("ip", "link", "set", "there", "up")
        (folder / "mended").touch()
    for how, discipline in LINKS.items():
        if (folder / how).exists():
            (folder / how).unlink()
            subprocess.run(["tc", "-n", "there", "qdisc", "del", "dev", "eth0", "root"], check=False, capture_output=True)
            command = ["tc", "-n", "there", "qdisc", "add", "dev", "eth0", "root", *discipline]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            told = done.stderr
            if how == "lossy" and told:
                told = lengthen(told)
            (folder / f"{how} done").write_text(told)


def lengthen(why: str) -> str:
    """Does by hand what the kernel cannot: puts a long link between the bridge and the cable. Returns why that cannot be either."""
    try:
        near, far = tap("near"), tap("far")
    except OSError as error:
        return f"{why.strip()}; /dev/net/tun: {error}"
    do("ip", "link", "add", "remote", "type", "bridge")
    do("ip", "link", "set", "remote", "up")
    for interface, bridge in (("near", "bridge"), ("far", "remote"), ("there", "remote")):
        do("ip", "link", "set", interface, "master", bridge, "up")
    LongLink(near, far, delay=0.04, loss=0.01, bytes_per_s=200e6 / 8).start()
    return ""


def main(file: Path) -> None:
    """Lays cables, and runs all scenes."""
    folder = Path(tempfile.mkdtemp(prefix="gr"))
    try:
        lay_cables()
        start("here", HERE, folder, {"each": 1}, "--head", "--port=6379", "--include-dashboard=false")
        start("there", THERE, folder, {"each": 1, "there": 2}, f"--address={HERE}:6379")
        driver = subprocess.Popen(["ip", "netns", "exec", "here", sys.executable, __file__, "drive", str(file), str(folder)])
        while driver.poll() is None:
            tend(folder)
            # Looks again: the driver asks by files.
            time.sleep(0.02)
        if driver.returncode:
            sys.exit(driver.returncode)
        stop = [sys.executable, "-m", "ray.scripts.scripts", "stop", "--force"]
        subprocess.run(stop, check=False, capture_output=True, timeout=60)
        until(lambda: not left(str(folder)))
        came = json.loads(file.read_text())
        file.write_text(json.dumps({**came, "left": left(str(folder))}))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    if sys.argv[1] == "drive":
        drive(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        main(Path(sys.argv[1]))

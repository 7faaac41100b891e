"""A job that extracts activations: what it waits for pickle and gzip, and for a sink.

    python python/benches/sink.py [--steps N] [--step SECONDS] [--format FORMAT]

Use an optimised build of the package: `maturin develop --profile dist`. Every step of 5.7 s makes 14 layers of `[4, 512, 896]` `float32`,
102.8 MB, as a residual stream has them. Before, the job pickled them into a gzip file, at Python's default level, and then went on.
Steps are as long as they were, and fewer: what a step does not take for making its values it sleeps.
"""

import argparse
import gzip
import pickle
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import gristmill as gm

LAYERS = 14
SHAPE = (4, 512, 896)
Activations = dict[str, np.ndarray]


def activations(step: int) -> Activations:
    """Channels have scales of their own, a few a mean that is far off; tokens have sizes: heavy tails; deeper layers are larger."""
    rng = np.random.default_rng(step)
    made: Activations = {}
    for layer in range(LAYERS):
        scale = np.exp(0.5 * rng.standard_normal(SHAPE[2], np.float32)) * np.float32(1 + 0.3 * layer)
        mean = 0.2 * rng.standard_normal(SHAPE[2], np.float32)
        mean[7::223] += 40
        size = np.exp(0.4 * rng.standard_normal((*SHAPE[:2], 1), np.float32))
        array = mean + scale * size * rng.standard_normal(SHAPE, np.float32)
        # As JAX hands its arrays out: nobody may write to them.
        array.flags.writeable = False
        made[f"layer_{layer:02}"] = array
    return made


def job(write: Callable[[int, Activations], None], steps: int, seconds: float) -> tuple[float, float]:
    """Seconds in `write` of a step, and of a step."""
    began, writing = time.perf_counter(), 0.0
    for step in range(steps):
        start = time.perf_counter()
        made = activations(step)
        time.sleep(max(0.0, seconds - (time.perf_counter() - start)))
        start = time.perf_counter()
        write(step, made)
        writing += time.perf_counter() - start
    return writing / steps, (time.perf_counter() - began) / steps


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--step", type=float, default=5.7, help="seconds")
    parser.add_argument("--compression", nargs="*", default=["zstd:1", "zstd:3"])
    args = parser.parse_args()

    print(f"{'':34}{'in write':>10}{'of the time':>13}{'MB/step':>10}{'ratio':>8}")

    def told(name: str, times: tuple[float, float], written: float) -> None:
        raw = LAYERS * int(np.prod(SHAPE)) * 4
        writing, step = times
        print(
            f"{name:34}{writing:>8.3f} s{writing / step:>11.2%}  {written / 1e6:>10.1f}{raw / written:>8.3f}", flush=True
        )

    with tempfile.TemporaryDirectory() as temp:
        before = Path(temp) / "pickles"
        before.mkdir()

        def by_gzip(step: int, made: Activations) -> None:
            with gzip.open(before / f"{step}.pkl.gz", "wb") as file:
                pickle.dump(made, file)

        told("pickle and gzip", job(by_gzip, 1, args.step), size(before))
        for compression in args.compression:
            folder = Path(temp) / compression.replace(":", "-")
            sink = gm.sink(folder, "parquet", compression=compression, byte_stream_split=True, group=1)
            times = job(lambda _, made, sink=sink: sink.write(made), args.steps, args.step)
            report = sink.finish().as_dict()
            told(f"sink, parquet, {compression}", times, report["bytes_out"] / args.steps)


if __name__ == "__main__":
    main()

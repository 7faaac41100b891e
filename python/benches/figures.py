"""The figures that the package promises, in one run beside Grain and PyTorch's DataLoader where they are installed.

    python python/benches/figures.py [--grain FOLDER] [--tokenizer tokenizer.json] [-r ROUNDS]

Use an optimised build of the package: `maturin develop --profile dist`. Times are the best of the rounds, rates are medians, and
all take turns. Rates are per second of CPU time, that of all worker processes included; bytes are per second of time, beside
what copying them takes. Programs that are started for a figure are new each time, with nothing imported.
"""

import argparse
import importlib.util
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
from elements import candidates
from hand_over import hand_over
from measure import per_cpu_second, table, told
from text import text

OURS, GRAIN, LOADER = "gristmill", "Grain", "DataLoader"
COLUMNS = ("figure", "asked", OURS, GRAIN, LOADER)
STEP = 100_000

#: Up to the first batch: what is imported, the pipeline, and how it begins.
DATA = {
    OURS: ("import gristmill as gm", "gm.MapDataset.range(1 << 30).shuffle(seed=1)"),
    GRAIN: ("import grain, absl.flags as f; f.FLAGS(['x'])", "grain.MapDataset.range(1 << 30).shuffle(seed=1)"),
}
WORKERS = {
    OURS: ".to_iter_dataset().batch(256).mp_prefetch(num_workers={n})",
    GRAIN: ".to_iter_dataset().batch(256).mp_prefetch(grain.multiprocessing.MultiprocessingOptions(num_workers={n}))",
}
FIRST = """
import time, numpy as np
{imports}
if __name__ == "__main__":
    ds = {data}{function}{workers}
    start = time.perf_counter()
    it = iter(ds)
    next(it)
    print(time.perf_counter() - start)
"""
FIRST_OF_LOADER = """
import time, numpy as np
from torch.utils.data import DataLoader, Dataset
class Numbers(Dataset):
    def __len__(self): return 1 << 20
    def __getitem__(self, x): return {element}
start = time.perf_counter()
it = iter(DataLoader(Numbers(), batch_size=256, num_workers={n}))
next(it)
print(time.perf_counter() - start)
"""
IMPORT = "import numpy, time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"

#: What is asked in milliseconds, the function, how the DataLoader spells it, and worker processes.
STARTS: dict[str, tuple[int | None, str, str, int | None]] = {
    "in process": (10, "", "x", 0),
    "a native worker": (50, "", "x", None),
    "a Python worker": (300, ".map(lambda x: x + 1)", "x + 1", 1),
    "2 Python workers": (300, ".map(lambda x: x + 1)", "x + 1", 2),
    "2 with NumPy": (300, ".map(lambda x: np.full(4, x))", "np.full(4, x)", 2),
}

Row = tuple[str, dict[str, str]]


class Figures:
    """Who is there to be measured, and how often."""

    def __init__(self, grain: str | None, rounds: int) -> None:
        self.paths = [grain] if grain else []
        sys.path[:0] = self.paths
        self.rounds = rounds
        modules = {OURS: "gristmill", GRAIN: "grain", LOADER: "torch"}
        self.modules = {who: name for who, name in modules.items() if importlib.util.find_spec(name)}

    def milliseconds(self, name: str, asked: int | None, programs: dict[str, str]) -> Row:
        """The best of several runs of each program."""
        cells = {"asked": f"< {asked} ms" if asked else "–"}
        for who in self.modules.keys() & programs.keys():
            times = [told(programs[who], self.paths) for _ in range(self.rounds)]
            known = [time for time in times if time is not None]
            cells[who] = f"{1e3 * min(known):.1f} ms" if known else "fails"
        return name, cells

    def imports(self) -> Row:
        programs = {who: IMPORT.format(module=module) for who, module in self.modules.items()}
        return self.milliseconds("import, behind NumPy's", 50, programs)

    def starts(self) -> list[Row]:
        rows: list[Row] = []
        for name, (asked, function, element, workers) in STARTS.items():
            programs: dict[str, str] = {}
            for who, (imports, data) in DATA.items():
                # Grain knows no native workers: its stages are Python.
                n = workers if who == OURS else max(1, workers or 1)
                chain = WORKERS[who].format(n=n) if workers != 0 else ".to_iter_dataset().batch(256)"
                programs[who] = FIRST.format(imports=imports, data=data, function=function, workers=chain)
            programs[LOADER] = FIRST_OF_LOADER.format(element=element, n=1 if workers is None else workers)
            rows.append(self.milliseconds(f"first batch, {name}", asked, programs))
        return rows

    def rates(self, elements: int) -> list[Row]:
        """Elements per second of CPU time."""
        ours = {"range.shuffle.batch": 50, "range.map.batch": 5, "range.shuffle.map.to_iter.batch": 5}
        theirs = {"range.shuffle.batch": {GRAIN: "grain: range.shuffle.batch"}}
        theirs["range.map.batch"] = {GRAIN: "grain: range.map.batch", LOADER: "DataLoader: map, batch"}
        runs, measured = candidates(), dict[str, list[float]]()
        wanted = {"a bare loop", *ours, *(name for names in theirs.values() for name in names.values())} & runs.keys()
        for _ in range(self.rounds):
            for name in wanted:
                measured.setdefault(name, []).append(per_cpu_second(lambda name=name: runs[name](elements)))
        told = {name: f"{statistics.median(rates) / 1e6:.2f} M/s" for name, rates in measured.items()}
        rows: list[Row] = [("elements: a bare loop that calls the function", {OURS: told["a bare loop"]})]
        for name, asked in ours.items():
            cells = {"asked": f"≥ {asked} M/s", OURS: told[name]}
            rows.append((f"elements: {name}", cells | {who: told[n] for who, n in theirs.get(name, {}).items() if n in told}))
        return rows


def batches() -> gm.IterDataset:
    return gm.MapDataset.range(1 << 40).shuffle(seed=1).map(lambda x: x + 1).to_iter_dataset().batch(32)


def packed() -> gm.IterDataset:
    pool = [{"tokens": np.arange(20 + n, dtype=np.int32)} for n in range(97)]
    sequences = gm.MapDataset.range(1 << 40).map(lambda x: pool[x * 31 % 97]).to_iter_dataset()
    return sequences.first_fit_pack(length={"tokens": 128}, num_packing_bins=16).batch(4)


def rich() -> gm.IterDataset:
    """A bit of everything."""
    some = gm.MapDataset.range(10_000).seed(3).shuffle().map(lambda x: {"tokens": np.arange(x % 60 + 1)})
    more = gm.MapDataset.range(10_000, 20_000).seed(4).shuffle().map(lambda x: {"tokens": np.arange(x % 30 + 1)})
    mixed = gm.MapDataset.mix([some, more], [3, 1]).repeat().filter(lambda e: len(e["tokens"]) > 2).to_iter_dataset()
    rows = mixed.window_shuffle(64, seed=5).first_fit_pack(length={"tokens": 128}, num_packing_bins=8)
    return rows.batch(4).mp_prefetch(num_workers=2, ram_budget="1GiB", worker_heap="192MiB")


def resumed(ds: gm.IterDataset, state: dict[str, Any]) -> float:
    """Seconds from the beginning to the first batch behind `state`."""
    start = time.perf_counter()
    with ds.loader() as it:
        it.set_state(state)
        next(it)
        return time.perf_counter() - start


def states(rounds: int, steps: int) -> list[Row]:
    """How large a state is, and how long it takes to go on from one."""
    rows: list[Row] = []
    with rich().loader() as it:
        list(islice(it, 200))
        size = len(json.dumps(it.get_state()))
    rows.append(("state: mix, filter, shuffles, pack, 2 workers", {"asked": "< 1024 B", OURS: f"{size} B"}))
    pipelines: dict[str, Callable[[], gm.IterDataset]] = {"shuffle, map, batch": batches, "packed by first fit": packed}
    for name, make in pipelines.items():
        with make().loader() as it:
            for _ in islice(it, steps):
                pass
            state = it.get_state()
        best = min(resumed(make(), state) for _ in range(rounds))
        rows.append((f"resume at step {steps}: {name}", {"asked": "< 10 ms", OURS: f"{1e3 * best:.2f} ms"}))
    return rows


def main() -> None:
    """Measures and prints."""
    parser: Any = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--grain", help="the folder in which Grain is installed, if it is none of the interpreter's own")
    parser.add_argument("--tokenizer")
    parser.add_argument("--mb", type=int, default=64)
    parser.add_argument("-n", "--elements", type=int, default=1_000_000)
    parser.add_argument("-s", "--steps", type=int, default=STEP)
    parser.add_argument("-r", "--rounds", type=int, default=5)
    options = parser.parse_args()
    figures = Figures(options.grain, options.rounds)
    rows = [figures.imports(), *figures.starts(), *states(options.rounds, options.steps)]
    rows += figures.rates(options.elements)
    with tempfile.TemporaryDirectory() as folder:
        rows += hand_over(Path(folder), options.rounds, figures.modules.keys())
        if options.tokenizer:
            rows += text(Path(folder), options.tokenizer, options.mb)
    print(table(COLUMNS, rows))
    missing = {GRAIN, LOADER} - figures.modules.keys()
    print("\n".join(f"{who}: not installed" for who in sorted(missing)))


if __name__ == "__main__":
    main()

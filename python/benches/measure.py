"""What the benches measure with: times, CPU time of a tree of processes, programs of their own, and a table."""

import os
import resource
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence

from gristmill import _gristmill

# Before anything is measured: an unoptimised build has printed figures that were believed.
if not _gristmill.__optimised__:
    sys.exit("this build of gristmill is not optimised, so its figures would say nothing: `maturin develop --profile dist`")


def cpu_seconds() -> float:
    """CPU time of this process, and of those below it that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def per_cpu_second(work: Callable[[], float]) -> float:
    """What `work` says that it has done, for each second of CPU time that all its processes took."""
    before = cpu_seconds()
    return work() / (cpu_seconds() - before)


def told(program: str, paths: Sequence[str] = ()) -> float | None:
    """The number that a new interpreter prints at the end of `program`; `None` if it fails."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
        return None
    return float(done.stdout.split()[-1])


def table(columns: Sequence[str], rows: Sequence[tuple[str, Mapping[str, str]]]) -> str:
    """Rows of text under `columns`, the first of which is their name."""
    lines = [list(columns), *([name, *(cells.get(column, "–") for column in columns[1:])] for name, cells in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns))]
    shown = [
        line[0].ljust(widths[0]) + "".join(f"  {cell:>{width}}" for cell, width in zip(line[1:], widths[1:], strict=True))
        for line in lines
    ]
    return "\n".join([shown[0], "─" * len(shown[0]), *shown[1:]])

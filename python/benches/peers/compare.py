"""Measures gristmill beside its peers, in environments and on data that it makes; `bash benches/peers.sh --help`."""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import table
from environments import OURS, PEERS, REPOSITORY, Environments, Peer

SAMPLE = REPOSITORY.parent / "shared" / "data" / "corpus-sample.jsonl"
TOKENIZER = REPOSITORY / "src" / "demo" / "tokenizer.json"
LIMIT = 900


class Failed(Exception):
    """A run that did not end well, and its last words."""


def run(python: Path, peer: Peer, workload: str, folder: Path, workers: int, check: bool = False) -> dict[str, Any]:
    """One run in a process of its own: its line of JSON."""
    command = [str(python), str(peer.file), workload, str(folder), f"--workers={workers}", *(["--check"] if check else [])]
    # Without a GPU, and without anything that is fetched.
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "HF_DATASETS_CACHE": str(folder / "cache")}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False, env=environment)
    except subprocess.TimeoutExpired:
        raise Failed(f"not done after {LIMIT} s") from None
    lines = done.stdout.splitlines()
    if done.returncode != 0 or not lines:
        raise Failed(([line for line in done.stderr.splitlines() if line.strip()] or [f"exit status {done.returncode}"])[-1][:120])
    told: dict[str, Any] = json.loads(lines[-1])
    return told


class Contest:
    """All that is measured of one workload by one peer."""

    def __init__(self, peer: Peer, workload: str, python: Path, folder: Path) -> None:
        self.peer, self.workload, self.python, self.folder = peer, workload, python, folder
        self.runs: dict[int, list[dict[str, Any]]] = {}
        self.row: dict[str, Any] = {"workload": workload, "peer": peer.name}

    def check(self, workers: int) -> dict[str, Any]:
        return run(self.python, self.peer, self.workload, self.folder, workers, check=True)

    def measure(self, workers: Sequence[int]) -> None:
        """One more run with each of these numbers of workers."""
        for count in workers:
            told = run(self.python, self.peer, self.workload, self.folder, count)
            self.runs.setdefault(count, []).append(told)

    def best(self) -> int:
        """The number of workers with which it is quickest."""
        return max(self.runs, key=lambda count: statistics.median(one["units"] / one["wall_s"] for one in self.runs[count]))

    def close(self, ours: dict[str, Any] | None) -> None:
        """Fills in the row: rates with the best number of workers, and whether what came out is what gristmill made."""
        best = self.best()
        runs = self.runs[best]
        checked = self.check(best)
        self.row |= {"package": runs[0]["package"], "version": runs[0]["version"], "build": runs[0]["build"]}
        self.row |= {"workers": best, "runs": len(runs), "units": runs[0]["units"], "checked": checked}
        for name, seconds in {"per_second": "wall_s", "per_cpu_second": "cpu_s"}.items():
            self.row[name] = statistics.median(one["units"] / max(one[seconds], 0.01) for one in runs)
        self.row["first_batch_s"] = statistics.median(one["first_batch_s"] for one in runs)
        self.row["same"] = said(checked, ours or checked)


def said(checked: dict[str, Any], ours: dict[str, Any]) -> str:
    """How a pass compares with gristmill's."""
    if checked["order"] == ours["order"]:
        return "same, in order"
    if checked["bag"] == ours["bag"]:
        return "same"
    return f"{checked['total']} of {ours['total']}, others" if checked["total"] != ours["total"] else "others"


def contests(environments: Environments, folder: Path, names: Sequence[str]) -> Iterator[Contest]:
    """Each peer's workloads, and gristmill's on the same files; those that cannot be run have their reason."""
    ours: set[str] = set()
    for peer in PEERS:
        if names and peer.name not in names:
            continue
        for workload in peer.workloads:
            if workload not in ours and workload != "records-litdata":
                ours.add(workload)
                yield Contest(OURS, workload, environments.python(OURS), folder)
            contest = Contest(peer, workload, environments.python(peer), folder)
            if reason := environments.missing(peer):
                contest.row["reason"] = f"not installed: {reason}"
            yield contest


def compete(all_of_them: Sequence[Contest], workers: Sequence[int], runs: int) -> None:
    """Runs all in turns, so that whatever else the machine does meets all of them; the first round finds the number of workers."""
    for turn in range(runs):
        for contest in all_of_them:
            if "reason" in contest.row:
                continue
            print(f"round {turn + 1} of {runs}: {contest.peer.name}, {contest.workload}", file=sys.stderr)
            try:
                contest.measure(workers if turn == 0 else [contest.best()])
            except Failed as failed:
                contest.row["reason"] = f"failed: {failed}"
    ours: dict[str, dict[str, Any]] = {}
    for contest in sorted(all_of_them, key=lambda one: one.peer is not OURS):
        if "reason" not in contest.row:
            try:
                # Records are the same in all formats, of which gristmill does not read LitData's.
                alike = [told for name, told in ours.items() if name.split("-")[0] == contest.workload.split("-")[0]]
                contest.close(ours.get(contest.workload) or (alike or [None])[0])
            except Failed as failed:
                contest.row["reason"] = f"failed: {failed}"
                continue
            if contest.peer is OURS:
                ours[contest.workload] = contest.row["checked"]


def machine() -> str:
    """The processor, and what there is of it."""
    models = [line.partition(":")[2].strip() for line in _cpuinfo() if line.startswith("model name")]
    return f"{models[0] if models else platform.machine()}, {os.cpu_count()} CPUs"


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def load() -> str:
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def commit() -> str:
    """The commit of this repository."""
    told = subprocess.run(["git", "-C", str(REPOSITORY), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return told.stdout.strip() or "an unknown commit"


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benches/peers.sh", description=__doc__)
    parser.add_argument("--dir", type=Path, default=REPOSITORY / "target" / "peers", help="where environments and data are kept")
    parser.add_argument("--corpus", type=Path, default=SAMPLE if SAMPLE.exists() else None, help="JSON Lines with a column `text`")
    parser.add_argument("--tokenizer", type=Path, default=TOKENIZER)
    parser.add_argument("--mb", type=float, default=16, help="megabytes of text at most; nothing is repeated")
    parser.add_argument("--records", type=int, default=40_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--workers", default="0,1,2", help="numbers of workers that are tried")
    parser.add_argument("--peers", default="", help="names of those to measure, all by default: " + ", ".join(peer.name for peer in PEERS))
    parser.add_argument("--python", action="append", default=[], metavar="ENVIRONMENT=PATH", help="an interpreter that has the packages already")
    parser.add_argument("--wheel", type=Path, help="gristmill's wheel; by default it is built from this repository")
    parser.add_argument("--json", type=Path, metavar="FILE", help="everything that was measured")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    parser.add_argument("--page", type=Path, metavar="FILE", help="a page whose table is renewed between its marks")
    return parser.parse_args()


def main() -> None:
    options = parsed()
    given = {name: Path(path) for name, _, path in (one.partition("=") for one in options.python)}
    environments = Environments(options.dir / "environments", given, options.wheel)
    if reason := environments.missing(OURS):
        sys.exit(f"gristmill cannot be installed: {reason}")
    data = options.dir / "data"
    making = [str(environments.python(OURS)), str(Path(__file__).with_name("data.py")), str(data), f"--tokenizer={options.tokenizer}"]
    making += [f"--mb={options.mb}", f"--records={options.records}", f"--seed={options.seed}"]
    names = [name for name in options.peers.split(",") if name]
    if names and not any(peer.records for peer in PEERS if peer.name in names):
        making.append("--unseen")
    subprocess.run([*making, *([f"--corpus={options.corpus}"] if options.corpus else [])], check=True)
    about: dict[str, Any] = {"date": date.today().isoformat(), "machine": machine(), "load": load(), "runs": options.runs}
    size = sum(file.stat().st_size for part in ("warm", "rest") for file in data.glob(f"{part}/*.jsonl")) / 1e6
    kind = f"of {options.corpus.name}" if options.corpus else "that is made up"
    about |= {"python": f"Python {platform.python_version()}", "text": f"{size:.1f} MB of text {kind}"}
    about |= {"records": options.records, "seed": options.seed, "commit": commit()}
    found = list(contests(environments, data, names))
    compete(found, [int(count) for count in options.workers.split(",")], options.runs)
    about["load_at_end"] = load()
    rows = [contest.row for contest in found]
    print(table.text(rows))
    if any(row.get("build") == "not optimised" for row in rows):
        print("\nthis build of gristmill is not optimised, so these figures say nothing", file=sys.stderr)
        if options.page:
            sys.exit("and no page is written")
    if options.json:
        options.json.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")
    if options.markdown:
        options.markdown.write_text(table.markdown(rows, about))
    if options.page:
        table.put(options.page, table.markdown(rows, about))


if __name__ == "__main__":
    main()

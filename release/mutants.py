"""Plants faults in a copy of the tree and counts how many of them the tests find.

`release/mutants.toml` lists the faults. All of them are compiled into one build, and an environment variable switches one of them on at a time; the
repository's own source has none of them.

    bash release/mutants.sh              # all: fails if fewer are killed than the table requires
    bash release/mutants.sh 12 13        # these: fails if one survives
    bash release/mutants.sh --check      # builds nothing: fails if the table does not fit the tree
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "release" / "mutants.toml"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()
VARIABLE = "GRISTMILL_MUTANT"
# Stands in `after` for the condition that this mutant is switched on.
ON = "{on}"
SWITCH = f"""//! The mutant that is switched on.

use std::sync::LazyLock;

pub(crate) fn on(number: u32) -> bool {{
    static ON: LazyLock<Option<u32>> = LazyLock::new(|| std::env::var("{VARIABLE}").ok()?.parse().ok());
    *ON == Some(number)
}}
"""
# The exit codes of nextest for tests that failed, and for a filter that matches no test.
FAILED, NO_TESTS = 100, 4


@dataclass(frozen=True)
class Mutant:
    number: int
    file: str
    about: str
    before: str
    after: str
    tests: list[str]


def read() -> tuple[list[Mutant], int, list[str]]:
    """The mutants, the number of them that tests must kill, and the arguments of cargo that select features and test programs."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    mutants = [Mutant(**{"after": "", **mutant}) for mutant in table["mutant"]]
    return mutants, table["least_killed"], table["cargo"]


def files() -> dict[str, bytes]:
    """The tree as it is, by path: what git tracks, and what it would."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    return {name: path.read_bytes() for name in listed if name and (path := ROOT / name).is_file()}


def plant(tree: dict[str, bytes], mutants: Iterable[Mutant]) -> list[str]:
    """Plants all mutants in `tree`; returns the rows of the table that do not fit it."""
    wrong = []
    texts: dict[str, str] = {}
    for mutant in mutants:
        if mutant.file not in tree:
            wrong.append(f"mutant {mutant.number}: there is no {mutant.file}")
            continue
        original = tree[mutant.file].decode()
        text = texts.setdefault(mutant.file, original)
        if (found := original.count(mutant.before)) != 1:
            wrong.append(f"mutant {mutant.number}: {mutant.file} has its text {found} times, not once: {mutant.before}")
        elif text.count(mutant.before) != 1:
            wrong.append(f"mutant {mutant.number}: it overlaps another mutant in {mutant.file}")
        elif ON not in mutant.after or not mutant.tests:
            wrong.append(f"mutant {mutant.number}: it has no {ON} or no tests")
        else:
            switch = f"crate::mutants::on({mutant.number})"
            texts[mutant.file] = text.replace(mutant.before, mutant.after.replace(ON, switch))
    wrong += [f"mutant {number}: there are {n} of this number" for number, n in Counter(m.number for m in mutants).items() if n > 1]
    tree |= {name: text.encode() for name, text in texts.items()}
    tree["src/mutants.rs"] = SWITCH.encode()
    tree["src/lib.rs"] = tree["src/lib.rs"] + b"\nmod mutants;\n"
    return wrong


def write(tree: dict[str, bytes], folder: Path) -> None:
    """Makes `folder` this tree. Files that are right stay untouched, so that cargo builds only what has changed."""
    for old in [path for path in folder.rglob("*") if path.is_file() and str(path.relative_to(folder)) not in tree]:
        old.unlink()
    for name, content in tree.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


class Tests:
    """The test programs of a copy of the tree, under nextest if it is installed."""

    def __init__(self, folder: Path, cargo: list[str], limit: float) -> None:
        self.folder, self.cargo, self.limit = folder, cargo, limit
        self.is_nextest = shutil.which("cargo-nextest") is not None

    def run(self, names: list[str], mutant: int | None) -> int | None:
        """Runs the tests whose names contain one of `names`; returns the exit code, or nothing if they did not end in time."""
        # A random case that fails is enough: the smallest one is of no interest here.
        env = {**os.environ, "CARGO_TARGET_DIR": str(TARGET), "PROPTEST_MAX_SHRINK_ITERS": "0"}
        env.pop(VARIABLE, None)
        if mutant is not None:
            env[VARIABLE] = str(mutant)
        if self.is_nextest:
            filters = " + ".join(f"test({name})" for name in names)
            command = ["cargo", "nextest", "run", *self.cargo, "--no-tests", "fail", "--status-level", "fail", "-E", filters]
        else:
            command = ["cargo", "test", *self.cargo, "--", *names]
        with (TARGET / "mutants" / f"{mutant or 'none'}.log").open("wb") as log:
            process = subprocess.Popen(
                command, cwd=self.folder, env=env, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
            try:
                return process.wait(self.limit)
            except subprocess.TimeoutExpired:
                # nextest ends the tests that it runs, whose processes are in groups of their own.
                os.killpg(process.pid, signal.SIGTERM)
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                return None

    def build(self) -> None:
        kind = ["nextest", "run"] if self.is_nextest else ["test"]
        env = {**os.environ, "CARGO_TARGET_DIR": str(TARGET)}
        subprocess.run(["cargo", *kind, *self.cargo, "--no-run"], cwd=self.folder, env=env, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("numbers", nargs="*", type=int, help="mutants to run; all if none is given")
    parser.add_argument("--check", action="store_true", help="check the table against the tree, and build nothing")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for the tests of one mutant; 300 if not given")
    asked = parser.parse_args()
    mutants, least, cargo = read()
    tree = files()
    if wrong := plant(tree, mutants):
        print("\n".join(wrong), file=sys.stderr)
        return 1
    if unknown := set(asked.numbers) - {mutant.number for mutant in mutants}:
        parser.error(f"there are no mutants {sorted(unknown)}")
    if asked.check:
        print(f"{len(mutants)} mutants fit the tree")
        return 0
    chosen = [mutant for mutant in mutants if not asked.numbers or mutant.number in asked.numbers]
    folder = TARGET / "mutants" / "tree"
    write(tree, folder)
    tests = Tests(folder, cargo, asked.limit)
    tests.build()
    # Without a mutant all of these tests pass: else a failure shows nothing.
    names = sorted({name for mutant in chosen for name in mutant.tests})
    tests.limit = 10 * asked.limit
    if (code := tests.run(names, None)) != 0:
        print(f"without a mutant the tests end with {code}: see {TARGET / 'mutants' / 'none.log'}", file=sys.stderr)
        return 2
    tests.limit = asked.limit
    survivors = []
    for mutant in chosen:
        begun = time.monotonic()
        code = tests.run(mutant.tests, mutant.number)
        if tests.is_nextest and code not in (0, None, FAILED):
            why = "no test has such a name" if code == NO_TESTS else f"nextest ended with {code}"
            print(f"mutant {mutant.number}: {why}", file=sys.stderr)
            return 2
        if code == 0:
            survivors.append(mutant.number)
        outcome = "SURVIVED" if code == 0 else "killed, by its time limit" if code is None else "killed"
        print(f"{mutant.number:3} {outcome} in {time.monotonic() - begun:.0f} s: {mutant.about} ({mutant.file})", flush=True)
    killed = len(chosen) - len(survivors)
    print(f"{killed} of {len(chosen)} mutants are killed; survivors: {survivors or 'none'}")
    return int(killed < (len(chosen) if asked.numbers else least))


if __name__ == "__main__":
    sys.exit(main())

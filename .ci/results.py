"""Reads the results of test runners (JUnit files of cargo-nextest and pytest) and holds them to lists.

usage: .ci/results.py [--skips LIST] [--flakes LIST] FILE...
       .ci/results.py --twice LIST

--skips LIST   fails if a test skipped that LIST does not permit. A line of LIST is a pattern of test names, ` # `, and a reason.
--flakes LIST  appends the name of each test that passed only when it was repeated.
--twice LIST   fails if a name stands in LIST twice.
"""

import argparse
import datetime
import fnmatch
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from pathlib import Path


def cases(files: list[Path]) -> Iterator[tuple[str, ElementTree.Element]]:
    for file in files:
        for case in ElementTree.parse(file).iter("testcase"):
            yield f"{case.get('classname')}::{case.get('name')}", case


def skip(case: ElementTree.Element) -> str | None:
    """The reason of a test that skipped: pytest's element, or a line of output that begins with `skipped: `."""
    skipped = case.find("skipped")
    if skipped is not None:
        return " ".join((skipped.get("message") or "").split())
    for output in (*case.iter("system-out"), *case.iter("system-err")):
        for line in (output.text or "").splitlines():
            if line.startswith("skipped: "):
                return line.removeprefix("skipped: ")
    return None


def permitted(path: Path) -> list[str]:
    lines = (line.strip() for line in path.read_text().splitlines())
    patterns = []
    for line in lines:
        if line and not line.startswith("#"):
            pattern, reason, why = line.partition(" # ")
            if not why:
                sys.exit(f"{path}: no reason after ` # `: {line}")
            patterns.append(pattern.strip())
    return patterns


def main() -> int:
    arguments = argparse.ArgumentParser(usage=__doc__)
    arguments.add_argument("--skips", type=Path)
    arguments.add_argument("--flakes", type=Path)
    arguments.add_argument("--twice", type=Path)
    arguments.add_argument("files", nargs="*", type=Path)
    given = arguments.parse_args()

    failed = False
    if given.skips:
        patterns = permitted(given.skips)
        skipped = [(name, reason) for name, case in cases(given.files) if (reason := skip(case)) is not None]
        for name, reason in skipped:
            if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
                print(f"not permitted to skip by {given.skips}: {name}: {reason}")
                failed = True
        print(f"{len(skipped)} tests skipped")
    if given.flakes:
        flaky = [name for name, case in cases(given.files) if case.find("flakyFailure") is not None or case.find("flakyError") is not None]
        if flaky:
            given.flakes.parent.mkdir(parents=True, exist_ok=True)
            with given.flakes.open("a") as out:
                for name in flaky:
                    print(f"passed only when it was repeated: {name}")
                    out.write(f"{name}\t{datetime.date.today()}\n")
    if given.twice and given.twice.exists():
        names = Counter(line.split("\t")[0] for line in given.twice.read_text().splitlines() if line)
        for name, count in names.items():
            if count > 1:
                print(f"{given.twice}: {name} failed at first {count} times; mend it, and remove its lines")
                failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

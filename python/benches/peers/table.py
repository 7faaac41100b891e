"""What was measured, as a table for terminals and one for pages: `python table.py MEASURED.json [PAGE]` renews a page's from a file."""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

COLUMNS = ("peer", "version", "workers", "per second", "per CPU second", "gristmill: wall", "CPU", "what came out")
MARKED = re.compile(r"(?<=<!-- peers -->\n).*?(?=<!-- end -->)", re.DOTALL)


def rate(value: float, workload: str) -> str:
    return f"{value / 1e6:.2f} M" if workload in {"tokens", "unseen"} else f"{value / 1e3:.1f} k"


def cells(row: dict[str, Any], ours: dict[str, Any] | None) -> list[str]:
    """A row as text."""
    if "reason" in row:
        return [row["peer"], "", "", row["reason"], "", "", "", ""]
    times = ["", ""]
    if ours is not None and ours is not row and "reason" not in ours:
        times = [f"{ours[key] / row[key]:.1f} ×" for key in ("per_second", "per_cpu_second")]
    rates = [rate(row[key], row["workload"]) for key in ("per_second", "per_cpu_second")]
    return [row["peer"], row["version"], str(row["workers"]), *rates, *times, row["same"]]


def sections(rows: Sequence[dict[str, Any]]) -> list[tuple[str, list[list[str]]]]:
    """The rows of each workload, gristmill first."""
    made = []
    for workload in dict.fromkeys(row["workload"] for row in rows):
        mine = [row for row in rows if row["workload"] == workload]
        ours = next((row for row in mine if row["peer"] == "gristmill"), None)
        mine.sort(key=lambda row: (row["peer"] != "gristmill", "reason" in row, -row.get("per_second", 0.0)))
        made.append((workload, [cells(row, ours) for row in mine]))
    return made


def text(rows: Sequence[dict[str, Any]]) -> str:
    lines: list[str] = []
    for workload, body in sections(rows):
        # A reason is no cell that others are aligned with.
        whole = [line for line in [list(COLUMNS), *body] if line[1]]
        widths = [max(len(line[at]) for line in whole) for at in range(len(COLUMNS))]
        names = max(len(line[0]) for line in [list(COLUMNS), *body])
        widths[0] = names
        lines += ["", workload]
        for line in [list(COLUMNS), *body]:
            if line[1]:
                lines.append(line[0].ljust(names) + "  " + "  ".join(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True)))
            else:
                lines.append(f"{line[0].ljust(names)}  {line[3]}")
    return "\n".join(lines[1:])


def markdown(rows: Sequence[dict[str, Any]], about: dict[str, Any]) -> str:
    lines = [
        f"{about['date']}, {about['machine']}; {about['python']}, gristmill at {about['commit']}; medians of {about['runs']} interleaved runs; load "
        f"{about['load']} at the start, {about['load_at_end']} at the end; {about['text']}, {about['records']} records, seed {about['seed']}."
    ]
    for workload, body in sections(rows):
        lines += ["", f"**{workload}**", "", "| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
        lines += ["| " + " | ".join(line) + " |" for line in body]
    return "\n".join(lines) + "\n"


def put(page: Path, table: str) -> None:
    """Puts the table in the place of the one that the page has, between its marks."""
    before = page.read_text()
    if not MARKED.search(before):
        raise SystemExit(f"{page} has no place for the table: <!-- peers --> and <!-- end -->")
    page.write_text(MARKED.sub(lambda _: table, before))


def main() -> None:
    about = json.loads(Path(sys.argv[1]).read_text())
    if len(sys.argv) > 2:
        put(Path(sys.argv[2]), markdown(about["rows"], about))
    print(text(about["rows"]))


if __name__ == "__main__":
    main()

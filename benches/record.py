"""The record of the benches: rows of `benches/record/*.tsv`, and the tables of `benches/README.md`, which are written from them.

    python benches/record.py --write
    python benches/record.py --check
    python benches/record.py add FILE --table TABLE --figure FIGURE [--how HOW] --value VALUE [--limit LIMIT] [--notes NOTES] …

`--write` renews the tables, `--check` fails where one is stale. `add` puts one figure in the place of the row of the same name, or behind
the last row of its table, fills in machine, date and commit, and renews the tables. README says what the columns mean.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields, replace
from datetime import date
from itertools import groupby
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
RECORD = FOLDER / "record"
PAGE = FOLDER / "README.md"

# More do not fit on a phone.
COLUMNS = 6

MARKED = re.compile(r"(?<=<!-- rows: )(?P<file>[\w-]+), (?P<table>[^\n]+?) -->\n(?P<text>.*?)(?=<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Row:
    """One figure. All cells are text, an unknown one is empty."""

    table: str
    figure: str
    how: str = ""
    value: str = ""
    unit: str = ""
    asked: str = ""
    against: str = ""
    limit: str = ""
    ratio: str = ""
    notes: str = ""
    machine: str = ""
    date: str = ""
    commit: str = ""
    command: str = ""

    @property
    def share(self) -> str:
        """The ratio of value and limit, computed where the row has none of its own."""
        try:
            times = float(self.value) / float(self.limit)
        except (ValueError, ZeroDivisionError):
            return self.ratio
        if times >= 2:
            return self.ratio or f"{times:.{1 if times < 10 else 0}f} ×"
        return self.ratio or f"{100 * times:.{0 if times >= 0.1 else 1}f} %"

    @property
    def bench(self) -> tuple[str, str]:
        """The command without the names of benches that it picks, and these names."""
        command, _, names = self.command.partition(" -- ")
        return command, names


FIELDS = [field.name for field in fields(Row)]


def read(path: Path) -> list[Row]:
    """The rows of a file, whose first line names the columns."""
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    if head.split("\t") != FIELDS:
        sys.exit(f"{path}: line 1: the columns are {' '.join(FIELDS)}, with tabs between them")
    rows: list[Row] = []
    for number, line in enumerate(lines, 2):
        cells = line.split("\t")
        if len(cells) != len(FIELDS):
            sys.exit(f"{path}: line {number}: {len(cells)} cells, not {len(FIELDS)}")
        rows.append(Row(*cells))
    return rows


def write(path: Path, rows: Iterable[Row]) -> None:
    """Writes a file of rows."""
    lines: list[list[str]] = [FIELDS, *(list(astuple(row)) for row in rows)]
    path.write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")


def unique(texts: Iterable[str]) -> list[str]:
    """Every text once, in the order of the first ones, empty ones left out."""
    return list(dict.fromkeys(filter(None, texts)))


def joined(texts: Iterable[str]) -> str:
    """One cell that holds several."""
    return "; ".join(unique(texts))


def code(text: str) -> str:
    """A command or a name as Markdown shows it."""
    return text and f"`{text}`"


def one_unit(name: str, rows: Sequence[Row]) -> tuple[str, bool]:
    """A heading with the unit of its rows, if they have one in common, and whether they do."""
    units = {row.unit for row in rows}
    unit = units.pop() if len(units) == 1 else ""
    return (f"{name}, {unit}" if unit else name), bool(unit)


def with_unit(value: str, row: Row, *, bare: bool) -> str:
    """A value and its unit, unless the heading has the unit."""
    return value if bare or not value or not row.unit else f"{value} {row.unit}"


def caption(rows: Sequence[Row]) -> tuple[str, list[str]]:
    """How all rows of a table were measured, and for each row how it differs from the others."""
    shared: list[str] = []
    own = [[row.notes] for row in rows]
    commands, names = zip(*(row.bench for row in rows), strict=True)
    if len(set(commands)) == 1:
        same = len(set(names)) == 1
        shared.append(code(commands[0] + (f" -- {names[0] if same else 'NAME'}" if any(names) else "")))
        parts: Sequence[str] = ("",) * len(rows) if same else names
    else:
        parts = [row.command for row in rows]
    machines = {row.machine for row in rows}
    shared.append(f"machine {rows[0].machine}" if len(machines) == 1 and rows[0].machine else "")
    for cells, row, part in zip(own, rows, parts, strict=True):
        cells += [code(part), f"machine {row.machine}" if len(machines) > 1 and row.machine else ""]
    if len({row.notes for row in rows}) == 1:
        shared.append(rows[0].notes)
        own = [cells[1:] for cells in own]
    taken = unique(f"{row.date} {code(row.commit)}".strip() for row in rows)
    return " · ".join(unique([*shared, ", ".join(taken)])), [joined(cells) for cells in own]


def columns(rows: Sequence[Row], notes: Sequence[str]) -> list[list[str]]:
    """The columns of a table, each with its heading: one line for all rows of a figure, one column for each way to measure it."""
    ways = list(dict.fromkeys(row.how for row in rows))
    figures = list(dict.fromkeys(row.figure for row in rows))
    lines = [[(row, note) for row, note in zip(rows, notes, strict=True) if row.figure == figure] for figure in figures]
    found = [["figure", *figures], ["asked", *(joined(row.asked for row, _ in line) for line in lines)]]
    for way in ways:
        head, bare = one_unit(way or "measured", [row for row in rows if row.how == way and row.value])
        column = [head]
        for line in lines:
            cells = [row for row, _ in line if row.how == way]
            value = joined(with_unit(row.value, row, bare=bare) for row in cells)
            shares = ", ".join(filter(None, (row.share for row in cells))) if len(ways) > 1 else ""
            column.append(f"{value} ({shares})" if value and shares else value or shares)
        found.append(column)
    head, bare = one_unit("held against", [row for row in rows if row.limit])
    limits = [joined(": ".join(filter(None, [row.against, with_unit(row.limit, row, bare=bare)])) for row, _ in line) for line in lines]
    found.append([head, *limits])
    if len(ways) == 1:
        found.append(["ratio", *("; ".join(filter(None, (row.share for row, _ in line))) for line in lines)])
    found.append(["notes", *(joined(note for _, note in line) for line in lines)])
    return [column for column in found if any(column[1:])]


def table(rows: Sequence[Row]) -> str:
    """A table in Markdown, and above it how it was measured. Notes for which there is no column left stand below it."""
    above, notes = caption(rows)
    found = columns(rows, notes)
    below = ""
    if len(found) > COLUMNS and found[-1][0] == "notes":
        told = zip(found[0][1:], found.pop()[1:], strict=True)
        below = "\n" + "".join(f"- {figure}: {note}\n" for figure, note in told if note)
    if len(found) > COLUMNS:
        sys.exit(f"table {rows[0].table}: {len(found)} columns are more than {COLUMNS}: {', '.join(column[0] for column in found)}")
    padded: list[list[str]] = []
    for column in found:
        cells = [cell.replace("|", "\\|") or "–" for cell in column]
        width = max(map(len, cells))
        text = column[0] in {"figure", "notes"} or column[0].startswith("held against")
        rule = "-" * width if text else "-" * (width - 1) + ":"
        padded.append([cell.ljust(width) if text else cell.rjust(width) for cell in [cells[0], rule, *cells[1:]]])
    lines = ("| " + " | ".join(cells) + " |" for cells in zip(*padded, strict=True))
    return f"{above}\n\n" + "\n".join(lines) + "\n" + below


def page() -> str:
    """The page with every table as the rows have it."""
    tables: dict[tuple[str, str], str] = {}
    for path in sorted(RECORD.glob("*.tsv")):
        for name, rows in groupby(read(path), key=lambda row: row.table):
            if (path.stem, name) in tables:
                sys.exit(f"{path}: rows of {name!r} stand in two places")
            tables[path.stem, name] = table(list(rows))

    def renewed(marked: re.Match[str]) -> str:
        key = (marked["file"], marked["table"])
        if key not in tables:
            sys.exit(f"{PAGE}: {key[0]}.tsv has no rows of {key[1]!r}, or the page shows them twice")
        return f"{key[0]}, {key[1]} -->\n{tables.pop(key)}"

    text = MARKED.sub(renewed, PAGE.read_text(encoding="utf-8"))
    for file, name in tables:
        sys.exit(f"{PAGE}: put the lines `<!-- rows: {file}, {name} -->` and `<!-- end -->` where the table is to stand")
    return text


def output(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, cwd=FOLDER, capture_output=True, check=True, text=True).stdout.strip()


def here() -> dict[str, str]:
    """This machine, today's date, and the commit, with a `+` where the tree has changes beside the record."""
    processors = Path("/proc/cpuinfo")
    cpu = re.search(r"model name\s*: (.+)", processors.read_text(encoding="utf-8") if processors.exists() else "")
    changed = output("git", "status", "--porcelain", "--untracked-files=no", ":/", ":(exclude)record", ":(exclude)README.md")
    return {
        "machine": f"{os.cpu_count()} × {cpu[1].strip() if cpu else platform.machine()}",
        "date": date.today().isoformat(),
        "commit": output("git", "rev-parse", "--short", "HEAD") + ("+" if changed else ""),
    }


def add(file: str, given: dict[str, str]) -> None:
    """Puts a figure in the place of the row of its name, or behind its table. What belongs to one run is not kept from the run before."""
    path = RECORD / f"{file}.tsv"
    rows = read(path) if path.exists() else []
    name = {"how": "", **given}
    name = {key: name[key] for key in ("table", "figure", "how", "against") if key in name}
    places = [place for place, row in enumerate(rows) if all(getattr(row, key) == text for key, text in name.items())]
    if len(places) > 1:
        sys.exit(f"{path}: say --against, one of: {joined(rows[place].against for place in places)}")
    if places:
        rows[places[0]] = replace(rows[places[0]], **{"value": "", "limit": "", "ratio": "", "notes": "", **here(), **given})
    else:
        last = max((place for place, row in enumerate(rows) if row.table == given["table"]), default=None)
        kept = {} if last is None else {"unit": rows[last].unit, "command": rows[last].command}
        rows.insert(len(rows) if last is None else last + 1, Row(**{**kept, **here(), **given}))
    write(path, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail where a table of the page is stale")
    parser.add_argument("--write", action="store_true", help="write the tables of the page anew")
    adding = parser.add_subparsers(dest="command_name").add_parser("add", help="add or renew the row of one figure")
    adding.add_argument("file", help="the file of benches/record, without its ending")
    for name in FIELDS:
        adding.add_argument(f"--{name}", required=name in {"table", "figure"})
    asked = parser.parse_args()
    if asked.command_name:
        if not (asked.value or asked.ratio):
            adding.error("say --value or --ratio")
        add(asked.file, {name: " ".join(text.split()) for name in FIELDS if (text := getattr(asked, name)) is not None})
    elif asked.check == asked.write:
        parser.error("say --check, --write or add")
    text = page()
    if not asked.check:
        PAGE.write_text(text, encoding="utf-8")
    elif text != PAGE.read_text(encoding="utf-8"):
        sys.exit(f"{PAGE} is stale: run python benches/record.py --write")


if __name__ == "__main__":
    main()

"""The blocks of code on the pages of the site and in the README, and what is to be done with each.

Blocks of a page run one behind the other in one folder, those of Python with one set of names, as cells of a notebook do. A comment in front of a
block says what differs:

    <!-- setup … -->      Python that the page does not show: names that the reader is taken to have
    <!-- needs: a, b -->  packages without which the block is left out
    <!-- not run: … -->   why the block cannot run
    <!-- held by `…` -->  the test that runs the block
    <!-- file: … -->      the file that holds the block
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PYTHON = REPOSITORY / "python"
DOCS = PYTHON / "docs"
PAGES = [REPOSITORY / "README.md", *sorted(DOCS.rglob("*.md"))]
LANGUAGES = {"python", "sh", "console", "bash", "yaml", "toml", "rust", "text"}

FENCE = re.compile(r" *```(?P<language>[\w,]*) *")
INCLUDED = re.compile(r' *--8<-- "(?P<path>[^":]+)(?::(?P<section>\w+))?"')
MARK = re.compile(r"<!-- (setup|needs|not run|held by|file)\b:?(.*?)-->", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A block of code, the line of its first one on its page, and its marks."""

    page: Path
    line: int
    language: str
    text: str
    marks: dict[str, str]

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(REPOSITORY)}:{self.line}"

    @property
    def included(self) -> Path | None:
        """The file that the block shows as a whole, which has a test of its own."""
        found = INCLUDED.fullmatch(self.text.strip())
        return PYTHON / found["path"] if found else None


def section(path: Path, name: str) -> list[str]:
    """The lines of a file between the marks of a section."""
    text = path.read_text(encoding="utf-8")
    return text.split(f"[start:{name}] -->\n", 1)[1].split("<!-- --8<-- [end:", 1)[0].splitlines()


def lines(page: Path) -> Iterator[tuple[int, str]]:
    """The lines of a page with their numbers, sections of other files in the place where they are shown."""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        found = INCLUDED.fullmatch(line)
        if found and found["section"]:
            yield from ((number, one) for one in section(PYTHON / found["path"], found["section"]))
        else:
            yield number, line


def blocks(page: Path) -> list[Block]:
    """All blocks of a page, in their order."""
    found: list[Block] = []
    between: list[str] = []
    inside: list[str] | None = None
    language, first = "", 0
    for number, line in lines(page):
        fence = FENCE.fullmatch(line)
        if inside is None and fence:
            inside, language, first = [], fence["language"], number + 1
        elif inside is not None and fence and not fence["language"]:
            indent = len(line) - len(line.lstrip())
            text = "\n".join(one[indent:] for one in inside) + "\n"
            found.append(Block(page, first, language, text, marks("\n".join(between))))
            inside, between = None, []
        elif inside is not None:
            inside.append(line)
        else:
            between.append(line)
    assert inside is None, f"{page}: a block without an end"
    return found


def marks(between: str) -> dict[str, str]:
    """The marks that stand straight in front of a block."""
    tail = re.search(r"(?:<!--(?:(?!-->).)*-->\s*)+\Z", between, re.DOTALL)
    return {name: value.strip("\n").rstrip() for name, value in MARK.findall(tail[0] if tail else "")}

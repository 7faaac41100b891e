"""Prepares pages for the site: removes marks for the tests, and lines of Rust code that only the compiler needs.

A mark is a comment before a block: `setup`, `not run`, `needs`, `held by` or `file`. `python/tests/site_blocks.py`
documents each mark.
"""

import re
from pathlib import Path
from typing import Any

MARKS = re.compile(r"^ *<!-- (?:setup|not run|needs|held by|file)\b.*?-->\n", re.DOTALL | re.MULTILINE)
RUST = re.compile(r"^```rust[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
FIGURES = Path(__file__).resolve().parents[2] / "benches" / "README.md"


def visible(block: "re.Match[str]") -> str:
    """Returns the block as a reader sees it, without the lines that rustdoc hides."""
    lines = [line for line in block[1].splitlines() if line != "#" and not line.startswith("# ")]
    return "\n".join(["```rust", *lines, "```"])


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Returns the Markdown of a page without marks. MkDocs calls the function for every page."""
    if page.file.src_uri == "figures.md":
        figures = FIGURES.read_text(encoding="utf-8").split("\n", 1)[1]
        markdown += re.sub(r"\[(`[^`]+`)\]\(record[^)]*\)", r"\1", figures)
    return RUST.sub(visible, MARKS.sub("", markdown))

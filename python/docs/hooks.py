"""Prepares pages for the site: removes marks for the tests, and lines of Rust code that only the compiler needs. Publishes the Markdown
of each page beside it, for coding assistants: `llms.txt` lists these files.

A mark is a comment before a block: `setup`, `not run`, `needs`, `held by` or `file`. `python/tests/site_blocks.py`
documents each mark.
"""

import re
from pathlib import Path
from typing import Any

MARKS = re.compile(r"^ *<!-- (?:setup|not run|needs|held by|file)\b.*?-->\n", re.DOTALL | re.MULTILINE)
RUST = re.compile(r"^```rust[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
INCLUDED = re.compile(r'^( *)--8<-- "([^":]+)(?::(\w+))?"\n', re.MULTILINE)
FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
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


def included(found: "re.Match[str]") -> str:
    """Returns a file, or its section, that a page includes."""
    text = (Path(__file__).resolve().parents[1] / found[2]).read_text(encoding="utf-8")
    if found[3]:
        text = text.split(f"[start:{found[3]}] -->\n", 1)[1].split("<!-- --8<-- [end:", 1)[0]
    return "".join(f"{found[1]}{line}" if line.strip() else line for line in text.splitlines(keepends=True))


def on_post_page(output: str, *, page: Any, config: Any, **_: Any) -> str:
    """Writes the Markdown of a page, with the files that it includes. MkDocs calls the function for every page."""
    front = FRONT.match(Path(page.file.abs_src_path).read_text(encoding="utf-8"))
    written = Path(config["site_dir"], page.file.src_uri)
    written.parent.mkdir(parents=True, exist_ok=True)
    written.write_text((front[0] if front else "") + INCLUDED.sub(included, page.markdown), encoding="utf-8")
    return output

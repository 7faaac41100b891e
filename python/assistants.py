"""Writes two files for coding assistants from the pages of the site: `python/docs/llms.txt` and `python/docs/skill.md`.

`llms.txt` has the form of llmstxt.org: the pages in the order of the navigation, each with its first sentence. The skill is
`python/skill_skeleton.md` with blocks of code and links from the pages. Run `python python/assistants.py` after a change of the
navigation, of a first sentence or of a block. With `--check` it fails if a file is stale. A test compares, too.
"""

import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
DOCS = FOLDER / "docs"
CONFIGURATION = FOLDER / "mkdocs.yml"
SKELETON = FOLDER / "skill_skeleton.md"
LLMS = DOCS / "llms.txt"
SKILL = DOCS / "skill.md"

ENTRY = re.compile(r"(?P<indent> *)- (?P<title>[^:]+):(?: (?P<page>\S+\.md))?")
INCLUDED = re.compile(r'^ *--8<-- "([^":]+\.md)(?::(\w+))?"\n', re.MULTILINE)
# A block of Python that a page shows, with the comments before it that tests read: `setup` and `needs`.
BLOCK = re.compile(r"^((?:<!--(?:(?!-->).)*-->\n)*)```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
# A line of the skeleton that stands for the block with these texts.
PROGRAM = re.compile(r"^\[\[program: (.+)\]\]\n", re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)(?:\{[^}]*\})?")


@dataclass(frozen=True)
class Page:
    """A page of the navigation: the titles of its sections, its own title, and its path below `python/docs`."""

    section: str
    title: str
    path: str

    @property
    def text(self) -> str:
        """The Markdown of the page without front matter, with the Markdown that it includes. Programs have tests of their own."""
        text = re.sub(r"\A---\n.*?\n---\n", "", (DOCS / self.path).read_text(encoding="utf-8"), flags=re.DOTALL)
        return INCLUDED.sub(included, text)

    @property
    def names(self) -> list[str]:
        """The items that a page of the reference documents."""
        return re.findall(r"^::: ([\w.]+)", self.text, re.MULTILINE)

    @property
    def address(self) -> str:
        """The page as Markdown, which `hooks.py` publishes, or as HTML if it is made of docstrings."""
        return f"{self.path.removesuffix('.md')}/" if self.names else self.path

    @property
    def summary(self) -> str:
        """The first sentence of the page. A page of the reference has its names, or its sections."""
        text = re.sub(r"<!--.*?-->\n?|\A# [^\n]*\n", "", self.text, flags=re.DOTALL)
        head, *rest = re.split(r"^(?=## |::: )", text, maxsplit=1, flags=re.MULTILINE)
        for paragraph in re.split(r"\n\s*\n|\n(?=```)", head):
            line = plain(" ".join(paragraph.split()))
            if re.match(r"\w|`\w", line):
                return re.split(r"(?<=[.:])(?= |$)", line)[0].rstrip(".:") + "."
        listed = [f"`{name}`" for name in self.names] or re.findall(r"^## (.+)", "".join(rest), re.MULTILINE)
        if not listed:
            sys.exit(f"python/docs/{self.path}: no sentence, no names and no sections: begin the page with a sentence")
        return f"{', '.join(listed[:5])}{' and others' * (len(listed) > 5)}."


def plain(text: str) -> str:
    """A text without the addresses of its links."""
    return LINK.sub(r"\1", text)


def included(found: re.Match[str]) -> str:
    """The Markdown of a file, or of its section, that a page includes."""
    text = (FOLDER / found[1]).read_text(encoding="utf-8")
    if found[2]:
        text = text.split(f"[start:{found[2]}] -->\n", 1)[1].split("<!-- --8<-- [end:", 1)[0]
    return text


def pages() -> Iterator[Page]:
    """The pages in the order of the navigation, without the skill."""
    navigation = CONFIGURATION.read_text(encoding="utf-8").split("\nnav:\n")[1]
    sections: list[tuple[int, str]] = []
    for line in navigation.splitlines():
        if not line.startswith(" "):
            break
        found = ENTRY.fullmatch(line)
        if not found:
            sys.exit(f"{CONFIGURATION.name}: nav: {line.strip()!r} is not `- TITLE:` or `- TITLE: PAGE.md`")
        depth = len(found["indent"])
        sections = [(at, title) for at, title in sections if at < depth]
        if not found["page"]:
            sections.append((depth, found["title"]))
        elif DOCS / found["page"] != SKILL:
            yield Page(": ".join(title for _, title in sections), found["title"], found["page"])


def program(wanted: str) -> str:
    """The block of Python with all texts of a list such as "mix(", "repart(", which one page has."""
    texts = re.findall(r'"([^"]+)"', wanted)
    blocks = {block[0] for page in pages() for block in BLOCK.finditer(page.text) if all(text in block[2] for text in texts)}
    # README's block is on several pages, which may have other comments before it.
    if len({block[block.index("```") :] for block in blocks}) != 1:
        sys.exit(f"{SKELETON.name}: {len(blocks)} blocks of Python on the pages have {wanted}, not 1: name the texts of one block")
    return min(blocks, key=len)


def sections() -> dict[str, list[Page]]:
    """The pages of each section."""
    found: dict[str, list[Page]] = {}
    for page in pages():
        found.setdefault(page.section, []).append(page)
    return found


def llms() -> str:
    """The text of `llms.txt`."""
    first = next(pages())
    lead = re.sub(r"\A# .*\n+", "", first.text).split("\n\n")[0]
    out = [f"# {first.title}", "", f"> {' '.join(plain(lead).split())}", ""]
    out += [f"[For coding assistants]({SKILL.name}) has the rules of a pipeline and five programs that the tests run.", ""]
    for section, members in sections().items():
        out += [f"## {section}", *(f"- [{page.title}]({page.address}): {page.summary}" for page in members), ""]
    return "\n".join(out)


def skill() -> str:
    """The text of the skill."""
    lines = [f"**{section}**: {', '.join(f'[{page.title}]({page.path})' for page in members)}" for section, members in sections().items()]
    wrap = textwrap.TextWrapper(150, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    text = PROGRAM.sub(lambda found: program(found[1]), SKELETON.read_text(encoding="utf-8"))
    return text.replace("[[pages]]", "\n".join(map(wrap.fill, lines)))


def main() -> None:
    """Writes the files, or with `--check` fails if one is stale."""
    for path, text in ((LLMS, llms()), (SKILL, skill())):
        if "--check" not in sys.argv[1:]:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path} is stale: run python python/assistants.py")


if __name__ == "__main__":
    main()

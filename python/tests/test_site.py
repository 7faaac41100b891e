"""Every page of the site and the README: their blocks run, and what they name is there."""

import importlib.util
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from site_blocks import DOCS, LANGUAGES, PAGES, PYTHON, REPOSITORY, Block, blocks

RUN = [page for page in PAGES if any(block.language in {"python", "sh", "yaml"} for block in blocks(page))]
BLOCKS = [block for page in PAGES for block in blocks(page)]


def name(page: Path) -> str:
    return str(page.relative_to(DOCS if page.is_relative_to(DOCS) else REPOSITORY))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", RUN, ids=name)
def test_the_blocks_run(page: Path, tmp_path: Path) -> None:
    program = [sys.executable, str(PYTHON / "tests" / "site_page.py"), str(page)]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    lacking = [line for line in done.stdout.splitlines() if ": left out: needs " in line]
    if lacking:
        pytest.skip("all but: " + "; ".join(lacking))


def test_every_block_is_of_a_known_language() -> None:
    assert {(block.place, block.language) for block in BLOCKS if block.language.split(",")[0] not in LANGUAGES} == set()


def test_every_program_that_is_shown_is_there() -> None:
    shown = [block.included for block in BLOCKS if block.included]
    assert len(shown) > 20 and [path for path in shown if not path.is_file()] == []


def test_a_block_that_does_not_run_says_why_or_where_it_does() -> None:
    for block in BLOCKS:
        if "not run" in block.marks:
            assert len(block.marks["not run"].split()) > 2, block.place
        if "held by" in block.marks:
            (path,) = re.findall(r"`([^`]+)`", block.marks["held by"])
            assert block.page.name in (REPOSITORY / path).read_text(), f"{block.place}: {path} does not read the page"


def test_blocks_of_rust_are_compiled() -> None:
    crate = (REPOSITORY / "src" / "lib.rs").read_text()
    for block in BLOCKS:
        if block.language.startswith("rust") and not block.included and "held by" not in block.marks:
            # That of the README is compared with what `tests/it/readme.rs` runs, and shown by other pages.
            page = block.page.relative_to(REPOSITORY)
            shown = block.text == next(one.text for one in blocks(REPOSITORY / "README.md") if one.language == "rust")
            assert f'include_str!("../{page}")' in crate or shown, block.place


@cache
def options(command: str) -> str:
    """The help of a command, or nothing if there is no such command."""
    program = [str(Path(sys.executable).parent / "gristmill"), command, "--help"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout if done.returncode == 0 else ""


def commands() -> list[tuple[str, str, list[str]]]:
    """Where a page names the command: place, its own command, its options."""
    found: list[tuple[str, str, list[str]]] = []
    for page in PAGES:
        text = re.sub(r"[|;#&>].*|\$\(.*?\)", "", "\n".join(block.text for block in blocks(page) if block.language in {"sh", "console"}))
        inline = re.findall(r"`gristmill ([^`]+)`", page.read_text())
        for line in [*re.findall(r"^\s*\$? ?gristmill (.+)$", text, re.MULTILINE), *inline]:
            command, *rest = re.sub(r"'[^']*'|\"[^\"]*\"", "x", line).split()
            found.append((f"{name(page)}: gristmill {line}", command, [word.split("=")[0] for word in rest if word.startswith("-")]))
    return found


def test_the_command_has_the_options_that_pages_name() -> None:
    named = commands()
    assert len(named) > 60
    for place, command, words in named:
        if command.startswith("-"):
            command, words = "run", [command, *words]
        text = options(command)
        assert text, f"{place}: no such command"
        for word in words:
            assert re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) or word in {"--help", "--version"}, f"{place}: no {word}"


def functions(path: Path) -> set[str]:
    """The functions and classes that a file of Rust or Python defines. A line of the macro `setters!` has no `fn`."""
    return set(re.findall(r"^\s*(?:(?:pub(?:\([^)]*\))? )?(?:async )?(?:fn|def|class)|pub) (\w+)", path.read_text(), re.MULTILINE))


def named(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_every_guarantee_has_a_test_of_that_name() -> None:
    rows = [line for line in (DOCS / "guarantees.md").read_text().splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    assert len(rows) > 40
    for row in rows:
        cell = row.rstrip("| ").rsplit(" | ", 1)[1]
        path: Path | None = None
        tests = 0
        for word in named(cell):
            if "/" in word or "." in word:
                path = REPOSITORY / word
                assert path.is_file(), f"{row}: no {word}"
            else:
                assert path and word in functions(path), f"{row}: no {word} in {path}"
                tests += 1
        assert tests, f"{row}: no test"


@cache
def everything() -> tuple[set[str], list[str]]:
    """The functions of all tests, and the paths of the repository."""
    files = [*REPOSITORY.glob("src/**/*.rs"), *REPOSITORY.glob("tests/**/*.rs"), *PYTHON.glob("tests/**/*.py"), *PYTHON.glob("examples/**/*.py")]
    return set().union(*map(functions, files)), [str(path.relative_to(REPOSITORY)) for path in files]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_tests_and_files_that_a_page_names_are_there(page: Path) -> None:
    known, _ = everything()
    for word in named(re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)):
        if re.fullmatch(r"(?:src|tests|python|benches|examples)/[\w/.-]+\.\w+", word):
            assert (REPOSITORY / word).is_file(), word
        elif re.fullmatch(r"test_[a-z0-9_]+\.py", word):
            assert list((PYTHON / "tests").rglob(word)), word
        elif re.fullmatch(r"test(?:_[a-z0-9]+)+|[a-z0-9]+(?:_[a-z0-9]+){4,}", word):
            assert any(function.removeprefix("test_").startswith(word.removeprefix("test_")) for function in known), word


def test_links_of_the_readme_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#:]+)(?:#[\w-]+)?\)", (REPOSITORY / "README.md").read_text()):
        assert (REPOSITORY / link).exists(), link


def test_every_page_is_in_the_navigation() -> None:
    navigation = (PYTHON / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    pages = [str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")]
    assert [page for page in pages if navigation.count(f" {page}\n") != 1] == []


def test_the_files_for_assistants_are_written_from_the_pages() -> None:
    spec = importlib.util.spec_from_file_location("assistants", PYTHON / "assistants.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = script  # its dataclass looks itself up
    spec.loader.exec_module(script)
    for path, text in ((script.LLMS, script.llms()), (script.SKILL, script.skill())):
        assert path.read_text() == text, "run python python/assistants.py"
    links = re.findall(r"\]\(([^)]+)\)", script.LLMS.read_text())
    assert len(links) > 30
    assert [link for link in links if not (DOCS / (f"{link[:-1]}.md" if link.endswith("/") else link)).is_file()] == []


def test_the_programs_of_the_skill_are_blocks_of_other_pages() -> None:
    programs = [block for block in blocks(DOCS / "skill.md") if block.language == "python"]
    others = {block.text for block in BLOCKS if block.language == "python" and block.page.name != "skill.md"}
    assert len(programs) == 5
    assert [block.place for block in programs if block.text not in others] == []


def test_every_page_has_text_or_shows_a_file_that_is_there() -> None:
    for page in PAGES:
        text = page.read_text()
        assert re.search(r"^# |^::: |^--8<-- ", text, re.MULTILINE), f"{page}: {text[:60]}"
        for path in re.findall(r'--8<-- "([^":]+)', text):
            assert (PYTHON / path).is_file(), f"{page}: {path}"


def test_the_readme_is_a_page_and_not_a_book() -> None:
    assert len((REPOSITORY / "README.md").read_text().splitlines()) <= 150


def test_marks_stand_for_the_block_behind_them(tmp_path: Path) -> None:
    page = DOCS / "nowhere.md"
    text = "<!-- needs: a -->\n<!-- setup\nx = 1\n-->\n```python\nx\n```\n\ntext\n\n```text\ny\n```\n"
    stand_in = tmp_path / page.name
    stand_in.write_text(text)
    first, second = blocks(stand_in)
    assert first == Block(stand_in, 6, "python", "x\n", {"needs": " a", "setup": "x = 1"}) and second.marks == {}

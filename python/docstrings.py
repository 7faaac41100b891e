"""Writes `src/python/docs.rs`: what `help()` shows of the extension's classes and functions, out of its stub.

The stub is the one place where signatures and docstrings are written. Run `python python/docstrings.py` when it has changed;
a test compares both, and holds the built extension against the stub.
"""

import ast
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
STUB = FOLDER / "gristmill" / "_gristmill.pyi"
WRITTEN = FOLDER.parent / "src" / "python" / "docs.rs"

# Columns of lists of parameters.
WIDTH = 100

Function = ast.FunctionDef | ast.AsyncFunctionDef

HEAD = """\
//! Docstrings and signatures of the stub, `python/gristmill/_gristmill.pyi`: `docs!(Class.method)` is a docstring, and
//! `docs!(signature Class.method)` the same below the signature, in the form that Python parses. Written by
//! `python/docstrings.py`, and not by hand.

macro_rules! docs {
"""


def functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """The documented functions and methods of the stub by name."""
    for node in tree.body:
        if isinstance(node, Function):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, Function) and ast.get_docstring(member) and not member.name.startswith("_"):
                    yield f"{node.name}.{member.name}", member


def classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    """The documented classes."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and ast.get_docstring(node) and not node.name.startswith("_"):
            yield node


def overloads(tree: ast.Module) -> dict[str, list[Function]]:
    """All functions of each name that has several."""
    found: dict[str, list[Function]] = {}
    for node in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for member in node.body:
            if isinstance(member, Function):
                found.setdefault(f"{node.name}.{member.name}", []).append(member)
    return found


def aliases(tree: ast.Module) -> dict[str, ast.expr]:
    """The type aliases of the stub, which nobody who reads a docstring knows."""
    pairs = ((node.target, node.value) for node in tree.body if isinstance(node, ast.AnnAssign))
    return {target.id: value for target, value in pairs if isinstance(target, ast.Name) and value is not None}


class Expand(ast.NodeTransformer):
    """Replaces aliases by what they stand for, type variables by `Any`, and protocols by their names."""

    def __init__(self, known: dict[str, ast.expr]) -> None:
        self._known = known

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:  # noqa: N802
        """A type with arguments, which those of the package itself lose."""
        if isinstance(node.value, ast.Name) and (node.value.id.startswith("_") or node.value.id == "PathLike"):
            return self.visit_Name(node.value)
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:  # noqa: N802
        """A name alone."""
        if node.id in self._known:
            expanded: ast.expr = self.visit(ast.parse(ast.unparse(self._known[node.id]), mode="eval").body)
            return expanded
        return ast.Name("Any" if node.id in VARIABLES else node.id.lstrip("_"))


VARIABLES = {"_T_co", "_T", "_U", "_R"}


def parameters(function: Function) -> list[tuple[str, ast.arg, str | None]]:
    """The stars and names of a signature's parameters, and their defaults."""
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    missing: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults))
    found: list[tuple[str, ast.arg, str | None]] = []
    for at, (argument, default) in enumerate(zip(plain, [*missing, *arguments.defaults], strict=True)):
        found.append(("", argument, ast.unparse(default) if default else None))
        if at + 1 == len(arguments.posonlyargs):
            found.append(("/", argument, None))
    if arguments.vararg:
        found.append(("*", arguments.vararg, None))
    elif arguments.kwonlyargs:
        found.append(("|", arguments.kwonlyargs[0], None))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append(("", argument, ast.unparse(default) if default else None))
    if arguments.kwarg:
        found.append(("**", arguments.kwarg, None))
    return found


def signature(function: Function, others: list[Function]) -> str:
    """The parameters as Python parses them; one that an overload can do without is `None` by default."""
    needed = [{arg.arg for mark, arg, default in parameters(other) if not mark and default is None} for other in others]
    shown: list[str] = []
    for stars, argument, default in parameters(function):
        if stars in ("/", "|"):
            shown.append({"/": "/", "|": "*"}[stars])
        elif stars:
            shown.append(f"{stars}{argument.arg}")
        elif argument.arg == "self":
            shown.append("$self")
        else:
            optional = "None" if default is None and any(argument.arg not in names for names in needed) else default
            shown.append(argument.arg if optional is None else f"{argument.arg}={optional}")
    return f"({', '.join(shown)})"


def documented(function: Function, known: dict[str, ast.expr]) -> str:
    """The docstring, with the type of each parameter beside its name: at run time there are no annotations."""
    text = ast.get_docstring(function) or ""
    head, args, rest = text.partition("\nArgs:\n")
    types = {
        argument.arg: ast.unparse(Expand(known).visit(argument.annotation))
        for _, argument, _ in parameters(function)
        if argument.annotation is not None
    }
    return head + args + re.sub(ITEM, lambda item: _item(item, types), rest)


# A parameter in a list of them, with the lines that go on.
ITEM = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def _item(item: re.Match[str], types: dict[str, str]) -> str:
    name, what = item.groups()
    kind = types.get(name, "")
    if len(kind) > WIDTH - 20:
        # The words themselves are in the text.
        kind = re.sub(r"Literal\[[^]]*]", "str", kind)
    # A type stays on the line of its name: tools look for it there.
    shown = f"{name} ({kind})".replace(" ", "\0") if kind else name
    text = f"{shown}: {' '.join(what.split())}"
    whole = textwrap.TextWrapper(
        WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8, break_long_words=False, break_on_hyphens=False
    )
    lines = whole.wrap(text)
    return "\n".join(lines).replace("\0", " ")


def literal(text: str) -> str:
    """A string of Rust."""
    return f'r#"{text}"#'


def written(stub: str) -> str:
    """The macro, for that text of the stub."""
    tree = ast.parse(stub)
    known, several = aliases(tree), overloads(tree)
    arms = [f"    ({node.name}) => {{\n        {literal(ast.get_docstring(node) or '')}\n    }};\n" for node in classes(tree)]
    for name, function in functions(tree):
        others = several.get(name, [function])
        shown, text = signature(function, others), literal(documented(function, known))
        bare = name.rpartition(".")[2]
        arms.append(f"    ({name}) => {{\n        {text}\n    }};\n")
        arms.append(
            f"    (signature {name}) => {{\n        concat!({literal(bare + shown)}, \"\\n--\\n\\n\", docs!({name}))\n    }};\n"
        )
    return HEAD + "".join(arms) + "}\n"


def main() -> None:
    """Writes the file, or with `--check` says whether it would be another."""
    text = written(STUB.read_text())
    if "--check" in sys.argv[1:]:
        sys.exit(WRITTEN.read_text() != text)
    WRITTEN.write_text(text)


if __name__ == "__main__":
    main()

"""Writes `src/python/docs.rs`: what `help()` shows of the extension's classes and functions, out of its stub.

The stub is the one place where signatures and docstrings are written, but for the parameters that pipeline files have, too: those
are described beside the code that reads them, and written into the stub from `pipeline.schema.json`. Run
`python python/docstrings.py` when either has changed; a test compares them, and holds the built extension against the stub.
"""

import ast
import json
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
STUB = FOLDER / "gristmill" / "_gristmill.pyi"
SCHEMA = FOLDER / "gristmill" / "pipeline.schema.json"
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


# Parameters that mean something else in Python than in a file, or in one of the worlds: the stub has its own words for them.
OWN = {
    "array_record.field", "arrow.cache_bytes", "arrow.paths", "bagz.field", "batch.mask", "batch.remainder",
    "csv.nulls", "csv.types", "enumerate.column", "filter.column", "npy.path", "parquet.columns",
    "parquet.row_groups", "parse_example.features", "parse_sequence_example.context",
    "parse_sequence_example.sequences", "range.start", "repeat.num_epochs", "repeat.reseed_each_epoch",
    "safetensors.float8_as_u8", "split.take", "tfrecord.field", "to_iter.on_bad_record", "tokenise.overflow",
    "window_shuffle.window_size",
}  # fmt: skip


def descriptions() -> dict[str, dict[str, Any]]:
    """What the schema says of each argument of a source or a stage."""
    definitions = json.loads(SCHEMA.read_text())["$defs"]
    found: dict[str, dict[str, Any]] = {}
    for group in (definitions["source"], definitions["stage"]["anyOf"][0]):
        for name, entry in group["properties"].items():
            forms = [form for form in entry.get("anyOf", [entry]) if "object" in form.get("type", "")]
            for argument, about in forms[0].get("properties", {}).items():
                found[f"{name}.{argument}"] = about
    return found


def in_python(about: dict[str, Any], default: str | None) -> str:
    """A description with its values as Python writes them, and the default that a signature does not show."""

    def value(code: re.Match[str]) -> str:
        inner = re.sub(r"([{,] ?)(\w+): ", r'\1"\2": ', code[1])
        inner = re.sub(r"^(\w+): (\w+)$", r'\1="\2"', inner).replace('="true"', "=True")
        inner = f'"{inner}"' if inner in words else inner
        return f"`{ {'true': 'True', 'false': 'False'}.get(inner, inner)}`"

    words = {*about.get("enum", []), "beside", "off"}
    text = re.sub("`([^`]+)`", value, about["description"])
    if any("pattern" in form for form in about.get("anyOf", [])):
        text += ' In bytes, or as text such as `"512MiB"`.'
    if default == "None" and about.get("default") is not None:
        text += f" `{json.dumps(about['default'])}` by default."
    return text


def described(stub: str) -> str:
    """The stub with what the schema says of its parameters."""
    known, lines = descriptions(), stub.splitlines(keepends=True)
    for name, function in reversed(list(functions(ast.parse(stub)))):
        owner, _, method = name.rpartition(".")
        first = function.body[0]
        defaults = {argument.arg: default for _, argument, default in parameters(function)}
        if owner not in ("MapDataset", "IterDataset") or first.end_lineno is None:
            continue

        def item(
            found: re.Match[str], method: str = method, defaults: dict[str, str | None] = defaults
        ) -> str:
            about = known.get(f"{method}.{found[1]}")
            if about is None or f"{method}.{found[1]}" in OWN:
                return found[0]
            wrap = textwrap.TextWrapper(120, initial_indent=" " * 12, subsequent_indent=" " * 16)
            wrap.break_long_words = wrap.break_on_hyphens = False
            return wrap.fill(f"{found[1]}: {in_python(about, defaults.get(found[1]))}")

        block = "".join(lines[first.lineno - 1 : first.end_lineno])
        head, args, rest = block.partition("        Args:\n")
        lines[first.lineno - 1 : first.end_lineno] = [head + args + re.sub(STUB_ITEM, item, rest)]
    return "".join(lines)


# The same as `ITEM`, where it stands in the stub.
STUB_ITEM = re.compile(r"^ {12}(\w+): (.*(?:\n {16}.*)*)", re.MULTILINE)


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
    """Writes the files, or with `--check` says whether they would be others."""
    stub = described(STUB.read_text())
    for file, text in ((STUB, stub), (WRITTEN, written(stub))):
        if "--check" not in sys.argv[1:]:
            file.write_text(text)
        elif file.read_text() != text:
            sys.exit(f"{file} is stale")


if __name__ == "__main__":
    main()

"""Writes the stub of the extension, `python/gristmill/_gristmill.pyi`, from `python/skeleton.pyi` and the built extension,
and the options of a run, `python/gristmill/_options.py`, from the signatures of `loader` and `mp_prefetch`.

The skeleton has the types that only checkers need: generics, overloads, protocols. A function there lists the parameters whose
type is not in its docstring. The extension has the docstrings, the signatures, and the methods of described sources and stages.
Run `python python/stub.py` after a build if any of these changed. A test compares.
"""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gristmill import _gristmill

FOLDER = Path(__file__).resolve().parent
SKELETON = FOLDER / "skeleton.pyi"
STUB = FOLDER / "gristmill" / "_gristmill.pyi"
OPTIONS = FOLDER / "gristmill" / "_options.py"
WIDTH = 120
HEAD = "# Written by `python/stub.py` from `python/skeleton.pyi` and the extension, and not by hand.\n"

# An argument in a docstring: its name, its type, and its description with the lines that go on.
ARGUMENT = re.compile(r"^    (\w+) \((.+?)\):\s+(.*(?:\n {8}.*)*)", re.MULTILINE)
# The body of a class.
BODY = r"(?:    .*\n|\n(?=    ))+"
# The module of options. Checkers and dataclasses need their names in a text.
OF_OPTIONS = '''# Written by `python/stub.py` from the extension, and not by hand.
"""Options of passes and of worker processes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Literal, TypedDict

from gristmill._checks import Checked
from gristmill._checks import given as given

if TYPE_CHECKING:
    from gristmill._gristmill import Deal, Part
    from gristmill._hosts import Guard


class LoaderOptions(TypedDict, total=False):
    """Keyword arguments of `loader`, which describes them."""

{loader}


@dataclasses.dataclass(frozen=True, kw_only=True)
class MpOptions(Checked):
    """Options of worker processes for `mp_prefetch`. None of them changes an element.

    `num_workers` and `per_worker_buffer_size` are Grain's names. Sizes are numbers of bytes, or text such as `"2GiB"`.

    Args:
{arguments}

    Raises:
        ConfigError: A value is invalid, or `workers` and `num_workers` differ.
    """

{processes}
'''
# The datasets. The class `Dataset` of the skeleton has their common methods.
DATASETS = ("MapDataset", "IterDataset")


def docstring(owner: object, name: str, indent: str) -> Iterator[str]:
    """The lines of a docstring, without the types of arguments, which the signature has."""

    def argument(found: re.Match[str]) -> str:
        wrap = textwrap.TextWrapper(WIDTH - len(indent), initial_indent=" " * 4, subsequent_indent=" " * 8)
        wrap.break_long_words = wrap.break_on_hyphens = False
        return wrap.fill(f"{found[1]}: {' '.join(found[3].split())}")

    lines = ARGUMENT.sub(argument, inspect.cleandoc(member(owner, name).__doc__)).splitlines()
    lines = [f'"""{lines[0]}', *lines[1:], '"""'] if len(lines) > 1 else [f'"""{lines[0]}"""']
    yield from (f"{indent}{line}" if line else "" for line in lines)
    yield ""


def member(owner: object, name: str) -> Any:
    """The function, property or class of this name."""
    found: Any = inspect.getattr_static(owner, name)
    return found.__func__ if isinstance(found, staticmethod) else found


def value(default: object) -> str:
    """A default, as the stub writes it."""
    return f'"{default}"' if isinstance(default, str) and '"' not in default else repr(default)


def signature(owner: object, name: str, known: dict[str, str], result: str, indent: str) -> Iterator[str]:
    """The lines of a signature. Parameters that are not `known` have the types of the docstring."""
    function = member(owner, name)
    types = {found[1]: found[2] for found in ARGUMENT.finditer(inspect.cleandoc(function.__doc__))} | known
    stars: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    is_method = inspect.isclass(owner) and not isinstance(inspect.getattr_static(owner, name), staticmethod)
    shown, before = ["self"] * is_method, None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self":
            continue
        kind = parameter.kind
        if before is kind.POSITIONAL_ONLY and kind is not before:
            shown.append("/")
        if kind is kind.KEYWORD_ONLY and before not in (kind, kind.VAR_POSITIONAL):
            shown.append("*")
        default = "" if parameter.default is parameter.empty else f" = {value(parameter.default)}"
        shown.append(f"{stars.get(kind, '')}{parameter.name}: {types[parameter.name]}{default}")
        before = kind
    line = f"{indent}def {name}({', '.join(shown)}) -> {result}:"
    many = [f"{indent}def {name}(", *(f"{indent}    {each}," for each in shown), f"{indent}) -> {result}:"]
    yield from [line] if len(line) <= WIDTH else many


def function(node: ast.FunctionDef, lines: list[str], owner: object, is_last: bool, indent: str) -> Iterator[str]:
    """A function of the skeleton, with its other parameters and its docstring."""
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    text = lines[node.lineno - 1 - len(decorators) : node.end_lineno]
    if node.name.startswith("_") or not is_last:
        yield from [*text, *[""] * bool(ast.get_docstring(node))]
    elif "property" in decorators or "overload" in decorators:
        yield from [*text[:-1], text[-1].removesuffix(" ...")]
        yield from docstring(owner, node.name, f"{indent}    ")
    else:
        every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.kwarg]
        known = {argument.arg: ast.unparse(argument.annotation) for argument in every if argument and argument.annotation}
        yield from (f"{indent}@{decorator}" for decorator in decorators)
        yield from signature(owner, node.name, known, ast.unparse(node.returns or ast.Constant(None)), indent)
        yield from docstring(owner, node.name, f"{indent}    ")


def described(owner: str, is_source: bool, names: set[str]) -> Iterator[str]:
    """The methods of a dataset that the skeleton does not have: sources or stages."""
    dataset: type[Any] = getattr(_gristmill, owner)
    for name, found in vars(dataset).items():
        if name.startswith("_") or name in names or isinstance(found, staticmethod) is not is_source:
            continue
        # Records of bytes are `bytes`, unless they are parsed.
        of = "Any" if "examples" in inspect.signature(member(dataset, name)).parameters else "dict[str, Any]"
        yield from ["    @staticmethod"] * is_source
        yield from signature(dataset, name, {}, f"{owner}[{of}]", "    ")
        yield from docstring(dataset, name, " " * 8)


def class_(node: ast.ClassDef, lines: list[str]) -> Iterator[str]:
    """A class of the skeleton, with what the extension has of it."""
    owner = getattr(_gristmill, node.name)
    functions = [child for child in node.body if isinstance(child, ast.FunctionDef)]
    names = {child.name for child in functions}
    yield from lines[node.lineno - 1 - len(node.decorator_list) : node.lineno]
    yield from docstring(_gristmill, node.name, "    ")
    if node.name in DATASETS:
        yield from described(node.name, True, names)
    for child, after in zip(functions, [*functions[1:], None], strict=True):
        yield from function(child, lines, owner, after is None or after.name != child.name, "    ")
    if node.name in DATASETS:
        yield from described(node.name, False, names)


def stub() -> str:
    """The text of the stub."""
    head, shared, rest = re.split(rf"^class Dataset:\n({BODY})", SKELETON.read_text(), flags=re.MULTILINE)
    for owner in DATASETS:
        common = re.sub(r"\bDataset\b", owner, shared.rstrip())
        rest = re.sub(rf"(class {owner}\b.*\n{BODY})", lambda found, common=common: f"{found[1]}{common}\n", rest)
    source = head + rest
    lines, done, out = source.splitlines(), 0, [HEAD]
    for node in ast.parse(source).body:
        decorators = node.decorator_list if isinstance(node, ast.ClassDef | ast.FunctionDef) else []
        out += lines[done : node.lineno - 1 - len(decorators)]
        done = node.end_lineno or 0
        if isinstance(node, ast.FunctionDef):
            out += function(node, lines, _gristmill, True, "")
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            out += class_(node, lines)
        else:
            out += lines[node.lineno - 1 : done]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).rstrip() + "\n"


def keywords(name: str) -> dict[str, tuple[str, str]]:
    """The keyword arguments of a method of datasets: the type and the default of each."""
    function = member(_gristmill.MapDataset, name)
    types = {found[1]: found[2] for found in ARGUMENT.finditer(inspect.cleandoc(function.__doc__))}
    parameters = inspect.signature(function).parameters.values()
    return {p.name: (types[p.name], value(p.default)) for p in parameters if p.kind is p.KEYWORD_ONLY}


def options() -> str:
    """The text of the module of options."""
    processes = keywords("mp_prefetch")
    described = "\n".join(docstring(_gristmill.MapDataset, "mp_prefetch", "    ")).partition("Args:\n")[2]
    arguments = re.findall(r"^ {8}\w+:.*(?:\n {12}.*)*", described, re.MULTILINE)
    return OF_OPTIONS.format(
        loader="\n".join(f"    {name}: {kind}" for name, (kind, _) in keywords("loader").items()),
        arguments="\n".join(text for text in arguments if text.split(":")[0].strip() in processes),
        processes="\n".join(f"    {name}: {kind} = {default}" for name, (kind, default) in processes.items()),
    )


def main() -> None:
    """Writes both files, or with `--check` fails if one is stale."""
    for file, text in ((STUB, stub()), (OPTIONS, options())):
        if "--check" not in sys.argv[1:]:
            file.write_text(text)
        elif file.read_text() != text:
            sys.exit(f"{file} is stale: run python python/stub.py")


if __name__ == "__main__":
    main()

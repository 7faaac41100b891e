"""The JSON Schema of pipeline files: what it accepts, and that the stub says of sources and stages what it says.

Nothing here needs the extension.
"""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[1]
SCHEMA = json.loads((FOLDER / "gristmill" / "pipeline.schema.json").read_text())
STUB = ast.parse((FOLDER / "gristmill" / "_gristmill.pyi").read_text())

# Names of pipeline files that Python has no method for, or that take datasets in place of parts of a file.
OF_FILES = {"concatenate", "interleave", "lanes", "memory", "mix", "slice", "zip", "rename"}
# Keywords that no parameter can be named after, and what a file has beside a parameter of Python's.
OTHERWISE = {("to_iter", "raise"), ("range", "column")}


def entries() -> dict[str, dict[str, Any]]:
    """The arguments of every source and stage."""
    definitions = SCHEMA["$defs"]
    named = [definitions["source"], definitions["stage"]["anyOf"][0]]
    return {name: properties(entry) for group in named for name, entry in group["properties"].items()}


def properties(entry: dict[str, Any]) -> dict[str, Any]:
    """The arguments in a mapping, which may be one of several forms."""
    forms = [form for form in entry.get("anyOf", [entry]) if "object" in form.get("type", "")]
    found: dict[str, Any] = forms[0].get("properties", {})
    return found


def words(schema: dict[str, Any]) -> set[str]:
    """The words that it accepts, where it accepts only words."""
    return {word for word in schema.get("enum", []) if word is not None}


def methods(name: str) -> list[ast.FunctionDef]:
    """The methods of the stub that have this name and a docstring."""
    owners = [node for node in STUB.body if isinstance(node, ast.ClassDef) and node.name in ("MapDataset", "IterDataset")]
    members = [member for owner in owners for member in owner.body if isinstance(member, ast.FunctionDef)]
    return [member for member in members if member.name == name and ast.get_docstring(member)]


def aliases() -> dict[str, ast.expr]:
    nodes = [node for node in STUB.body if isinstance(node, ast.AnnAssign)]
    return {node.target.id: node.value for node in nodes if isinstance(node.target, ast.Name) and node.value is not None}


def literals(annotation: ast.expr | None) -> set[str]:
    """The words of a `Literal`, also behind an alias."""
    if isinstance(annotation, ast.Name) and annotation.id in aliases():
        return literals(aliases()[annotation.id])
    found = [node for node in ast.walk(annotation) if isinstance(node, ast.Constant)] if annotation else []
    return {node.value for node in found if isinstance(node.value, str)}


NAMED = [(name, method) for name in sorted(entries()) if name not in OF_FILES for method in methods(name)]


@pytest.mark.parametrize(("name", "method"), NAMED, ids=[f"{name}-{at}" for at, (name, _) in enumerate(NAMED)])
def test_the_stub_says_what_pipeline_files_say(name: str, method: ast.FunctionDef) -> None:
    arguments = method.args
    plain = [*arguments.posonlyargs, *arguments.args]
    missing: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults))
    pairs = [*zip(plain, [*missing, *arguments.defaults], strict=True), *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    known = {argument.arg: (argument, default) for argument, default in pairs}
    text = ast.get_docstring(method) or ""
    assert "\nRaises:\n" in text or set(known) <= {"self"}
    for argument, schema in entries()[name].items():
        if (name, argument) in OTHERWISE or argument not in known:
            continue
        parameter, default = known[argument]
        assert re.search(rf"^    {argument}: .", text, re.MULTILINE), f"{argument} is not documented"
        given = ast.literal_eval(default) if default else None
        assert given is None or given == schema.get("default", given), (argument, given, schema)
        assert literals(parameter.annotation) <= words(schema) or not words(schema), (argument, schema)


@pytest.mark.parametrize("name", sorted(set(entries()) - OF_FILES))
def test_every_argument_is_a_parameter_of_one_of_the_methods(name: str) -> None:
    known = {argument.arg for method in methods(name) for argument in [*method.args.args, *method.args.kwonlyargs]}
    assert methods(name), f"no method {name}"
    assert {argument for argument in entries()[name] if (name, argument) not in OTHERWISE} <= known


GOOD: list[dict[str, Any]] = [
    {"source": {"range": 5}},
    {"source": {"jsonl": {"paths": ["a.jsonl"], "index_cache": "off"}}, "stages": ["to_iter", {"batch": 8}], "executor": "inline"},
    {"source": {"mix": [{"range": 3}, {"source": {"range": 4}, "stages": [{"shuffle": 1}]}]}, "store": {"memory": "1GiB"}},
]
BAD: list[dict[str, Any]] = [
    {},
    {"source": {"rnge": 5}},
    {"source": {"range": 5}, "stages": [{"batch": {"batch_sise": 8}}]},
    {"source": {"range": 5}, "stages": [{"batch": {"batch_size": 8, "remainder": "kep"}}]},
    {"source": {"range": 5}, "executor": {"threads": 0}},
    {"source": {"range": 5}, "store": {"memory": "much"}},
]


def test_validators_of_others_judge_by_it() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    validator = jsonschema.Draft202012Validator(SCHEMA)
    assert all(validator.is_valid(file) for file in GOOD)
    assert not any(validator.is_valid(file) for file in BAD)

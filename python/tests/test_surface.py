"""What a user sees without reading the code: help, signatures, names, types, what a pipeline says of itself."""

import ast
import importlib.util
import inspect
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import gristmill as gm
import numpy as np
import pytest
from gristmill import _gristmill

FOLDER = Path(__file__).resolve().parents[1]
STUB = FOLDER / "gristmill" / "_gristmill.pyi"

Kind = inspect.Parameter


class Parameter(NamedTuple):
    name: str
    kind: Any
    default: Any


def of_stub(function: ast.FunctionDef) -> list[Parameter]:
    """The parameters of a function of the stub."""
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    found = []
    for at, (argument, default) in enumerate(zip(plain, defaults, strict=True)):
        kind = Kind.POSITIONAL_ONLY if at < len(arguments.posonlyargs) else Kind.POSITIONAL_OR_KEYWORD
        found.append(Parameter(argument.arg, kind, value(default)))
    if arguments.vararg:
        found.append(Parameter(arguments.vararg.arg, Kind.VAR_POSITIONAL, Kind.empty))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append(Parameter(argument.arg, Kind.KEYWORD_ONLY, value(default)))
    if arguments.kwarg:
        found.append(Parameter(arguments.kwarg.arg, Kind.VAR_KEYWORD, Kind.empty))
    return found


def value(default: ast.expr | None) -> Any:
    return Kind.empty if default is None else ast.literal_eval(default)


def at_run_time(function: Callable[..., Any]) -> list[Parameter]:
    return [Parameter(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


def public() -> Iterator[tuple[str, ast.FunctionDef, Any]]:
    """Every public function and method of the stub that is documented, and what the extension has of that name."""
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node, getattr(_gristmill, node.name)
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and not member.name.startswith("_") and ast.get_docstring(member):
                    owner = getattr(_gristmill, node.name)
                    yield f"{node.name}.{member.name}", member, inspect.getattr_static(owner, member.name)


PUBLIC = list(public())


@pytest.mark.parametrize(("stub", "member"), [p[1:] for p in PUBLIC], ids=[p[0] for p in PUBLIC])
def test_help_is_as_full_as_the_stub(stub: ast.FunctionDef, member: Any) -> None:
    is_property = any(isinstance(d, ast.Name) and d.id == "property" for d in stub.decorator_list)
    text = inspect.getdoc(member.__func__ if isinstance(member, staticmethod) else member) or ""
    head = (ast.get_docstring(stub) or "").partition("\nArgs:\n")[0]
    assert text.startswith(head.strip()), text
    if is_property:
        return
    member = member.__func__ if isinstance(member, staticmethod) else member
    expected = of_stub(stub)
    if any(isinstance(d, ast.Name) and d.id == "overload" for d in stub.decorator_list):
        # What one of the overloads can do without.
        expected = [p._replace(default=None) if p.name in ("column", "take") else p for p in expected]
    expected = [parameter for parameter in expected if parameter.name != "self"]
    assert [parameter for parameter in at_run_time(member) if parameter.name != "self"] == expected
    for parameter in expected:
        assert re.search(rf"^    {parameter.name} \(.+\):", text, re.MULTILINE), (parameter.name, text)


def test_the_stub_is_written_from_the_extension() -> None:
    spec = importlib.util.spec_from_file_location("stub", FOLDER / "stub.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert STUB.read_text() == script.stub(), "run python python/stub.py"
    assert script.OPTIONS.read_text() == script.options(), "run python python/stub.py"


@pytest.mark.parametrize(
    ("method", "shown"),
    [
        (gm.MapDataset.jsonl, '(paths, *, repeated_names="last", index_cache="beside", columns=None, on_bad_shard=None)'),
        (gm.IterDataset.rebatch, '(self, batch_size, *, remainder="keep")'),
        (gm.MapDataset.rename, "(self, names=None, /, **more)"),
        (gm.IterDataset.limit, "(self, /, count)"),
    ],
    ids=["source", "stage", "free names", "method by hand"],
)
def test_described_methods_have_signature_and_help(method: Callable[..., Any], shown: str) -> None:
    assert str(inspect.signature(method)).replace("'", '"') == shown
    assert "\nRaises:\n" in (method.__doc__ or "")


def test_help_of_described_methods_is_in_the_terms_of_python() -> None:
    text = gm.IterDataset.length_buckets.__doc__ or ""
    assert "batch (int | Mapping[str, int | Sequence[int]]): " in text and '`{"tokens": 32768}`' in text
    assert 'remainder (Literal["keep", "drop", "pad"]): ' in text
    assert "cache_bytes (int | str): " in (gm.MapDataset.npz.__doc__ or "") and "`rows=True`" in (gm.MapDataset.npz.__doc__ or "")


def test_a_described_source_needs_no_code_for_python(tmp_path: Path) -> None:
    np.arange(5, dtype="<u2").tofile(tmp_path / "ids.bin")
    ds = pickle.loads(pickle.dumps(gm.MapDataset.tokens(tmp_path / "ids.bin", layout="u16")))
    assert ds[0]["tokens"].tolist() == [0, 1, 2, 3, 4]
    assert not hasattr(gm.IterDataset, "tokens"), "compressed token ids are not read in order"
    with pytest.raises(gm.ConfigError, match="layuot"):
        gm.MapDataset.tokens(tmp_path / "ids.bin", layout="u16", layuot="u16")  # type: ignore[call-arg]


def test_a_method_of_a_dataset_needs_one() -> None:
    call: Any = gm.MapDataset.tokenise
    for args in ((), (3,)):
        with pytest.raises(TypeError, match=r"tokenise\(\) is a method of a dataset"):
            call(*args)


def test_the_site_shows_what_the_stub_writes_as_overloads() -> None:
    griffe = pytest.importorskip("griffe", reason="griffe is not installed: pip install .[docs]")
    extensions = griffe.load_extensions(str(FOLDER / "docs" / "overloads.py"))
    module = griffe.visit("stub", filepath=STUB, code=STUB.read_text(), extensions=extensions)
    for name, shown in [("MapDataset.__getitem__", "from the end if it is negative"), ("IterDataset.enumerate", "its number")]:
        assert shown in module[name].docstring.value and len(module[name].overloads) == 2


def test_every_public_method_has_a_docstring() -> None:
    for owner in (gm.MapDataset, gm.IterDataset, gm.DatasetIterator, gm.Sink, gm.Report, gm.Metrics, gm.Explanation):
        for name, member in vars(owner).items():
            if not name.startswith("_"):
                assert f"{owner.__name__}.{name}" in {p[0] for p in PUBLIC}, name
                assert inspect.getdoc(member), name


# What other functions make, whose help says what it is given.
MADE = {"Measured", "DeviceIterator", "TensorIterator"}


def members(module: Any) -> Iterator[tuple[str, Any]]:
    """The public functions and classes of a module, and their methods: not what it imports for its own use."""
    for name in dir(module):
        value = getattr(module, name)
        is_error = inspect.isclass(value) and issubclass(value, BaseException)
        is_own = callable(value) and str(value.__module__).startswith(module.__name__)
        if name.startswith("_") or is_error or not is_own or getattr(value, "_is_protocol", False):
            continue
        if not inspect.isclass(value) or value.__init__ is not object.__init__ and name not in MADE:
            yield f"{module.__name__}.{name}", value
        for method in vars(value) if inspect.isclass(value) else ():
            if not method.startswith("_") and inspect.isroutine(getattr(value, method)):
                yield f"{module.__name__}.{name}.{method}", getattr(value, method)


def unnamed(function: Callable[..., Any]) -> list[str]:
    """The parameters that the help of a function does not name."""
    try:
        known = set(inspect.signature(function).parameters) - {"self", "args", "kwargs"}
    except ValueError:
        return []
    text = inspect.getdoc(function) or ""
    return sorted(name for name in known if not re.search(rf"^ +{name}( \(.+\))?:|`{name}`", text, re.MULTILINE))


@pytest.mark.parametrize("module", ["gristmill", "gristmill.jax", "gristmill.torch", "gristmill.orbax", "gristmill.otel", "gristmill.ray"])
def test_help_names_every_parameter_of_everything_public(module: str) -> None:
    try:
        found = dict(members(importlib.import_module(module)))
    except ImportError as error:
        pytest.skip(str(error))
    assert len(found) > (110 if module == "gristmill" else 0)
    missing = {name: unnamed(function) for name, function in found.items()}
    assert not any(missing.values()), {name: parameters for name, parameters in missing.items() if parameters}


def test_help_that_lacks_a_parameter_is_found() -> None:
    def undocumented(rows: int, columns: int) -> int:
        """Multiplies `rows`."""
        return rows * columns

    assert unnamed(undocumented) == ["columns"]


def test_names_that_are_imported_later_are_listed() -> None:
    listed = dir(gm)
    later = {"progress", "measure", "metrics", "MpOptions", "store_options", "ArraySpec"}
    later |= {"jax", "torch", "arrow", "orbax", "otel", "ray"}
    assert later <= set(listed) and listed == sorted(listed)
    assert not {"threading", "TYPE_CHECKING"} & set(listed)
    code = "import sys, gristmill as gm; dir(gm); print({'jax', 'torch', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n", done.stdout


def test_datasets_are_generic() -> None:
    assert gm.MapDataset[int].__origin__ is gm.MapDataset  # type: ignore[misc]
    assert str(gm.IterDataset[dict[str, int]]) == "gristmill.IterDataset[dict[str, int]]"
    assert gm.DatasetIterator[int].__args__ == (int,)  # type: ignore[misc]


def test_a_dataset_shows_all_of_its_stages() -> None:
    ds = gm.MapDataset.range(9).map(lambda x: {"x": x}).shuffle(3).to_iter_dataset().skip(2).batch(4)
    chain = "range(0, 9, 1) → map → shuffle(seed=3) → to_iter → skip(2) → batch(4, remainder=keep)"
    assert repr(ds) == f"<gristmill.IterDataset {chain}>"
    assert repr(ds.loader()) == f"<gristmill.DatasetIterator of {chain}>"
    mixed = gm.MapDataset.mix([gm.MapDataset.range(4), gm.MapDataset.range(6)])
    assert repr(mixed).startswith("<gristmill.MapDataset [range(0, 4, 1), range(0, 6, 1)] → mix")


def test_a_pipeline_is_explained() -> None:
    ds = gm.MapDataset.range(9).map(lambda x: {"x": np.full((2, 3), x, np.float32), "t": str(x)}).to_iter_dataset().batch(4)
    explained = ds.explain(threads=2)
    text = str(explained)
    assert repr(explained) == text and "font-family: monospace" in explained._repr_html_()
    rows = [line.split() for line in text.splitlines()]
    assert ["0", "range", "0,", "9,", "1", "source", "on", "any", "thread", "–"] in rows
    assert ["element", "x", "float32[4,", "2,", "3]"] in rows and "fingerprint" in text
    numbers = explained.as_dict()
    assert [stage["name"] for stage in numbers["stages"]] == ["range", "map", "to_iter", "batch"]
    assert numbers["element_spec"] == [["x", "float32[4, 2, 3]"], ["t", "<U1[4]"]]
    assert numbers["buffer_bytes"] == 2 * numbers["element_bytes"] > 2 * 4 * 6 * 4 - 1
    assert "none:" not in str(gm.MapDataset.range(5).explain()) and gm.MapDataset.range(5).explain().as_dict()["element_spec"] == [["", "int"]]
    assert "none: the pipeline is empty" in str(gm.MapDataset.range(0).explain())


class Pair(NamedTuple):
    left: Any
    right: Any


def test_the_spec_of_an_element_is_a_tree_like_it() -> None:
    ds = gm.MapDataset.range(6).map(lambda x: {"x": np.zeros((2, x + 1), np.int32), "p": Pair(1.5, "text"), "l": [b"a", b"b"]})
    spec = ds.element_spec
    assert spec == {"x": gm.ArraySpec((2, 1), np.dtype(np.int32)), "p": Pair(float, str), "l": [bytes]}
    assert (str(spec["x"]), repr(spec["x"])) == ("int32[2, 1]", "<gristmill.ArraySpec int32[2, 1]>")
    assert gm.MapDataset.range(6).to_iter_dataset().batch(4).element_spec == gm.ArraySpec((4,), np.dtype(np.int64))
    with pytest.raises(gm.ConfigError, match="no element"):
        _ = gm.MapDataset.range(0).element_spec


def test_a_stage_of_one_s_own_stands_in_a_chain() -> None:
    def pairs(ds: gm.IterDataset[int]) -> gm.IterDataset[Any]:
        return ds.batch(2, True)

    ds = gm.MapDataset.range(5).apply(lambda ds: ds[1:]).to_iter_dataset().apply(pairs)
    assert [batch.tolist() for batch in ds] == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("stream", "name", "says"),
    [
        (True, "prefetch", "'IterDataset' object has no attribute 'prefetch': .*loader\\(threads="),
        (False, "prefetch", "'MapDataset' object has no attribute 'prefetch': .*loader\\(threads="),
        (True, "shard", "shard the MapDataset before to_iter_dataset"),
        (True, "shuffle", "a MapDataset has it: call shuffle\\(…\\) before to_iter_dataset"),
        (False, "window_pack", "a stream has it: to_iter_dataset\\(\\).window_pack"),
        (False, "take", "ds\\[:count\\]"),
        (False, "nothing_like_it", "'MapDataset' object has no attribute 'nothing_like_it'$"),
    ],
)
def test_a_missing_method_points_to_the_one_that_is_meant(stream: bool, name: str, says: str) -> None:
    ds: Any = gm.MapDataset.range(3)
    with pytest.raises(AttributeError, match=says) as caught:
        getattr(ds.to_iter_dataset() if stream else ds, name)
    assert caught.value.name == name


def test_streams_are_cut_and_numbered_and_go_on_behind_a_resume() -> None:
    ds = gm.MapDataset.range(20).to_iter_dataset().filter(lambda x: x % 2 == 0).skip(2).enumerate(10).take(5)
    assert list(ds) == [(10, 4), (11, 6), (12, 8), (13, 10), (14, 12)]
    first = ds.loader()
    assert next(first) == (10, 4)
    rest = ds.loader(threads=2)
    rest.set_state(first.get_state())
    assert list(rest) == [(11, 6), (12, 8), (13, 10), (14, 12)]


def test_numbers_may_be_a_column_as_in_pipeline_files(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text("source: {range: {stop: 6}}\nstages: [to_iter, skip: 3, enumerate: {column: n, start: 1}, take: 2]\n")
    expected = [(3, 1), (4, 2)]
    assert [(row["index"].item(), row["n"].item()) for row in gm.IterDataset.from_file(file)] == expected
    rows = gm.MapDataset.range(3, 9).map(lambda x: {"index": x}).to_iter_dataset().enumerate(1, column="n").take(2)
    assert [(row["index"].item(), row["n"].item()) for row in rows] == expected
    with pytest.raises(gm.DataError, match="there is a column `index` already"):
        list(rows.enumerate(column="index"))


def test_packing_says_once_which_columns_it_leaves_out(caplog: pytest.LogCaptureFixture) -> None:
    rows = gm.MapDataset.range(6).map(lambda x: {"tokens": np.arange(x + 1, dtype=np.int32), "id_of_it": x, "kept": x})
    packed = rows.to_iter_dataset().first_fit_pack(length={"tokens": 8}, num_packing_bins=2, meta_features="kept")
    with caplog.at_level("WARNING", "gristmill"):
        first, second = list(packed), list(packed)
    assert len(first) == len(second) > 0 and "id_of_it" not in first[0] and "kept" in first[0]
    told = [record.getMessage() for record in caplog.records if "packing leaves out" in record.getMessage()]
    assert told == ["packing leaves out id_of_it: neither in `length` nor in `meta_features`"]

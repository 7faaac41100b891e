"""The tables of `benches/README.md` are what the rows of `benches/record` say."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "benches" / "record.py"
FIGURE = ["--table", "kernels", "--figure", "best-fit kernel, 64 bins"]


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script over a copy of the record, on a machine with a name of its own."""
    spec = importlib.util.spec_from_file_location("record", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "record", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "RECORD", shutil.copytree(module.RECORD, tmp_path / "record"))
    monkeypatch.setattr(module, "PAGE", Path(shutil.copy(module.PAGE, tmp_path)))
    monkeypatch.setattr(module, "here", lambda: {"machine": "1 × abacus", "date": "2030-01-02", "commit": "abc1234"})
    return module


def run(record: ModuleType, monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    """What the page says after the script has run."""
    monkeypatch.setattr(sys, "argv", ["record.py", *words])
    record.main()
    return Path(record.PAGE).read_text(encoding="utf-8")


def test_the_page_is_written_from_the_rows() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--check"], check=False)
    assert done.returncode == 0, "run python benches/record.py --write"


def test_a_stale_page_is_found(record: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    path = record.RECORD / "packing.tsv"
    path.write_text(path.read_text(encoding="utf-8").replace("6.38", "6.39"), encoding="utf-8")
    with pytest.raises(SystemExit, match="stale"):
        run(record, monkeypatch, "--check")
    assert " 6.39 " in run(record, monkeypatch, "--write")
    run(record, monkeypatch, "--check")


def test_a_renewed_figure_takes_the_place_of_the_one_before(record: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    path = record.RECORD / "packing.tsv"
    before = record.read(path)
    page = run(record, monkeypatch, "add", "packing", *FIGURE, "--value", "3.5", "--limit", "7")
    after = record.read(path)
    ((old, new),) = ((old, new) for old, new in zip(before, after, strict=True) if old != new)
    assert (new.value, new.limit, new.share, new.machine, new.commit) == ("3.5", "7", "50 %", "1 × abacus", "abc1234")
    assert (new.unit, new.against, new.command) == (old.unit, old.against, old.command)
    assert "machine 1 × abacus" in page


def test_what_is_of_the_run_before_is_not_kept(record: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    run(record, monkeypatch, "add", "packing", "--table", "kernels", "--figure", "packing stages on `Element`s", "--value", "2")
    (row,) = [row for row in record.read(record.RECORD / "packing.tsv") if row.figure.startswith("packing stages")]
    assert (row.limit, row.ratio, row.notes) == ("", "", "")


def test_a_new_figure_stands_behind_its_table(record: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    page = run(record, monkeypatch, "add", "packing", "--table", "kernels", "--figure", "worst-fit kernel", "--value", "1")
    rows = [row for row in record.read(record.RECORD / "packing.tsv") if row.table == "kernels"]
    assert (rows[-1].figure, rows[-1].unit, rows[-1].command) == ("worst-fit kernel", rows[0].unit, rows[0].command)
    assert "| worst-fit kernel " in page


def test_a_figure_of_several_peers_wants_to_know_which(record: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["add", "stores", "--table", "reading", "--figure", "0 ms, in order", "--how", "4 threads", "--value", "1900"]
    with pytest.raises(SystemExit, match="one of: sockets; the crate"):
        run(record, monkeypatch, *words)
    run(record, monkeypatch, *words, "--against", "sockets", "--limit", "3600")


def test_notes_without_a_column_stand_below_the_table(record: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["--table", "job", "--figure", "Parquet, bytes as they are, zstd 3", "--how", "written, a step", "--value", "95.8"]
    page = run(record, monkeypatch, "add", "sinks", *words, "--notes", "other\tvalues")
    assert "\n- Parquet, bytes as they are, zstd 3: no LTO, idle; machine A; other values; machine 1 × abacus\n<!-- end -->" in page


def test_a_table_without_a_place_on_the_page_is_an_error(record: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="rows: packing, bins"):
        run(record, monkeypatch, "add", "packing", "--table", "bins", "--figure", "bins", "--value", "64")

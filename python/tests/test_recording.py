"""Recordings of passes."""

import base64
import hashlib
import signal
import subprocess
import sys
from pathlib import Path

import gristmill as gm
import pytest


def test_a_pass_is_read_back_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "run.gmr"
    for how in ({}, {"threads": 2}):
        with (
            gm.MapDataset.range(80)
            .map(lambda x: x + 1)
            .to_iter_dataset()
            .batch(4)
            .loader(record=file, **how) as loader
        ):
            assert len(list(loader)) == 20
            told = loader.report()
        back = gm.Report.from_record(file)
        assert back.metrics()["input/elements"] == 20
        # As the loop saw it, and not only the pass below it.
        assert back.as_dict()["wall_s"] == pytest.approx(told.as_dict()["wall_s"])
        assert "your step" in back.to_html()
    assert gm.Report.from_record(tmp_path / "run.1.gmr").metrics()["input/threads"] == 0


def test_a_browser_runs_no_script_but_the_one_of_the_page() -> None:
    with gm.MapDataset.range(8).to_iter_dataset().batch(4).loader() as loader:
        list(loader)
        page = loader.report().to_html()
    script = page.rsplit("<script>", 1)[1].split("</script>", 1)[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in page


PROGRAM = """
import os, signal, time
import gristmill as gm
ds = gm.MapDataset.range(10_000).map(lambda x: x).to_iter_dataset().batch(2)
sizes = set()
for step, batch in enumerate(ds.loader(threads=1, record="run.gmr")):
    # Slow enough that the recording is written to, once a second, long before the end.
    time.sleep(0.01)
    sizes.add(os.path.getsize("run.gmr"))
    if len(sizes) == 3:
        print(step, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_pass_that_was_killed_has_lost_its_last_second(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, check=False, capture_output=True, text=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    report = gm.Report.from_record(tmp_path / "run.gmr")
    assert 0 < report.metrics()["input/elements"] <= int(ended.stdout) + 1
    assert any(
        "the recording has no end" in remark for remark in report.as_dict()["remarks"]
    )


def test_what_is_no_recording_is_told(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("words\n")
    with pytest.raises(gm.DataError, match="byte 0: not a recording of a run"):
        gm.Report.from_record(other)
    with pytest.raises(gm.ConfigError, match="it is not overwritten"):
        gm.MapDataset.range(3).loader(record=other)
    with pytest.raises(gm.IoError):
        gm.Report.from_record(tmp_path / "nothing")
    assert other.read_text() == "words\n"

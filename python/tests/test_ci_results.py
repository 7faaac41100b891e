"""`.ci/results.py` fails for a skip that no list permits, and for a test that was repeated twice."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / ".ci/results.py"
JUNIT = """<testsuites><testsuite name="it">
<testcase classname="gristmill::it" name="golden::order"><system-out>running 1 test
skipped: no folder
</system-out></testcase>
<testcase classname="gristmill::it" name="flaky"><flakyFailure message="once"/></testcase>
<testcase classname="tests.test_torch" name="test_cuda[1]"><skipped message="no CUDA"/></testcase>
<testcase classname="tests.test_torch" name="test_cpu"/>
</testsuite></testsuites>"""


@pytest.fixture
def junit(tmp_path: Path) -> Path:
    path = tmp_path / "junit.xml"
    path.write_text(JUNIT)
    return path


def results(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True)


def test_a_skip_needs_a_line_of_the_list(junit: Path, tmp_path: Path) -> None:
    permitted = tmp_path / "may_skip.txt"
    permitted.write_text("# a comment\ntests.test_torch::test_cuda* # no GPU in CI\n")
    refused = results("--skips", permitted, junit)
    assert refused.returncode == 1
    assert "gristmill::it::golden::order: no folder" in refused.stdout and "test_cuda" not in refused.stdout
    with permitted.open("a") as more:
        more.write("gristmill::it::golden::* # reference data\n")
    assert results("--skips", permitted, junit).returncode == 0


def test_a_line_without_a_reason_is_refused(junit: Path, tmp_path: Path) -> None:
    permitted = tmp_path / "may_skip.txt"
    permitted.write_text("tests.test_torch::*\n")
    refused = results("--skips", permitted, junit)
    assert refused.returncode != 0 and "no reason" in refused.stderr


def test_a_name_that_was_repeated_twice_fails(junit: Path, tmp_path: Path) -> None:
    flakes = tmp_path / "state" / "flakes.txt"
    assert results("--twice", flakes).returncode == 0
    assert results("--flakes", flakes, junit).returncode == 0
    assert results("--twice", flakes).returncode == 0
    assert results("--flakes", flakes, junit).returncode == 0
    refused = results("--twice", flakes)
    assert refused.returncode == 1 and "gristmill::it::flaky failed at first 2 times" in refused.stdout

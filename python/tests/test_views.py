"""Traces and live views of passes."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import gristmill as gm
import pytest


def test_a_pass_is_traced(tmp_path: Path) -> None:
    file = tmp_path / "t.json.gz"
    with (
        gm.MapDataset.range(400)
        .map(lambda x: x + 1)
        .to_iter_dataset()
        .batch(4)
        .loader(threads=2, trace=file) as loader
    ):
        assert len(list(loader)) == 100
    events = json.loads(gzip.decompress(file.read_bytes()))
    assert (
        sum(
            event["args"]["count"]
            for event in events
            if event["name"] in ("step",) or event["name"].endswith(" steps")
        )
        == 100
    )
    assert {"X", "C", "M", "s", "t", "f"} <= {event["ph"] for event in events}


PROGRAM = """
import sys
import gristmill as gm
with gm.MapDataset.range(40).map(lambda x: x).to_iter_dataset().batch(4).loader(threads=1{}) as batches:
    next(batches)
    print("there", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="its socket is of Linux")
@pytest.mark.parametrize(
    ("option", "asked"), [(", top=True", None), ("", "1"), ("", None)]
)
def test_a_pass_offers_its_view_where_it_is_asked_to(
    tmp_path: Path, option: str, asked: str | None
) -> None:
    env = {
        **os.environ,
        "XDG_RUNTIME_DIR": str(tmp_path),
        **({"GRISTMILL_TOP": asked} if asked else {}),
    }
    command = [sys.executable, "-c", PROGRAM.format(option)]
    with subprocess.Popen(
        command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None and running.stdout.readline() == "there\n"
        shown = subprocess.run(
            [sys.executable, "-c", "import gristmill_command; gristmill_command.main()", "top", str(running.pid)],
            env=env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        running.communicate("")
    if option or asked:
        assert shown.returncode == 0 and "VERDICT" in shown.stdout, shown.stderr
        assert not list((tmp_path / "gristmill").iterdir()), (
            "the socket is gone with the pass"
        )
    else:
        assert shown.returncode == 2 and "offers a live view" in shown.stderr

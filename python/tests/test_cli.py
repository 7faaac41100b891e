"""The command that comes with the wheel."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import gristmill as gm

COMMAND = Path(sysconfig.get_path("scripts")) / "gristmill"


def gristmill(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, *arguments], cwd=folder, capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL
    )


def test_the_demo_and_its_pipeline(tmp_path: Path) -> None:
    done = gristmill("demo", "--mb", "2", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    again = gristmill("run", "gristmill-demo/pipeline.yaml", "--inline", "--order-hash", folder=tmp_path)
    assert again.stdout == told["order_hash"] + "\n", again.stderr
    # The same file, in this process.
    batches = list(gm.IterDataset.from_file(tmp_path / "gristmill-demo" / "pipeline.yaml"))
    assert len(batches) == told["report"]["delivered"]


def test_workers_are_the_command_again(tmp_path: Path) -> None:
    hashes = set()
    for who in (["--inline"], ["--workers", "2"]):
        done = gristmill("demo", "--mb", "1", "--json", *who, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert ("worker" in told["report"]["executor"]) == ("--workers" in who)
        hashes.add(told["order_hash"])
    assert len(hashes) == 1


def test_it_says_what_the_binary_says(tmp_path: Path) -> None:
    assert gristmill("--version", folder=tmp_path).stdout == f"gristmill {gm.__version__}\n"
    missing = gristmill("run", "no.yaml", folder=tmp_path)
    assert missing.returncode == 2 and missing.stdout == "" and "no.yaml" in missing.stderr
    assert gristmill("walk", folder=tmp_path).returncode == 2
    assert "Usage: gristmill" in gristmill("--help", folder=tmp_path).stdout


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as gone:
        program = [sys.executable, "-c", "from gristmill._cli import main; main()", "demo", "--print-pipeline"]
        done = subprocess.run(program, cwd=tmp_path, stdout=gone, stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == 0 and done.stderr == b""

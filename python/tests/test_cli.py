"""The command that comes with the wheel."""

import importlib.metadata
import json
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from pathlib import Path

import gristmill as gm
import pytest

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
    assert gristmill("-V", folder=tmp_path).stdout == f"gristmill {gm.__version__}\n"
    version, features, _ = gristmill("--version", folder=tmp_path).stdout.splitlines()
    assert version == f"gristmill {gm.__version__}" and " python" in features
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


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(120)
        yield server


def interrupted(*arguments: str, folder: Path, silent: socket.socket, ready: str | None = None) -> tuple[int, str]:
    """Exit code and stderr of a command that gets SIGINT after it printed `ready`, or after it connected to the silent server."""
    program = [sys.executable, "-c", "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
               "from gristmill._cli import main; main()", *arguments]  # fmt: skip
    with subprocess.Popen(
        program, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stderr is not None
        said = ""
        connection = None if ready else silent.accept()[0]
        while ready is not None and ready not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        process.send_signal(signal.SIGINT)
        try:
            said += process.communicate(timeout=120)[1]
        finally:
            process.kill()
            if connection:
                connection.close()
        return process.returncode, said


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
def test_an_interrupt_ends_every_command_without_a_traceback(tmp_path: Path, silent: socket.socket) -> None:
    url = f"http://127.0.0.1:{silent.getsockname()[1]}/a.jsonl"
    (tmp_path / "far.yaml").write_text(f"source: {{jsonl: {{paths: ['{url}']}}}}\nstages: [batch: 2]\n")
    (tmp_path / "near.yaml").write_text("source: {range: 1000000000}\nstages: [to_iter, batch: 2]\n")
    commands = [[command, url] for command in ("inspect", "index", "verify", "analyze-padding")]
    commands += [[command, "far.yaml"] for command in ("run", "explain", "bench")]
    commands += [["bench", "far.yaml", "--sweep", "threads=1,2"], ["tune", "near.yaml", "--seconds", "60"]]
    for command in commands:
        ready = "running for" if command[0] == "tune" else None
        code, said = interrupted(*command, folder=tmp_path, silent=silent, ready=ready)
        assert code in (-signal.SIGINT, 130), (command, code, said)
        assert "Traceback" not in said, (command, said)


def test_an_interrupt_during_the_import_is_no_traceback() -> None:
    # What the library's import finds is what an interrupt meets during it.
    watch = """
import signal, sys
# As a shell starts it; in the background of one it would be ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
before = set(sys.modules)
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "gristmill":
            print(signal.getsignal(signal.SIGINT) is signal.SIG_DFL, len(set(sys.modules) - before))
            raise SystemExit(0)
sys.meta_path.insert(0, Watch())
from gristmill_command import main
main()
"""
    done = subprocess.run([sys.executable, "-c", watch], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "True 1\n", done.stdout + done.stderr
    project = Path(__file__).resolve().parents[2] / "pyproject.toml"
    assert tomllib.loads(project.read_text())["project"]["scripts"] == {"gristmill": "gristmill_command:main"}


def test_points_of_a_sweep_are_the_command_again(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("source: {range: 400}\nstages: [to_iter, batch: 4]\n")
    shape = ["--warmup", "0", "--steps", "5", "--runs", "1", "--inline", "--json"]
    done = gristmill("bench", "p.yaml", "--sweep", "batch_size=4,8", *shape, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [row["figures"]["batches"] for row in json.loads(done.stdout)["rows"]] == [5, 5]


def test_names_are_completed() -> None:
    names = dir(gm)
    assert {"MpOptions", "measure", "progress", "store_options", "jax", "torch", "IterDataset"} <= set(names)
    assert not {"threading", "TYPE_CHECKING"} & set(names)


def test_the_doctor_knows_the_interpreter_and_its_packages(tmp_path: Path) -> None:
    done = gristmill("doctor", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = {check["what"]: check for check in json.loads(done.stdout)["checks"]}
    figures = found["Python"]["figures"]
    assert figures["python"] == ".".join(str(part) for part in sys.version_info[:3])
    assert figures["packages"]["numpy"] == importlib.metadata.version("numpy")
    assert figures["packages"]["gristmill"] == gm.__version__
    assert "PJRT plugins" in found


def test_what_the_demo_writes_is_checked_by_the_schema_beside_it(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    assert gristmill("demo", "--mb", "1", folder=tmp_path).returncode == 0
    folder = tmp_path / "gristmill-demo"
    text = (folder / "pipeline.yaml").read_text()
    first = text.splitlines()[0]
    assert first.startswith("# yaml-language-server: $schema=")
    # As editors find it: by a path that starts at the folder of the file.
    schema = (folder / first.split("$schema=")[1]).read_text()
    assert schema == gristmill("schema", folder=tmp_path).stdout
    validator = jsonschema.Draft202012Validator(json.loads(schema))
    assert validator.is_valid(yaml.safe_load(text))
    assert not validator.is_valid(yaml.safe_load(text.replace("batch_size: 32", "batch_size: many")))

"""The examples run, are short, and have a page each."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from ray_alone import run_alone

FOLDER = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((FOLDER / "examples").glob("*.py"))


def run(name: str, *arguments: object) -> list[str]:
    program = [sys.executable, FOLDER / "examples" / name, *map(str, arguments)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_it_is_short_and_shown(example: Path) -> None:
    assert len(example.read_text().splitlines()) < 60
    pages = [page.read_text() for page in (FOLDER / "docs").rglob("*.md")]
    assert sum(f'--8<-- "examples/{example.name}"' in page for page in pages) == 1


def test_a_numpy_loop_goes_on(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    whole = run("numpy_loop.py", tmp_path / "whole", 9)
    (tmp_path / "parts").mkdir()
    parts = run("numpy_loop.py", tmp_path / "parts", 4) + run("numpy_loop.py", tmp_path / "parts", 5)
    assert len(whole) == 9
    assert [line.split("mean")[1] for line in parts] == [line.split("mean")[1] for line in whole]


def test_several_devices() -> None:
    pytest.importorskip("jax")
    (told,) = run("jax_devices.py")
    assert told.startswith("4 devices, weights [1, -2, 3], loss 0.00")


def test_several_hosts_make_the_same_steps() -> None:
    pytest.importorskip("jax")
    # Two processes write at a time, and JAX between them.
    told = re.findall(r"process (\d) of 2: (\d+) steps, loss (\d\.\d{4})", "\n".join(run("jax_hosts.py")))
    assert sorted(process for process, _, _ in told) == ["0", "1"]
    ((steps, loss),) = {(steps, loss) for _, steps, loss in told}
    assert int(steps) > 10 and float(loss) < 5.0


def test_pytorch_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch, which is large")
    whole = run("torch_train.py", tmp_path / "whole", 7)
    parts = run("torch_train.py", tmp_path / "parts", 3) + run("torch_train.py", tmp_path / "parts", 7)
    assert len(whole) == 7 and parts == whole


def test_packing_wastes_little() -> None:
    told = run("llm_packing.py")
    tokens, share = told[0].split(" tokens, ")
    assert int(tokens) > 10_000 and float(share.split("%")[0]) > 98
    assert any(line.startswith("VERDICT") for line in told)


def test_the_report_names_the_slow_stage() -> None:
    told = run("reading_the_report.py")
    assert "--- 0 threads" in told and "--- 4 threads" in told
    inline = told[: told.index("--- 4 threads")]
    assert any(line.startswith("VERDICT  map (stage 2)") for line in inline)
    assert inline[-2].startswith("waited ") and "most of it for map" in inline[-2]
    page = (FOLDER / "docs" / "examples" / "report.md").read_text()
    headings = [line for line in inline if line.startswith("  stage ")]
    assert headings and headings[0] in page
    assert [line.split()[:2] for line in inline if re.match(r"  \d ", line)] == [
        line.split()[:2] for line in page.splitlines() if re.match(r"  \d ", line)
    ]
    assert re.fullmatch(r"map spent (8|9)\d% of its own time waiting|map spent 100% .*", inline[-1]), inline[-1]


def test_a_device_that_waits_is_seen() -> None:
    told = run("is_my_device_waiting.py")
    inline = told[: told.index("--- 16 threads")]
    assert inline[0] == "--- 0 threads" and inline[1].startswith("accelerator utilisation, AU")
    assert inline[-1].startswith("VERDICT  the device stood still for") and inline[-1].endswith("highly input-bound")
    assert any(line.startswith("relative speed") for line in inline)


def test_a_program_for_grain_goes_on_with_another_mix() -> None:
    stopped, goes_on = run("grain_program.py")
    assert stopped.startswith("stopped at (8, 128) with 9") and goes_on == "goes on with (8, 128)"


def test_workers_change_nothing() -> None:
    told = run("worker_processes.py")
    assert told[0].startswith("2 GiB for <gristmill.IterDataset")
    assert told[1].endswith(" batches, the same by 0 and by 2 workers")


@pytest.mark.ray
def test_a_machine_that_goes_changes_nothing() -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install ray==2.60.0")
    told = run_alone(FOLDER / "examples" / "more_machines.py", timeout=600)
    # What the node had was asked of the other one: when it was late, or when it was known to be gone.
    assert "ranges asked of another worker" in told or "workers replaced" in told
    assert told.splitlines()[-1:] == run("more_machines.py", "--inline")


def test_images_that_are_damaged_are_left_out_and_counted() -> None:
    (told,) = run("images.py")
    assert told.startswith("batches of {(16, 24, 24, 3)}; ") and told.endswith("bad records skipped 1']")


def test_datasets_of_hugging_face_are_read_as_they_are() -> None:
    pytest.importorskip("datasets", reason="datasets is not installed: pip install datasets")
    packed, saved, streamed = run("hugging_face.py")
    assert packed == "200 rows, int64[8, 16]" and saved == "1000 rows from the folder" and streamed == "streamed: [0, 1, 2]"


def test_every_record_of_streamed_shards_comes_once() -> None:
    told = run("streaming_shards.py")
    assert told == [f"host {host}: 3 + 5 batches, 400 of 400 records are different ones" for host in range(2)]


def test_shuffles_move_records_as_far_as_their_page_says() -> None:
    assert "\n".join(run("shuffle_buffers.py")) in (FOLDER / "docs" / "examples" / "shuffle_buffers.md").read_text()

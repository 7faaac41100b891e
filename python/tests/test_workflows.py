"""Hosted workflows and forms name scripts, stages, features and fuzz targets that exist."""

import os
import re
import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
SCRIPT = re.compile(r"(?:^|[\s;&|])(?:bash|sh) ([\w./-]+)")
STAGE = re.compile(r"\.ci/run((?: [a-z]+)*)")


def parsed(path: Path) -> dict[Any, Any]:
    found = yaml.safe_load(path.read_text())
    assert isinstance(found, dict), path
    return found


def stages() -> list[str]:
    listed = subprocess.run([ROOT / ".ci/run", "--list"], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    return [line.split()[0] for line in listed.stdout.splitlines()]


def commands(job: dict[str, Any]) -> list[str]:
    """Every command of a job, once for each combination of its matrix."""
    matrix = job.get("strategy", {}).get("matrix", {})
    made = []
    for values in product(*matrix.values()):
        for step in job["steps"]:
            text = step.get("run", "")
            for name, value in zip(matrix, values, strict=True):
                text = text.replace("${{ matrix.%s }}" % name, str(value))
            made.append(text)
    return [text for text in made if text]


def jobs() -> list[tuple[str, dict[str, Any]]]:
    return [(f"{path.name}: {name}", job) for path in WORKFLOWS for name, job in parsed(path)["jobs"].items()]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_says_that_it_never_ran_and_may_write_nothing(path: Path) -> None:
    assert path.read_text().splitlines()[0].startswith("# Never run yet")
    workflow = parsed(path)
    # YAML 1.1 reads the key `on` as true.
    assert {"name", True, "permissions", "jobs"} <= set(workflow)
    assert workflow["permissions"] == {"contents": "read"}


def test_there_are_workflows_and_forms() -> None:
    assert {path.stem for path in WORKFLOWS} >= {"ci", "wheels", "docs", "fuzz", "weekly"}
    assert FORMS


@pytest.mark.parametrize(("name", "job"), jobs(), ids=lambda value: value if isinstance(value, str) else "")
def test_what_a_job_calls_exists(name: str, job: dict[str, Any]) -> None:
    assert job["timeout-minutes"] > 0
    found = commands(job)
    assert found, name
    known = stages()
    for command in found:
        assert "${{" not in command, f"{name}: nothing says what stands in {command}"
        for script in SCRIPT.findall(command):
            assert (ROOT / script).is_file(), f"{name}: no {script}"
        for called in STAGE.findall(command):
            assert set(called.split()) <= set(known), f"{name}: .ci/run has no stage{called}"
        if command.startswith("sh fuzz/run.sh"):
            target = command.split()[2]
            assert (ROOT / f"fuzz/corpus/{target}").is_dir(), f"{name}: no target {target}"
        for test in re.findall(r"--test (\w+)", command):
            assert (ROOT / f"tests/{test}/main.rs").is_file(), f"{name}: no test {test}"


def test_every_stage_is_run_by_a_workflow() -> None:
    every = [command for _, job in jobs() for command in commands(job)]
    assert {f".ci/run {stage}" for stage in stages()} <= set(every)


def test_a_stage_that_is_not_there_is_refused() -> None:
    refused = subprocess.run([ROOT / ".ci/run", "nothing"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert refused.returncode == 2
    assert "no stage 'nothing'" in refused.stderr and "lint" in refused.stderr
    assert os.access(ROOT / ".ci/run", os.X_OK)


@pytest.mark.parametrize("path", [path for path in FORMS if path.stem != "config"], ids=lambda path: path.name)
def test_a_form_asks_for_what_the_doctor_says(path: Path) -> None:
    form = parsed(path)
    assert form["name"] and form["description"]
    ids = [field["id"] for field in form["body"] if field["type"] != "markdown"]
    assert len(ids) == len(set(ids))
    doctor = next(field for field in form["body"] if field.get("id") == "doctor")
    assert "gristmill doctor --json" in doctor["attributes"]["label"]
    assert doctor["attributes"]["render"] == "json"

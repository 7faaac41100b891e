"""Actors of a Ray cluster evaluate the elementwise part of a pipeline: the stream stays what it is, whatever happens to them."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")

#: A network of its own, in which Ray finds no other address than that of this machine.
ALONE = ["unshare", "-Urn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


def _can_be_alone() -> bool:
    try:
        return subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.fixture(scope="module")
def came(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of each scene."""
    file = tmp_path_factory.mktemp("ray") / "came.json"
    scenes = [sys.executable, str(Path(__file__).parent / "ray_scenes.py"), str(file)]
    env = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    run = subprocess.run(
        [*(ALONE if _can_be_alone() else []), *scenes], capture_output=True, text=True, timeout=300, env=env, check=False
    )
    assert run.returncode == 0, run.stderr[-4000:]
    return json.loads(file.read_text())


def test_the_stream_is_that_of_this_process(came: dict[str, Any]) -> None:
    assert came["the_stream_is_that_of_this_process"] == [True, True, True]


def test_an_actor_that_is_killed_is_replaced(came: dict[str, Any]) -> None:
    found = came["an_actor_that_is_killed_is_replaced"]
    assert isinstance(found, dict), found
    assert found["equal"] and found["replaced"] >= 1, found


def test_states_restore_with_any_number_of_actors_and_with_none(came: dict[str, Any]) -> None:
    assert came["states_restore_with_any_number_of_actors_and_with_none"] is True


def test_what_a_function_raises_arrives(came: dict[str, Any]) -> None:
    found = came["what_a_function_raises_arrives"]
    assert found == {"said": "seven hundred and seventy-seven", "place": True, "element": True}, found


def test_parts_add_up(came: dict[str, Any]) -> None:
    assert came["parts_add_up"] is True


def test_a_slow_loop_fills_no_more_than_the_budget(came: dict[str, Any]) -> None:
    found = came["a_slow_loop_fills_no_more_than_the_budget"]
    assert isinstance(found, dict), found
    assert 0 < found["used"] <= found["budget"] and not found["spilled"], found


def test_a_command_runs_a_pipeline_file(came: dict[str, Any]) -> None:
    found = came["a_command_runs_a_pipeline_file"]
    assert isinstance(found, dict) and found["here"] == found["there"] and len(found["here"]) == 32, found
    assert found["by"] == "127.0.0.1", found
    code, out, said = found["lost"]
    assert code == 2 and not out and "127.0.0.1:1" in " ".join(said), found


def test_two_trainers_share_a_pool(came: dict[str, Any]) -> None:
    found = came["two_trainers_share_a_pool"]
    assert isinstance(found, dict), found
    assert found["actors"] == ["two/0", "two/1"] and found["left"], found
    answers = kept = 0
    for trainer in found["came"]:
        assert isinstance(trainer, dict), trainer
        assert trainer["digest"] == found["want"] and trainer["replaced"] == 0, trainer["text"]
        hosts = trainer["stages"][2]["hosts"]
        assert len(hosts) == 1 and hosts[0]["elements"] > 0, hosts
        answers, kept = answers + trainer["pool"]["answers"], kept + trainer["pool"]["kept"]
    # Each answer has to be made once: at the same pace half of them are kept ones.
    assert kept > 0.25 * answers, (kept, answers)


def test_a_trainer_that_is_killed_leaves_the_other_alone(came: dict[str, Any]) -> None:
    found = came["a_trainer_that_is_killed_leaves_the_other_alone"]
    assert isinstance(found, dict) and isinstance(found["came"], dict), found
    assert found["came"]["digest"] == found["want"] and found["came"]["replaced"] == 0 and found["left"], found


def test_an_element_that_kills_actors_is_its_trainers_alone(came: dict[str, Any]) -> None:
    found = came["an_element_that_kills_actors_is_its_trainers_alone"]
    assert isinstance(found, dict) and isinstance(found["came"], dict), found
    assert found["came"]["digest"] == found["want"] and found["came"]["replaced"] >= 1 and found["left"], found
    assert "workers died over this element" in found["said"], found["said"]


def test_a_pool_that_is_another_is_refused(came: dict[str, Any]) -> None:
    found = came["a_pool_that_is_another_is_refused"]
    assert isinstance(found, dict) and found["left"], found
    want = "pool 'mine': the pool has cpus_per_actor=1, and this trainer asks for cpus_per_actor=2"
    assert found["said"].startswith(want), found


def test_impossible_arguments_are_named(came: dict[str, Any]) -> None:
    actors, order, cpus, block, budget = came["impossible_arguments_are_named"]
    assert actors == "actors is 0, and must be a number, or (at first, at most), of 1 or more"
    assert order == "actors is (3, 2), and must be a number, or (at first, at most), of 1 or more"
    assert cpus == "cpus_per_actor is 0, and must be 1 or more"
    assert block.startswith("block is '8 stones'")
    assert budget == "ram_budget is 32 MiB, and blocks of 16 MiB need 64 MiB"

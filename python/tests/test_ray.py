"""Actors of a Ray cluster evaluate the elementwise part of a pipeline: the stream stays what it is, whatever happens to them."""

from typing import Any

import pytest
from ray_alone import NEEDS_RAY, came_of

pytestmark = NEEDS_RAY


@pytest.fixture(scope="module")
def came(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of each scene."""
    return came_of("ray_scenes.py", tmp_path_factory.mktemp("ray") / "came.json", timeout=3000)


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


def test_blocks_that_cross_packed_are_the_same_bit_for_bit(came: dict[str, Any]) -> None:
    found = came["blocks_that_cross_packed_are_the_same_bit_for_bit"]
    assert isinstance(found, dict), found
    for compress, of in found.items():
        assert of["same"] and of["in budget"], (compress, of)
        (link,) = of["links"]
        raw, wire = link["raw_bytes"], link["wire_bytes"]
        # On this machine blocks are viewed where they lie, unless all are to be packed.
        assert wire < 0.8 * raw if compress == "always" else wire == raw, (compress, link)
        assert f"on the wire: {link['why']}" in of["text"], of["text"]
    assert [found[compress]["links"][0]["why"] for compress in ("always", "never", "auto")] == [
        "always packed, as requested",
        "never packed, as requested",
        "not packed: blocks are viewed in place",
    ]


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


def test_notes_say_whose_element_ended_an_actor(came: dict[str, Any]) -> None:
    unknown = ["unknown", "unknown"]
    assert came["notes_say_whose_element_ended_an_actor"] == [unknown, ["own", "others"], ["others", "own"], unknown]


def test_an_element_that_hangs_is_its_trainers_alone(came: dict[str, Any]) -> None:
    found = came["an_element_that_hangs_is_its_trainers_alone"]
    assert isinstance(found, dict) and isinstance(found["came"], dict), found
    # Whether its actor is replaced before the other trainer is through depends on how fast that is.
    assert found["came"]["digest"] == found["want"] and found["left"], found
    assert "it took longer than the deadline of 2s" in found["said"], found["said"]


def test_a_pool_that_is_another_is_refused(came: dict[str, Any]) -> None:
    found = came["a_pool_that_is_another_is_refused"]
    assert isinstance(found, dict) and found["left"], found
    want = "pool 'mine': the pool has cpus_per_actor=1, and this trainer has cpus_per_actor=2"
    assert found["said"].startswith(want), found


def test_impossible_arguments_are_named(came: dict[str, Any]) -> None:
    actors, order, cpus, block, budget, compress, deadline = came["impossible_arguments_are_named"]
    assert actors == "actors is 0, and must be a number of 1 or more, or a pair (initial, maximum)"
    assert order == "actors is (3, 2), and must be a number of 1 or more, or a pair (initial, maximum)"
    assert cpus == "cpus_per_actor is 0, and must be 1 or more"
    assert block.startswith("block is '8 stones'")
    assert budget == "ram_budget is 32 MiB, but blocks of 16 MiB need 64 MiB"
    assert deadline.startswith("deadline is 0, and must be more than 0"), deadline
    assert compress == "compress is 'yes', and must be \"auto\", \"never\" or \"always\""

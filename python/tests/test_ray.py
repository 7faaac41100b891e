"""Actors of a Ray cluster evaluate the elementwise part of a pipeline: the stream stays what it is, whatever happens to them."""

from typing import Any

import pytest
from ray_alone import NEEDS_RAY, came_of

pytestmark = NEEDS_RAY


@pytest.fixture(scope="module")
def came(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of each scene."""
    return came_of("ray_scenes.py", tmp_path_factory.mktemp("ray") / "came.json", timeout=600)


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
        "always packed, as was asked",
        "never packed, as was asked",
        "not packed: they are viewed where they lie",
    ]


def test_impossible_arguments_are_named(came: dict[str, Any]) -> None:
    actors, order, cpus, block, budget, compress = came["impossible_arguments_are_named"]
    assert actors == "actors is 0, and must be a number, or (at first, at most), of 1 or more"
    assert order == "actors is (3, 2), and must be a number, or (at first, at most), of 1 or more"
    assert cpus == "cpus_per_actor is 0, and must be 1 or more"
    assert block.startswith("block is '8 stones'")
    assert budget == "ram_budget is 32 MiB, and blocks of 16 MiB need 64 MiB"
    assert compress == "compress is 'yes', and must be \"auto\", \"never\" or \"always\""

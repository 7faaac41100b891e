"""Actors on several nodes: the stream stays what it is, whatever happens to nodes, actors and drivers, and nothing of it is left."""

from typing import Any

import pytest
from ray_alone import NEEDS_RAY, came_of

# Weekly: it takes minutes and processes on several nodes, and has limits in seconds that a busy machine does not hold.
pytestmark = [*NEEDS_RAY, pytest.mark.weekly]


@pytest.fixture(scope="module")
def came(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of each scene."""
    return came_of("ray_cluster_scenes.py", tmp_path_factory.mktemp("ray") / "came.json", timeout=1400)


def found(came: dict[str, Any], scene: str) -> Any:
    """What came of a scene, which must not have failed."""
    of_scene = came[scene]
    assert not isinstance(of_scene, str), of_scene
    return of_scene


def test_blocks_are_spread_over_nodes(came: dict[str, Any]) -> None:
    of_scene = found(came, "blocks_are_spread_over_nodes")
    tasks = of_scene["tasks"].values()
    assert of_scene["equal"] and len(tasks) == 2, of_scene
    assert min(tasks) >= sum(tasks) / len(tasks) / 2, of_scene
    # What actors evaluate is told by machine, of both.
    assert {*map(tuple, map(sorted, of_scene["stages"]))} >= {("127.0.0.2", "127.0.0.3")}, of_scene


def test_an_actor_that_is_stopped_is_hedged(came: dict[str, Any]) -> None:
    of_scene = found(came, "an_actor_that_is_stopped_is_hedged")
    assert of_scene["equal"] and of_scene["hedged"] >= 1, of_scene
    # It was neither replaced nor woken, so others have answered what it was asked.
    assert of_scene["replaced"] == 0 and of_scene["state"] == "T" and of_scene["gone"], of_scene
    # Half a second, on a machine that has time: Ray takes 5 s to end one that does not answer.
    assert of_scene["stall"] < min(5, max(0.5, 10 * of_scene["before"])), of_scene


def test_the_end_comes_while_hedges_are_under_way(came: dict[str, Any]) -> None:
    of_scene = found(came, "the_end_comes_while_hedges_are_under_way")
    assert of_scene["equal"] and of_scene["hedged"] >= 1 and of_scene["closed"] < 5, of_scene


def test_states_go_on_with_one_four_and_two_actors(came: dict[str, Any]) -> None:
    assert found(came, "states_go_on_with_one_four_and_two_actors") == {"equal": True, "actors": [1, 4, 2]}


def test_actors_come_and_go_within_a_pass(came: dict[str, Any]) -> None:
    of_scene = found(came, "actors_come_within_a_pass")
    assert of_scene["equal"] and 1 < of_scene["actors"] <= 4, of_scene


def test_what_a_function_raises_arrives_with_its_node(came: dict[str, Any]) -> None:
    of_scene = found(came, "what_a_function_raises_on_another_node_arrives")
    assert of_scene["said"] == "seven hundred and seventy-seven"
    text = of_scene["text"]
    assert "in fails" in text and "record 777 of range" in text, text
    assert " on 127.0.0.2:" in text or " on 127.0.0.3:" in text, text


def test_a_driver_that_is_killed_is_restored(came: dict[str, Any]) -> None:
    for of_scene in found(came, "a_driver_that_is_killed_is_restored"):
        assert of_scene["equal"] and of_scene["gone"] and of_scene["at"] >= 20, of_scene


def test_a_slow_loop_keeps_memory_flat(came: dict[str, Any]) -> None:
    of_scene = found(came, "a_slow_loop_keeps_memory_flat")
    assert not of_scene["spilled"] and 0 < of_scene["taken"] <= of_scene["budget"], of_scene
    assert 0 < of_scene["high"] <= 0.6 * of_scene["store"], of_scene
    # 200 MiB pass through.
    rss = of_scene["rss"]
    assert max(rss) < rss[len(rss) // 4] + (32 << 20), of_scene


def test_a_node_is_removed_and_another_added(came: dict[str, Any]) -> None:
    of_scene = found(came, "a_node_is_removed_and_another_added")
    assert of_scene["equal"] and of_scene["replaced"] >= 1, of_scene
    assert "127.0.0.2" in of_scene["before"] and "127.0.0.2" not in of_scene["after"], of_scene
    assert of_scene["new"] in of_scene["after"], of_scene


def test_an_environment_that_cannot_be_made_is_told(came: dict[str, Any]) -> None:
    of_scene = found(came, "an_environment_that_cannot_be_made_is_told")
    assert of_scene["said"].startswith("an actor cannot be started: Failed to set up runtime environment"), of_scene


def test_actors_that_do_not_come_are_told_of(came: dict[str, Any]) -> None:
    of_scene = found(came, "actors_that_do_not_come_are_told_of")
    said, *_ = of_scene["said"]
    assert of_scene["equal"] and said.startswith("no actor has started for "), of_scene
    assert said.endswith("each requests {'CPU': 1, 'late': 1} from Ray; `ray status` lists the free resources"), of_scene


def test_a_cluster_that_is_lost_is_told(came: dict[str, Any]) -> None:
    of_scene = found(came, "a_cluster_that_is_lost_is_told")
    assert of_scene["said"] == "Ray was shut down during the pass" and of_scene["took"] < 30, of_scene
    assert not of_scene["again"], of_scene


def test_nothing_is_left(came: dict[str, Any]) -> None:
    assert came["left"] == []

"""Actors at the other end of a cable, which is cut, slow, or long: the stream stays what it is."""

from typing import Any

import pytest
import ray_alone

# Weekly: it lays cables, takes minutes, and compares rates that a busy machine changes.
pytestmark = [*ray_alone.NEEDS_RAY, pytest.mark.weekly]

#: What laying cables takes.
_CABLE = "mount -t tmpfs tmpfs /run && ip netns add there && ip link add cable type veth peer name eth0 netns there"


@pytest.fixture(scope="module")
def came(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of each scene."""
    alone = ray_alone.alone()
    # `ray stop` ends all of Ray that it finds.
    if "--mount-proc" not in alone:
        pytest.skip("namespaces for processes cannot be had here: the cable's scenes want `unshare -Urnmpf --mount-proc`")
    if not ray_alone.succeeds([*alone, "sh", "-c", _CABLE]):
        pytest.skip(f"cables cannot be laid here, which wants `{_CABLE}` in `unshare -Urnm`")
    return ray_alone.came_of("ray_cable_scenes.py", tmp_path_factory.mktemp("ray") / "came.json", timeout=1400)


def test_a_cable_is_cut(came: dict[str, Any]) -> None:
    both, there = came["the_cable_is_cut"]["both"], came["the_cable_is_cut"]["there"]
    assert isinstance(both, dict) and isinstance(there, dict), came
    # Whoever sits beside the driver answers what those behind the cable were asked.
    assert both["equal"] and both["hedged"] >= 1 and both["stall"] < 10, both
    assert set(both["hosts"]) == {"10.77.0.1", "10.77.0.2"}, both
    # Where all sit behind it nothing can come, and then everything does.
    assert there["equal"] and there["stall"] > 5 and set(there["hosts"]) == {"10.77.0.2"}, there


def test_a_link_is_slow(came: dict[str, Any]) -> None:
    slow = came["the_link_is_slow"]
    assert isinstance(slow, dict) and slow["equal"] and set(slow["hosts"]) == {"10.77.0.2"}, slow
    # Numbers below 65,536 in eight bytes each: packing is much quicker than the link, whatever else the machine does.
    for link in slow["links"]:
        assert link["wire_bytes"] < 0.6 * link["raw_bytes"], slow


def test_a_link_is_long_and_loses_packets(came: dict[str, Any]) -> None:
    lossy = came["the_link_is_long_and_loses_packets"]
    if isinstance(lossy, str) and "qdisc kind is unknown" in lossy:
        pytest.skip(f"neither netem nor /dev/net/tun can be had, which make links long: {lossy.strip()}")
    assert isinstance(lossy, dict) and lossy["equal"] and set(lossy["hosts"]) == {"10.77.0.2"}, lossy
    for link in lossy["links"]:
        assert link["wire_bytes"] < 0.6 * link["raw_bytes"], lossy


def test_nothing_is_left(came: dict[str, Any]) -> None:
    assert came["left"] == []

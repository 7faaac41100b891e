"""What a driver measures of links, without Ray."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from gristmill.ray import _links


class Cluster:
    """Stands for Ray: says of answers which are made, at a time that tests set."""

    def __init__(self) -> None:
        self.now = 100.0
        self.made: set[str] = set()
        self.util = SimpleNamespace(get_node_ip_address=lambda: "here")

    def wait(self, refs: list[str], *, num_returns: int, timeout: float, fetch_local: bool) -> tuple[list[str], list[str]]:
        assert num_returns == len(refs) and timeout == 0 and not fetch_local
        return [ref for ref in refs if ref in self.made], [ref for ref in refs if ref not in self.made]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    found = Cluster()
    monkeypatch.setattr(_links.time, "monotonic", lambda: found.now)
    return found


def clock_of(cluster: Cluster) -> Any:
    """A clock that knows worker 0 here, and 1 and 2 on another machine."""
    clock = _links.LinkClock(cluster)
    for worker, machine in ((0, "here"), (1, "there"), (2, "there"), (3, "yonder")):
        clock.knows(worker, machine)
    return clock


def test_answers_that_share_a_link_add_up_to_the_time_it_was_busy(cluster: Cluster) -> None:
    clock = clock_of(cluster)
    awaited = {"a": (1, False), "b": (2, False), "c": (1, False), "d": (3, False)}
    cluster.made = {"a", "b", "d"}
    clock.look(awaited)
    cluster.now += 2
    assert clock.arrived("a", 1) == 2
    cluster.now += 1
    # It had the link to itself for one second, and shared it before; another machine has another link.
    assert clock.arrived("b", 2) == 1
    assert clock.arrived("d", 3) == 3
    cluster.now += 10
    cluster.made.add("c")
    clock.look({"c": (1, False)})
    cluster.now += 4
    # The link was idle meanwhile.
    assert clock.arrived("c", 1) == 4


def test_what_was_not_seen_on_its_way_says_nothing(cluster: Cluster) -> None:
    clock = clock_of(cluster)
    cluster.made = {"own", "quick"}
    clock.look({"own": (0, False), "late": (1, False)})
    assert [clock.arrived(*answer) for answer in (("own", 0), ("quick", 1), ("late", 2))] == [None, None, None]


def test_answers_that_are_given_up_are_forgotten(cluster: Cluster) -> None:
    clock = clock_of(cluster)
    cluster.made = {"a"}
    clock.look({"a": (1, False)})
    clock.look({})
    assert clock.arrived("a", 1) is None

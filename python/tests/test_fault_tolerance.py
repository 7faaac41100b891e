"""The lines of the page of several hosts about a step that fails, with replicas that are lost and come back."""

import re
import threading
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import gristmill as gm
import pytest
from parts_pipeline import pipeline

PAGE = Path(__file__).resolve().parents[1] / "docs" / "hosts.md"
LINES = next(block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "Manager(" in block)

# Who takes part in each attempt at a step, and who is lost in it. Batches have 12 rows.
ATTEMPTS: list[tuple[set[int], set[int]]] = [
    ({0, 1, 2}, set()),
    ({0, 1, 2}, {2}),
    ({0, 1}, set()),
    ({0, 1}, {0}),
    ({1}, set()),
    ({1, 2}, set()),
    ({0, 1, 2}, set()),
    ({0, 1, 2, 3}, {1, 2}),
    ({0, 3}, set()),
]
STEPS = sum(not lost for _, lost in ATTEMPTS)


class Lost(Exception):
    """The end of a replica amid a step."""


class Job:
    """What the replicas know of each other."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.states: list[dict[int, tuple[int, dict[str, Any]]]] = [{} for _ in ATTEMPTS]
        self.rows: list[dict[int, list[int]]] = [{} for _ in ATTEMPTS]
        self.done: list[set[int]] = [set() for _ in ATTEMPTS]

    def wait(self, until: Callable[[], bool]) -> None:
        with self.changed:
            self.changed.notify_all()
            assert self.changed.wait_for(until, timeout=60), "the others have not come"


class Manager:
    """As torchft's, as far as these lines need it: a quorum before each step, and a vote behind it."""

    def __init__(
        self,
        job: Job,
        replica: int,
        first: int,
        load_state_dict: Callable[[Any], None],
        state_dict: Callable[[], Any],
    ) -> None:
        self.job, self.replica, self.attempt, self.step = job, replica, first - 1, 0
        self.load_state_dict, self.state_dict = load_state_dict, state_dict
        self.is_new = first > 0

    def current_step(self) -> int:
        return self.step

    def start_quorum(self) -> None:
        self.attempt += 1
        members, states = ATTEMPTS[self.attempt][0], self.job.states[self.attempt]
        assert self.replica in members
        states[self.replica] = (-1, {}) if self.is_new else (self.step, self.state_dict())
        self.job.wait(lambda: states.keys() == members)
        step, state = max(states.values(), key=lambda told: told[0])
        if self.is_new:
            self.load_state_dict(state)
        self.is_new, self.step = False, step

    def participating_rank(self) -> int:
        return sorted(ATTEMPTS[self.attempt][0]).index(self.replica)

    def num_participants(self) -> int:
        return len(ATTEMPTS[self.attempt][0])

    def should_commit(self) -> bool:
        members, lost = ATTEMPTS[self.attempt]
        self.job.done[self.attempt].add(self.replica)
        self.job.wait(lambda: self.job.done[self.attempt] == members)
        self.step += not lost
        return not lost


def replica(job: Job, number: int, first: int, threads: int, failures: list[BaseException]) -> None:
    """Trains from attempt `first` on, until it is lost or all steps are made."""
    managers: list[Manager] = []

    def manager(pg: None, load: Any, state: Any, min_replica_size: int, use_async_quorum: bool) -> Manager:
        assert pg is None and min_replica_size == 1 and not use_async_quorum
        managers.append(Manager(job, number, first, load, state))
        return managers[0]

    def train(batch: Any) -> None:
        at = managers[0].attempt
        job.rows[at][number] = batch["ids"].tolist()
        if number in ATTEMPTS[at][1]:
            job.done[at].add(number)
            raise Lost

    class Data:
        """The pipeline, on as many threads as the replica has."""

        @staticmethod
        def loader(**how: Any) -> gm.DatasetIterator:
            return pipeline().loader(threads=threads, **how)

    try:
        exec(LINES, {"ds": Data, "Manager": manager, "pg": None, "steps": STEPS, "train": train})
    except Lost:
        job.wait(lambda: True)
    except BaseException as failure:
        failures.append(failure)


def starts() -> list[tuple[int, int]]:
    """Each replica and the attempt from which it is there, once more after each loss."""
    found: list[tuple[int, int]] = []
    there: set[int] = set()
    for at, (members, lost) in enumerate(ATTEMPTS):
        found += [(number, at) for number in sorted(members - there)]
        there = members - lost
    return found


@pytest.mark.parametrize("threads", [0, 1])
def test_steps_that_count_are_the_batches_of_one_host_alone(threads: int) -> None:
    assert len(LINES.splitlines()) <= 10 and len(starts()) == 6
    job, failures = Job(), list[BaseException]()
    running = [
        threading.Thread(target=replica, args=(job, number, first, threads, failures), daemon=True)
        for number, first in starts()
    ]
    for one in running:
        one.start()
    for one in running:
        one.join(timeout=120)
    assert not failures and not any(one.is_alive() for one in running), failures
    made = [[row for _, rows in sorted(job.rows[at].items()) for row in rows] for at in range(len(ATTEMPTS))]
    whole = [batch["ids"].tolist() for batch in islice(pipeline(), STEPS)]
    assert [rows for rows, (_, lost) in zip(made, ATTEMPTS, strict=True) if not lost] == whole
    # What was lost came again.
    again = [at for at, (_, lost) in enumerate(ATTEMPTS) if lost]
    assert [made[at] for at in again] == [made[at + 1] for at in again]

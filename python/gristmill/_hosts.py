"""Exchange of batch digests between hosts through a key-value store, for the loader option `guard`."""

import os
from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeAlias

from gristmill._gristmill import Part

# Number of series that this process has begun, by name of the group.
_begun: dict[str, int] = {}


class Exchange(Protocol):
    """An exchange of statements between hosts, in rounds. Each host posts one statement per round."""

    def begin(self, part: Part, /) -> None:
        """Begins a new series of rounds, numbered from 0. Statements of earlier series are ignored from now on."""
        ...

    def post(self, round: int, statement: str, /) -> None:
        """Publishes the statement of this host. Does not wait for other hosts."""
        ...

    def read(self, round: int, /) -> Sequence[str | None]:
        """Returns the statement of each host in a round, in order of hosts; `None` for a host that has not posted."""
        ...


#: How a loader compares its data with the other hosts of the job.
Guard: TypeAlias = Literal["auto"] | str | os.PathLike[str] | tuple[str | os.PathLike[str], int, int] | Exchange | None


class Store(Protocol):
    """A key-value store that the hosts share."""

    def set(self, key: str, value: str) -> None:
        """Writes the value of a new key."""
        ...

    def get(self, prefix: str, names: Sequence[str]) -> dict[str, str]:
        """Returns the values that exist by now, by name, of the keys `prefix + name`."""
        ...

    def delete(self, key: str) -> None:
        """Deletes a key."""
        ...


class StoreExchange:
    """An exchange of a group's statements in a key-value store, with one statement per host and round.

    All hosts begin their series in the same order, so the number of a series identifies it.
    """

    def __init__(self, store: Store, group: str, host: int, hosts: int) -> None:
        self._store = store
        self._group = group
        self._host = str(host)
        self._names = [str(at) for at in range(hosts)]
        self._place = ""

    def begin(self, part: Part) -> None:
        """Begins a series of rounds."""
        _begun[self._group] = series = _begun.get(self._group, 0) + 1
        self._place = f"gristmill/guard/{self._group}/{series}"

    def post(self, round: int, statement: str) -> None:
        """Writes the statement of this host."""
        self._store.set(f"{self._place}/{round}/{self._host}", statement)

    def read(self, round: int) -> list[str | None]:
        """Returns the statement of each host; `None` for a host that has not posted."""
        said = self._store.get(f"{self._place}/{round}/", self._names)
        found = [said.get(name) for name in self._names]
        if round > 0 and None not in found:
            # A statement in this round implies that its host has read the previous round.
            self._store.delete(f"{self._place}/{round - 1}/{self._host}")
        return found


def guarded(part: Part, make: Callable[[], StoreExchange]) -> Part:
    """Returns `part` with an exchange to the hosts of the other parts."""
    with_guard: Callable[[Callable[[], StoreExchange]], Part] = getattr(part, "_guarded_by")  # noqa: B009
    return with_guard(make)

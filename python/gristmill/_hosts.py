"""The way from host to host by a key-value store: what each says of its batches, for `guard=…` of loaders."""

import os
from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeAlias

from gristmill._gristmill import Part

# Series of rounds that this process has begun with others, by the names of their groups.
_begun: dict[str, int] = {}


class Exchange(Protocol):
    """A way for hosts to read what the others say, in rounds, each host once in each."""

    def begin(self, part: Part, /) -> None:
        """Begins a series of rounds, the first of which is 0; nothing of earlier series is read any more."""
        ...

    def post(self, round: int, statement: str, /) -> None:
        """Lets the others read a statement. It does not wait for them."""
        ...

    def read(self, round: int, /) -> Sequence[str | None]:
        """What each host has said in a round, the first host first; `None` where one has said nothing yet."""
        ...


#: How the hosts of a loader are compared.
Guard: TypeAlias = Literal["auto"] | str | os.PathLike[str] | tuple[str | os.PathLike[str], int, int] | Exchange | None


class Store(Protocol):
    """A key-value store that several hosts see."""

    def set(self, key: str, value: str) -> None:
        """Writes a value under a key that has none."""
        ...

    def get(self, prefix: str, names: Sequence[str]) -> dict[str, str]:
        """The values that are there already, of keys that are a prefix with one of these names behind it."""
        ...

    def delete(self, key: str) -> None:
        """Takes a value away."""
        ...


class StoreExchange:
    """What hosts of one group say, in a key-value store. Each host says something once in each round.

    Hosts begin series of rounds in the same order, so that the number of a series tells it from others.
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
        """Says something in a round."""
        self._store.set(f"{self._place}/{round}/{self._host}", statement)

    def read(self, round: int) -> list[str | None]:
        """What each host has said in a round, `None` where it has not."""
        said = self._store.get(f"{self._place}/{round}/", self._names)
        found = [said.get(name) for name in self._names]
        if round > 0 and None not in found:
            # All have read the round before when they speak in this one.
            self._store.delete(f"{self._place}/{round - 1}/{self._host}")
        return found


def guarded(part: Part, make: Callable[[], StoreExchange]) -> Part:
    """The same part with the way to the hosts that have the others."""
    with_guard: Callable[[Callable[[], StoreExchange]], Part] = getattr(part, "_guarded_by")  # noqa: B009
    return with_guard(make)

"""How long the links to other machines are busy with what comes from there."""

from __future__ import annotations

import time
from typing import Any


def home(ray: Any) -> str:
    """The name that Ray gives this machine."""
    name: str = ray.util.get_node_ip_address()
    return name


class LinkClock:
    """Measures links, for one thread.

    An answer sets out when it is made: then Ray says that it is somewhere, and begins to fetch it. Several of a machine share the link, so that each had it from
    when it set out, or from when the one before it arrived, whichever was later: together that is the time for which the link was busy.
    """

    def __init__(self, ray: Any) -> None:
        self._ray, self._home = ray, home(ray)
        #: Machines of workers that run on others.
        self._machines: dict[int, str] = {}
        #: When answers set out that were seen to.
        self._set_out: dict[Any, float] = {}
        #: When the last answer arrived, of each machine.
        self._last: dict[str, float] = {}

    def knows(self, worker: int, machine: str) -> None:
        """Notes the machine of a worker."""
        if machine != self._home:
            self._machines[worker] = machine

    def look(self, awaited: dict[Any, tuple[int, bool]]) -> None:
        """Looks which of the answers that are awaited, each of a worker, have set out."""
        if not self._machines:
            return
        self._set_out = {ref: when for ref, when in self._set_out.items() if ref in awaited}
        refs = [ref for ref, (worker, _) in awaited.items() if worker in self._machines and ref not in self._set_out]
        if refs:
            made, _ = self._ray.wait(refs, num_returns=len(refs), timeout=0, fetch_local=False)
            self._set_out.update(dict.fromkeys(made, time.monotonic()))

    def arrived(self, ref: Any, worker: int) -> float | None:
        """The seconds that the link was busy with an answer, if it was seen on its way."""
        machine = self._machines.get(worker)
        if machine is None:
            return None
        now, set_out = time.monotonic(), self._set_out.pop(ref, None)
        before, self._last[machine] = self._last.get(machine, 0.0), now
        return None if set_out is None else now - max(set_out, before)

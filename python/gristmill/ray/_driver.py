"""Following the orders of a pass: what is sent to actors, and what they answer."""

from __future__ import annotations

import threading
import time
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gristmill.ray._seat import Lease, Leases, Own, Owned

#: Seconds after which the threads of a pass look around, where nothing has happened.
_PATIENCE = 0.5
#: The same while answers are awaited: one to what was asked meanwhile is seen so much later.
_LOOK = 0.01
#: Seconds after which an actor hears that its trainer is still there.
_BEAT = 2.0


class Driver:
    """Actors of one pass: two threads share it, of which one sends and the other brings what comes back."""

    def __init__(self, ray: Any, office: Any, actors: Owned | Leases) -> None:
        self._ray, self._office, self._start = ray, office, actors.start
        self._changed = threading.Condition()
        #: Of each worker what this pass has of its actor.
        self._seats: dict[int, Own | Lease] = {}
        #: Those that ended before the pass did, and of which there are notes.
        self._left: list[Own | Lease] = []
        self._last_beat = time.monotonic()
        #: What is awaited: the worker, and whether that is its first word.
        self._awaited: dict[Any, tuple[int, bool]] = {}
        self._over = False

    def follow_orders(self) -> None:
        """Does what the office wants done, until the pass is over."""
        try:
            while (order := self._office.next_order(_PATIENCE)) is not None:
                self._follow(*order)
                self._beat()
        except BaseException:
            self._give_up(traceback.format_exc())
        finally:
            self._end()

    def _follow(self, what: str, number: int, given: Any) -> None:
        if what == "start":
            try:
                seat = self._start(given)
            except Exception as error:
                self._office.not_started(number, f"an actor cannot be started: {error}")
                return
            with self._changed:
                self._seats[number] = seat
            self._await(seat.first, number, True)
        elif what in ("send", "send alone"):
            seat = self._seats.get(number)
            # One that is gone hears nothing; the office knows that, or will.
            if seat is not None:
                self._await(seat.hear(given, alone=what == "send alone"), number, False)
        elif what in ("end", "kill"):
            if what == "kill" and (seat := self._seats.get(number)) is not None:
                seat.kill()
            self._lose(number, "it was ended", outside=False)

    def _beat(self) -> None:
        if time.monotonic() - self._last_beat > _BEAT:
            self._last_beat = time.monotonic()
            for seat in list(self._seats.values()):
                seat.beat()

    def _await(self, ref: Any, number: int, first: bool) -> None:
        with self._changed:
            self._awaited[ref] = (number, first)
            self._changed.notify_all()

    def bring_answers(self) -> None:
        """Brings what actors answer to the office, until the pass is over."""
        try:
            while not self._over:
                with self._changed:
                    refs = list(self._awaited)
                    if not refs:
                        self._changed.wait(_PATIENCE)
                        continue
                ready, _ = self._ray.wait(refs, num_returns=len(refs), timeout=0, fetch_local=True)
                if not ready:
                    ready, _ = self._ray.wait(refs, num_returns=1, timeout=_LOOK, fetch_local=True)
                for ref in ready:
                    self._bring(ref)
        except BaseException:
            self._give_up(traceback.format_exc())

    def _bring(self, ref: Any) -> None:
        with self._changed:
            awaited = self._awaited.pop(ref, None)
        if awaited is None:
            return
        number, first = awaited
        exceptions = self._ray.exceptions
        try:
            answer = self._ray.get(ref)
        except exceptions.RayTaskError as error:
            self._lose(number, f"it failed: {error}", outside=False)
        except (exceptions.RayActorError, exceptions.ObjectLostError, exceptions.RaySystemError) as error:
            self._lose(number, _in_short(error), outside=True)
        else:
            if first and isinstance(answer, str):
                self._office.refused(number, answer)
                self._lose(number, answer, outside=False)
            elif answer is None:
                # Nothing that it was asked for is to blame.
                self._lose(number, "its lease has run out: it has not heard of this trainer for too long", outside=True, blameless=True)
            elif first:
                self._office.started(number, *answer)
            else:
                self._office.answered(number, *answer)

    def _lose(self, number: int, why: str, *, outside: bool, blameless: bool = False) -> None:
        with self._changed:
            seat = self._seats.pop(number, None)
            for ref in [ref for ref, (worker, _) in self._awaited.items() if worker == number]:
                del self._awaited[ref]
        if seat is None:
            return
        others = blameless or (outside and seat.is_killed_by_others())
        seat.let_go()
        if seat.suspect:
            self._left.append(seat)
        if others:
            self._office.gone_with_others(number, why)
        else:
            self._office.gone(number, why, outside)

    def _give_up(self, why: str) -> None:
        """Ray is lost, or this has a bug: whoever waits is told, and everything ends."""
        for number in list(self._seats):
            try:
                self._lose(number, why, outside=False)
            except BaseException:
                self._office.gone(number, why, False)
        while (order := self._office.next_order(_PATIENCE)) is not None:
            if order[0] == "start":
                self._office.not_started(order[1], why)

    def _end(self) -> None:
        with self._changed:
            self._over, seats = True, list(self._seats.values())
            self._seats.clear()
            self._awaited.clear()
            self._changed.notify_all()
        if self._ray.is_initialized():
            for seat in seats:
                seat.let_go()
            for seat in (*self._left, *(seat for seat in seats if seat.suspect)):
                seat.forget()


def _in_short(error: Exception) -> str:
    """The first line of what Ray tells, which goes on about itself."""
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__

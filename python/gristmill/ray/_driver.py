"""Executes the orders of a pass: sends messages to actors and returns their answers."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gristmill.ray._links import LinkClock

if TYPE_CHECKING:
    from gristmill.ray._seat import Lease, Leases, Own, Owned

#: Seconds after which the idle threads of a pass check for changes.
_PATIENCE = 0.5
#: Seconds between checks while answers are awaited. An answer to a new message is noticed with this delay.
_LOOK = 0.01
#: Seconds between heartbeats to actors.
_BEAT = 2.0
#: Seconds without a requested actor before a warning. The delay grows tenfold after each warning.
_LONG = 10.0


class Driver:
    """The actors of a pass and two threads: a thread sends messages, the other receives answers."""

    def __init__(self, ray: Any, office: Any, actors: Owned | Leases, asked: str) -> None:
        self._ray, self._office, self._start, self._asked = ray, office, actors.start, asked
        self._changed = threading.Condition()
        #: The pass's handle on the actor of each worker.
        self._seats: dict[int, Own | Lease] = {}
        self._last_beat = time.monotonic()
        #: Awaited answers: the worker, and whether the answer is its first.
        self._awaited: dict[Any, tuple[int, bool]] = {}
        self._over = False
        self._clock = LinkClock(ray)
        #: Why the pass cannot continue.
        self._lost: str | None = None
        #: Time of the last sign of an actor, and seconds until the next warning.
        self._came, self._patience = time.monotonic(), _LONG

    def follow_orders(self) -> None:
        """Executes orders until the pass ends."""
        try:
            while (order := self._office.next_order(_PATIENCE)) is not None:
                try:
                    self._follow(*order)
                    self._beat()
                except BaseException:
                    self._give_up(traceback.format_exc())
        finally:
            self._end()

    def _follow(self, what: str, number: int, given: Any) -> None:
        if what == "start":
            self._start_one(number, given)
        elif what == "send":
            seat = self._seats.get(number)
            # A missing actor gets no message: the order's sender learns, or has learned, of its end separately.
            if seat is not None and self._has_ray():
                self._await(seat.hear(given), number, False)
        elif what in ("end", "kill"):
            if what == "kill" and (seat := self._seats.get(number)) is not None and self._has_ray():
                seat.kill()
            self._lose(number, "it was ended", outside=False)

    def _beat(self) -> None:
        """Sends heartbeats to the actors."""
        if time.monotonic() - self._last_beat > _BEAT and self._has_ray():
            self._last_beat = time.monotonic()
            for seat in list(self._seats.values()):
                seat.beat()

    def _start_one(self, number: int, place: int) -> None:
        if self._has_ray() and self._lost is None:
            try:
                seat = self._start(place)
            except Exception as error:
                self._office.cannot_start(number, f"an actor cannot be started: {error}")
                return
            with self._changed:
                self._seats[number] = seat
            # A replacement gets as much time to start as the first actor.
            self._came, self._patience = time.monotonic(), _LONG
            self._await(seat.first, number, True)
        # Checked again: Ray may have been lost during the start.
        if self._lost is not None:
            self._forget(number)
            self._office.cannot_start(number, self._lost)

    def _await(self, ref: Any, number: int, first: bool) -> None:
        with self._changed:
            self._awaited[ref] = (number, first)
            self._changed.notify_all()

    def bring_answers(self) -> None:
        """Passes on answers of actors until the pass ends."""
        while not self._over:
            try:
                self._bring_some()
            except BaseException:
                self._give_up(traceback.format_exc())

    def _bring_some(self) -> None:
        with self._changed:
            awaited = dict(self._awaited)
            if not awaited:
                self._changed.wait(_PATIENCE)
                return
        if not self._has_ray():
            return
        refs = list(awaited)
        self._clock.look(awaited)
        ready, _ = self._ray.wait(refs, num_returns=len(refs), timeout=0, fetch_local=True)
        if not ready and self._has_ray():
            ready, _ = self._ray.wait(refs, num_returns=1, timeout=_LOOK, fetch_local=True)
        for ref in ready:
            self._bring(ref)
        if not ready:
            self._look_for_actors()

    def _has_ray(self) -> bool:
        """Returns whether Ray is connected. Any call on a disconnected Ray would start a new local cluster."""
        has: bool = self._ray.is_initialized()
        if not has and self._lost is None:
            self._give_up("Ray was shut down during the pass")
        return has

    def _look_for_actors(self) -> None:
        """Logs a warning if no actor has started for long and all awaited answers are first answers."""
        waited = time.monotonic() - self._came
        if waited < self._patience:
            return
        with self._changed:
            coming = all(first for _, first in self._awaited.values())
        if coming:
            self._patience *= 10
            logging.getLogger("gristmill").warning(
                "no actor has started for %.0f s: each requests %s from Ray; `ray status` lists the free resources", waited, self._asked
            )

    def _bring(self, ref: Any) -> None:
        with self._changed:
            awaited = self._awaited.pop(ref, None)
        if awaited is None or not self._has_ray():
            return
        number, first = awaited
        took = self._clock.arrived(ref, number)
        self._came = time.monotonic()
        exceptions = self._ray.exceptions
        try:
            answer = self._ray.get(ref)
        except exceptions.RayTaskError as error:
            self._lose(number, f"it failed: {error}", outside=False)
        except exceptions.RayError as error:
            # A broken environment would also break the next actor.
            unfit = isinstance(error, exceptions.RuntimeEnvSetupError) or getattr(error, "actor_init_failed", False)
            if first and unfit:
                self._forget(number)
                self._office.cannot_start(number, f"an actor cannot be started: {error}")
            else:
                self._lose(number, _in_short(error), outside=True)
        else:
            if first and isinstance(answer, str):
                self._office.refused(number, answer)
                self._lose(number, answer, outside=False)
            elif answer is None:
                # The lease expired; no element caused the loss.
                self._lose(number, "its lease expired: this trainer sent no heartbeat for too long", outside=True, blameless=True)
            elif first:
                self._clock.knows(number, answer[1])
                self._office.started(number, *answer)
            else:
                self._office.answered(number, *answer, took)

    def _lose(self, number: int, why: str, *, outside: bool, blameless: bool = False) -> None:
        seat = self._forget(number)
        if seat is None:
            return
        blame = "own"
        if blameless:
            blame = "others"
        elif outside and self._ray.is_initialized():
            blame = seat.blame()
        self._office.gone(number, why, outside, blame)

    def _forget(self, number: int) -> Own | Lease | None:
        """Releases an actor and drops its awaited answers. Returns its handle."""
        with self._changed:
            seat = self._seats.pop(number, None)
            for ref in [ref for ref, (worker, _) in self._awaited.items() if worker == number]:
                del self._awaited[ref]
        if seat is not None:
            self._let_go(seat)
        return seat

    def _let_go(self, seat: Own | Lease) -> None:
        # If Ray is lost, its actors are lost too.
        if self._ray.is_initialized():
            with suppress(Exception):
                seat.let_go()

    def _give_up(self, why: str) -> None:
        """Ends the pass with an error for its consumer, after the loss of Ray or a bug in this class."""
        with self._changed:
            self._lost = why
        for number in list(self._seats):
            self._lose(number, why, outside=False)

    def make_way(self) -> None:
        """Ends this pass and frees the cores of its actors for its replacement."""
        with self._changed:
            self._lost = "a new pass has replaced this pass"
            actors, coming = list(self._seats), [number for number, first in self._awaited.values() if first]
        for number in actors:
            self._forget(number)
        # A single event ends the pass, if a consumer still waits.
        if coming:
            self._office.cannot_start(coming[0], self._lost)
        elif actors:
            self._office.gone(actors[0], self._lost, False)

    def _end(self) -> None:
        with self._changed:
            self._over, seats = True, list(self._seats.values())
            self._seats.clear()
            self._awaited.clear()
            self._changed.notify_all()
        for seat in seats:
            self._let_go(seat)


def _in_short(error: Exception) -> str:
    """Returns the first line of Ray's message; the remaining lines describe Ray's internals."""
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__

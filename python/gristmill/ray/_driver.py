"""Following the orders of a pass: what is sent to actors, and what they answer."""

from __future__ import annotations

import threading
import traceback
from typing import Any

from gristmill.ray._links import LinkClock

#: Seconds after which the threads of a pass look around, where nothing has happened.
_PATIENCE = 0.5
#: The same while answers are awaited: one to what was asked meanwhile is seen so much later.
_LOOK = 0.01


class Driver:
    """Actors of one pass: two threads share it, of which one sends and the other brings what comes back."""

    def __init__(self, ray: Any, office: Any, start: Any) -> None:
        self._ray, self._office, self._start = ray, office, start
        self._changed = threading.Condition()
        #: Of each worker its actor.
        self._actors: dict[int, Any] = {}
        #: What is awaited: the worker, and whether that is its first word.
        self._awaited: dict[Any, tuple[int, bool]] = {}
        self._over = False
        self._clock = LinkClock(ray)

    def follow_orders(self) -> None:
        """Does what the office wants done, until the pass is over."""
        try:
            while (order := self._office.next_order(_PATIENCE)) is not None:
                self._follow(*order)
        except BaseException:
            self._give_up(traceback.format_exc())
        finally:
            self._end()

    def _follow(self, what: str, number: int, given: Any) -> None:
        if what == "start":
            try:
                actor = self._start(given)
                first = actor.who.remote()
            except Exception as error:
                self._office.not_started(number, f"an actor cannot be started: {error}")
                return
            with self._changed:
                self._actors[number] = actor
            self._await(first, number, True)
        elif what == "send":
            actor = self._actors.get(number)
            # One that is gone hears nothing; the office knows that, or will.
            if actor is not None:
                self._await(actor.hear.remote(given), number, False)
        elif what == "end":
            self._lose(number, "it was ended", outside=False)

    def _await(self, ref: Any, number: int, first: bool) -> None:
        with self._changed:
            self._awaited[ref] = (number, first)
            self._changed.notify_all()

    def bring_answers(self) -> None:
        """Brings what actors answer to the office, until the pass is over."""
        try:
            while not self._over:
                with self._changed:
                    awaited = dict(self._awaited)
                    refs = list(awaited)
                    if not refs:
                        self._changed.wait(_PATIENCE)
                        continue
                self._clock.look(awaited)
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
        took = self._clock.arrived(ref, number)
        exceptions = self._ray.exceptions
        try:
            answer = self._ray.get(ref)
        except exceptions.RayTaskError as error:
            self._lose(number, f"it failed: {error}", outside=False)
        except (exceptions.RayActorError, exceptions.ObjectLostError, exceptions.RaySystemError) as error:
            self._lose(number, _in_short(error), outside=True)
        else:
            if first:
                self._clock.knows(number, answer[1])
                self._office.started(number, *answer)
            else:
                self._office.answered(number, *answer, took)

    def _lose(self, number: int, why: str, *, outside: bool) -> None:
        with self._changed:
            actor = self._actors.pop(number, None)
            for ref in [ref for ref, (worker, _) in self._awaited.items() if worker == number]:
                del self._awaited[ref]
        if actor is not None:
            self._ray.kill(actor, no_restart=True)
            self._office.gone(number, why, outside)

    def _give_up(self, why: str) -> None:
        """Ray is lost, or this has a bug: whoever waits is told, and everything ends."""
        for number in list(self._actors):
            try:
                self._lose(number, why, outside=False)
            except BaseException:
                self._office.gone(number, why, False)
        while (order := self._office.next_order(_PATIENCE)) is not None:
            if order[0] == "start":
                self._office.not_started(order[1], why)

    def _end(self) -> None:
        with self._changed:
            self._over, actors = True, list(self._actors.values())
            self._actors.clear()
            self._awaited.clear()
            self._changed.notify_all()
        if self._ray.is_initialized():
            for actor in actors:
                self._ray.kill(actor, no_restart=True)


def _in_short(error: Exception) -> str:
    """The first line of what Ray tells, which goes on about itself."""
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__

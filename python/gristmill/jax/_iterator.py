"""A pass whose batches are under way to the devices before the trainer asks for them."""

import copy
import json
from collections import deque
from collections.abc import Awaitable, Coroutine, Mapping
from typing import Any, Literal, NamedTuple, cast

import jax

from gristmill import _errors, orbax
from gristmill._closing import Closing
from gristmill._fork import Origin
from gristmill._gristmill import DatasetIterator, IterDataset, MapDataset, Part, Report
from gristmill._transfer import transferring
from gristmill.jax._agreement import ENDED, FAILED, READY, Agreement
from gristmill.jax._ends import ENDS, Padding
from gristmill.jax._target import Target

_jax = cast("Any", jax)

# In a state: how many batches of padding were delivered behind the data.
_PADDING = "padding_batches"

# Batches that can be given back, as by a pass without devices.
_KEPT = 2


def device_put(
    ds: IterDataset | MapDataset | DatasetIterator,
    sharding: Any = None,
    buffer: int | None = None,
    *,
    depth: int | None = None,
    global_batch: int | None = None,
    end: Literal["drop", "pad", "agree"] | None = None,
    max_steps: int | None = None,
    pad_values: Mapping[str, Any] | None = None,
    weights: str = "weights",
) -> "DeviceIterator":
    """The batches of `ds` as JAX arrays, `buffer` of them sent ahead of the one that the consumer has: 2 at first.

    `ds` is a dataset, or a pass that was started: `ds.loader(threads=4)` makes batches on threads of its own, while
    the transfers are started by whoever calls `next`, each batch by one call. `sharding` is a device, a
    `jax.sharding.Sharding`, or a tree of them that is a prefix of the batches' own; without it, the batches go to JAX's
    default device. `depth` is another name for `buffer`, that of the Rust crate's `DevicePut`.

    Batches are trees (dicts, tuples, lists, whatever JAX knows) of numeric arrays and numbers. As everywhere in JAX,
    64-bit numbers become 32-bit ones unless `jax_enable_x64` is set; whole numbers that do not fit are refused.

    JAX may read the memory of a batch while the transfer runs. On a CPU it shares it for good, without a copy, where the
    rows of each device begin at a multiple of 64 bytes. Memory of gristmill is read-only and not used again while any
    array views it, so that is safe; a batch is held until it has arrived. A Python function that returns the same array
    again and again must return copies.

    **Several processes.** Where `sharding` reaches over several processes, each of them gives its part, and `global_batch`
    says how many rows all parts have together; arrays are always made with that shape. Of a pass with a part
    (`ds.loader(part=gm.jax.part_for(sharding, global_batch))`) each row goes to the devices that hold its number, in whatever order the part
    lists them; a part that lacks one of them is an error. Without one, a process gives the shard of `shard_for`. A
    batch that is short on one process is an error there. All processes must make the same calls in the same order, and
    the same number of steps, or those that make more wait in them for the others. `end` says how they come to that
    number:

    - `"agree"`, the one that is taken if nothing is said: with each batch that is sent ahead, all processes tell each
      other whether they have it, by a small computation over the devices. The pass ends on all of them in front of the
      first batch that one does not have, and what goes wrong on one process ends the others with an error, too. It is
      the one for filters and packing, after which nobody knows how many batches there are.
    - `"drop"`: the pass ends after `max_steps` batches: `steps_for` of the whole data. Nothing is told while it runs. A
      process whose data ends earlier raises `gristmill.DataError`.
    - `"pad"`: the pass has exactly `max_steps` batches of the same shape. A short batch is filled up with
      `pad_values[column]`, 0 where there is none, and behind the data come batches of padding alone. A column of
      `float32` more, named by `weights`, has 1 for a row of data and 0 for padding: a loss divides by its sum.

    Before the first batch all processes compare `end`, `max_steps`, `global_batch`, `buffer` and the step at which they
    start. Where one differs, all of them raise `gristmill.ConfigError` instead of waiting for each other for ever.

    In one process, too, `max_steps` is the most batches that there are, those before a resume counted, and `"pad"` fills
    batches up to `global_batch` rows; without `max_steps` the data says how many.

    Args:
        ds: A dataset, or a pass that was started.
        sharding: A device, a `jax.sharding.Sharding`, or a tree of them; JAX's default device if it is not given.
        buffer: Batches that are sent ahead; 2 by default.
        depth: Another name for `buffer`.
        global_batch: Rows of a batch, those of all processes together.
        end: The way in which processes come to the same number of batches; `"agree"` by default where there are several.
        max_steps: The most batches, those before a resume counted; no limit by default.
        pad_values: Numbers for rows of padding, by column; 0 by default.
        weights: The name of the column that says which rows are data, with `end="pad"`.

    Raises:
        ConfigError: Arguments exclude each other or are impossible; raised here or where the first batch is due.
    """
    if buffer is not None and depth is not None:
        raise _errors.make("config", f"a buffer of {buffer} and a depth of {depth}, two names for one number", None)
    ahead = next((number for number in (buffer, depth) if number is not None), 2)
    target = Target(sharding, global_batch, part_of(ds))
    return DeviceIterator(ds, target, ahead, end, max_steps, pad_values or {}, weights)


def part_of(ds: IterDataset | MapDataset | DatasetIterator) -> Part | None:
    """The part of every batch that is delivered, if it is one."""
    return ds.part if isinstance(ds, DatasetIterator) else None


class Sent(NamedTuple):
    """A batch under way, the host's memory it comes from, and the state behind it; or why there is none."""

    state: dict[str, Any]
    batch: Any = None
    host: Any = None
    failure: Exception | None = None
    # What all processes tell of it.
    told: Any = None

    def has_arrived(self) -> bool:
        """Of what was donated since nothing is known; JAX itself holds the memory that it still reads."""
        return all(array.is_deleted() or array.is_ready() for array in _jax.tree_util.tree_leaves(self.batch))

    def wait(self) -> None:
        for array in _jax.tree_util.tree_leaves(self.batch):
            if not array.is_deleted():
                array.block_until_ready()


class DeviceIterator(Closing):
    """A pass whose batches are JAX arrays: made by `device_put`, for one thread.

    Its state is where the consumer is, whatever was sent ahead, and that of a pass without devices, too, but for one
    taken among batches of padding. What goes wrong with a batch is raised when that batch is due; the pass ends there.

    JAX does not survive a fork: in a fork of the process that made it, whatever is asked of it raises
    `gristmill.WorkerError`, and `close` does nothing.
    """

    def __init__(
        self,
        ds: IterDataset | MapDataset | DatasetIterator,
        target: Target,
        buffer: int,
        end: str | None,
        max_steps: int | None,
        pad_values: Mapping[str, Any],
        weights: str,
    ) -> None:
        self._origin = Origin()
        if buffer < 0:
            raise _errors.make("config", f"a buffer of {buffer} batches; it is at least 0", None)
        together = target.widest()
        self._agreement = Agreement(together) if together is not None else None
        self._end = _chosen(end, max_steps, pad_values, together is not None)
        self._padding: Padding | None = None
        if self._end == "pad":
            if target.global_batch is None:
                raise _errors.make("config", 'end="pad" needs `global_batch`, the rows that a batch is filled up to', None)
            self._padding = Padding(target.rows_of(part_of(ds)), pad_values, weights)
        self._target = target
        self._buffer = buffer
        self._max_steps = max_steps
        self._source = ds if isinstance(ds, DatasetIterator) else ds.loader()
        self._ahead: deque[Sent] = deque()
        # Delivered, but not known to have arrived.
        self._held: deque[Sent] = deque()
        # Where the consumer was before the last batches, the latest first.
        self._earlier: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self._begin = self._source.get_state()
        self._start_at(self._begin)
        self._closed = False

    def _start_at(self, state: dict[str, Any]) -> None:
        self._state = self._sent_state = state
        self._earlier.clear()
        self._ended = False
        # Whether the processes are known to agree on what they do.
        self._checked = self._agreement is None
        # Whether the source may be ahead of what was sent, after an interrupt.
        self._astray = False

    def _check_process(self) -> None:
        self._origin.check("this iterator", "start the process by `spawn` or `forkserver`, and make an iterator there")

    def __next__(self) -> Any:
        self._check_open()
        while self._held and self._held[0].has_arrived():
            self._held.popleft()
        self.start_prefetch()
        if not self._ahead:
            raise StopIteration
        sent = self._ahead.popleft()
        failure = sent.failure
        if self._agreement is not None and sent.told is not None:
            failure = self._agreement.verdict(sent.told, failure)
        if failure is not None:
            self._ended = True
            # What others do not have is not delivered here either.
            self._held.extend(self._ahead)
            self._ahead.clear()
            raise failure
        if not sent.has_arrived():
            self._held.append(sent)
        self._earlier.appendleft(self._state)
        self._state = sent.state
        return sent.batch

    def start_prefetch(self) -> None:
        """Sends the first batches off before the first `next`."""
        self._check_process()
        if self._closed:
            return
        self._check_agreed()
        while len(self._ahead) <= self._buffer and not self._ended:
            if self._max_steps is not None and _step(self._sent_state) >= self._max_steps:
                self._ended = True
            else:
                self._ahead.append(self._send())

    def _check_agreed(self) -> None:
        """Raises, on all processes, where they do not all mean to do the same."""
        if self._agreement is None or self._checked:
            return
        settings = {
            "end": ENDS.index(self._end or "agree"),
            "max_steps": self._max_steps,
            "global_batch": self._target.global_batch,
            # How often all have told what they have, before any of them reads it.
            "buffer": self._buffer if self._end == "agree" else None,
            "the step to start at": _step(self._state),
        }
        for name, ((first, here), (other, there)) in self._agreement.compare(settings).items():
            said = [ENDS[value or 0] if name == "end" else value for value in (here, there)]
            message = f"{name} is {said[0]} on process {first} and {said[1]} on process {other}"
            raise _errors.make("config", message, "all processes need the same, or some would wait for others for ever")
        self._checked = True

    def _send(self) -> Sent:
        """Sends the next batch, or notes why there is none."""
        sent = self._made()
        self._sent_state = sent.state
        if self._agreement is not None and self._end == "agree":
            word = READY if sent.failure is None else ENDED if isinstance(sent.failure, StopIteration) else FAILED
            # Those that have ended go on telling it, as often as the others ask.
            return sent._replace(told=self._agreement.tell(word))
        self._ended = sent.failure is not None
        return sent

    def _made(self) -> Sent:
        try:
            if self._astray:
                self._go_to(self._sent_state)
            self._astray = True
            host, state = self._read()
            with transferring(self._source):
                batch = self._target.put(host, self._source.part)
            sent = Sent(state, batch, host)
        except Exception as failure:
            sent = Sent(self._sent_state, failure=self._early(failure))
        self._astray = False
        return sent

    def _read(self) -> tuple[Any, dict[str, Any]]:
        """The next batch on the host, and the state behind it."""
        try:
            host = next(self._source)
        except StopIteration:
            if self._padding is None or self._max_steps is None:
                raise
            if not self._padding.has_example:
                self._padding.fill(self._first())
            padding = self._sent_state.get(_PADDING, 0)
            return self._padding.empty(), {**self._sent_state, _PADDING: padding + 1}
        if self._padding is not None:
            host = self._padding.fill(host)
        return host, self._source.get_state()

    def _first(self) -> Any:
        """The first batch of this pass again: padding is made like it, where a resume begins behind the data."""
        self._source.set_state(self._begin)
        try:
            return next(self._source)
        except StopIteration:
            message = "this process has no batch, and a batch of padding is made like another one"
            help = "give every process at least one batch; hand in a pass at its start, and `set_state` then"
            raise _errors.make("data", message, help) from None
        finally:
            self._go_to(self._sent_state)

    def _go_to(self, state: dict[str, Any]) -> None:
        """Has the source go on behind `state`."""
        self._source.set_state({key: value for key, value in state.items() if key != _PADDING})

    def _early(self, failure: Exception) -> Exception:
        """An end that is an error where others go on."""
        if self._agreement is None or self._end != "drop" or not isinstance(failure, StopIteration):
            return failure
        done = f"the data of process {_jax.process_index()} ended after {_step(self._sent_state)} batches"
        help = 'max_steps=steps_for(len(…), global_batch), or end="agree"'
        return _errors.make("data", f"{done}, and all have {self._max_steps}", help)

    def get_state(self) -> dict[str, Any]:
        """Where the consumer is, whatever was sent ahead: positions, which JSON can hold."""
        self._check_process()
        return copy.deepcopy(self._state)

    def set_state(self, state: Mapping[str, Any] | str | bytes) -> None:
        """Goes to where `state` was taken: by this iterator, or by that of the same dataset without `device_put`."""
        self._check_process()
        place: dict[str, Any] = json.loads(state) if isinstance(state, (str, bytes)) else dict(state)
        padding = place.pop(_PADDING, 0)
        if padding and self._padding is None:
            message = f"the state is behind {padding} batches of padding, and this pass has none"
            raise _errors.make("state", message, 'resume with end="pad"')
        self._source.set_state(place)
        self._forget()
        place = self._source.get_state()
        self._start_at({**place, _PADDING: padding} if padding else place)

    def repart(self, part: Part | tuple[int, int] | str) -> None:
        """Delivers the rows of another part from the next batch on, without a restart: where hosts have come or gone.

        Batches that were sent ahead are made again. The devices stay: where they hold rows of several processes, the part
        has to have those.

        Args:
            part: The part, as for `loader`.

        Raises:
            ConfigError: There is no such part; the present one stays.
        """
        self._check_open()
        self._source.repart(part)
        if self._padding is not None:
            self._padding = self._padding.of_rows(self._target.rows_of(self._source.part))
        earlier = tuple(self._earlier)
        self._move(self._state)
        self._earlier.extend(earlier)

    def back(self, count: int = 1) -> None:
        """Gives the last batches back: they are delivered again, after a step that was not committed.

        Where `sharding` reaches over several processes, all of them call it.

        Args:
            count: How many; 2 at most, of those since the start or a `set_state`.

        Raises:
            StateError: There are not so many.
        """
        self._check_open()
        if count < 1:
            return
        if count > len(self._earlier):
            message = f"{count} batches back, and {len(self._earlier)} can be given back"
            help = f"at most {_KEPT}, of those since the start or a restore; older states are those that were saved"
            raise _errors.make("state", message, help)
        self._move(self._earlier[count - 1])

    @property
    def part(self) -> Part | None:
        """The part of every batch that is delivered, from the next batch on; `None` where all of it is."""
        self._check_open()
        return self._source.part

    def _move(self, state: dict[str, Any]) -> None:
        """Goes on from `state`, and lets go of what was sent ahead."""
        self._go_to(state)
        self._forget()
        self._start_at(state)

    def _check_open(self) -> None:
        self._check_process()
        if self._closed:
            raise ValueError("the iterator is closed")

    def save(self, directory: Any) -> Coroutine[Any, Any, Awaitable[None]]:
        """Writes the state into `directory`, by Orbax's protocol of objects that save themselves: see `gristmill.orbax`."""
        return orbax.save(self, directory)

    def load(self, directory: Any) -> Coroutine[Any, Any, Awaitable[None]]:
        """Goes to the state that `save` wrote into `directory`."""
        return orbax.load(self, directory)

    def report(self) -> Report:
        """Where the time went so far, on the host."""
        self._check_process()
        return self._source.report()

    def close(self) -> None:
        """Ends the pass, also the one that was handed in, and waits for the transfers that are under way."""
        self._closed = True
        if self._origin.is_here():
            self._source.close()
            self._forget()

    def _forget(self) -> None:
        for sent in (*self._held, *self._ahead):
            sent.wait()
        self._held.clear()
        self._ahead.clear()


def _step(state: Mapping[str, Any]) -> int:
    """How many batches were delivered up to `state`."""
    return int(state["delivered"]) + int(state.get(_PADDING, 0))


def _chosen(end: str | None, max_steps: int | None, pad_values: Mapping[str, Any], together: bool) -> str | None:
    """How the pass ends."""
    if end is not None and end not in ENDS:
        raise _errors.make("config", f"an end of {end!r}; it is one of {', '.join(ENDS)}", None)
    if max_steps is not None and max_steps < 1:
        raise _errors.make("config", f"max_steps is {max_steps}; it is at least 1", None)
    if pad_values and end != "pad":
        raise _errors.make("config", f"`pad_values` without padding: end is {end!r}", 'end="pad" pads')
    if not together:
        return end
    if end in ("drop", "pad") and max_steps is None:
        help = f"max_steps=gm.jax.steps_for(length, global_batch, {end!r}), with the length of the whole data"
        raise _errors.make("config", f"end={end!r} over several processes needs `max_steps`", help)
    return end or "agree"

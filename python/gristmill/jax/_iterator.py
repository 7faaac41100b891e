"""A pass that sends batches to the devices before the trainer requests them."""

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

# Key in a state: number of padding batches delivered after the data.
_PADDING = "padding_batches"

# Batches that `back` can return, as for a pass without devices.
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
    """Returns a pass over `ds` that yields JAX arrays and sends `buffer` batches ahead of the consumer.

    `ds` is a dataset or a started pass. `ds.loader(threads=4)` makes batches on its own threads; the thread that calls
    `next` starts the transfers, one call per batch. `sharding` is a device, a `jax.sharding.Sharding`, or a tree of
    them that is a prefix of the batches' tree; by default, batches go to JAX's default device. `depth` is an alias of
    `buffer`, named as in the Rust crate's `DevicePut`.

    Batches are trees (dicts, tuples, lists and nodes registered with JAX) of numeric arrays and numbers. As everywhere
    in JAX, 64-bit numbers become 32-bit unless `jax_enable_x64` is set. Integers out of the 32-bit range are an error.

    JAX may read the memory of a batch during the transfer. A CPU device shares the memory permanently, without a copy,
    if the rows of each device begin at a multiple of 64 bytes. Sharing is safe: gristmill's memory is read-only, and is
    not reused while an array views it. A batch is kept alive until it has arrived. A Python function that returns the
    same array repeatedly must return copies.

    **Several processes.** If `sharding` spans several processes, each process supplies its rows, and `global_batch` is
    the number of rows over all processes. Arrays always have that global shape. For a pass with a part
    (`ds.loader(part=gm.jax.part_for(sharding, global_batch))`), each row goes to the devices that hold its number, in
    any order of the part; a part that lacks a row is an error. Without a part, a process supplies the shard of
    `shard_for`. A process with a short batch raises an error. All processes must make the same calls in the same order
    and the same number of steps, else some wait forever. `end` selects how they agree on the number of steps:

    - `"agree"`, the default: all processes exchange whether they have the next batch, by a small computation over the
      devices per prefetched batch. All processes end before the first batch that any process lacks. An error on one
      process also ends the others with an error. Use this mode for filters and packing, which make the number of
      batches unknown.
    - `"drop"`: the pass ends after `max_steps` batches: `steps_for` of the whole dataset. Processes exchange nothing
      during the pass. A process whose data ends earlier raises `gristmill.DataError`.
    - `"pad"`: the pass has exactly `max_steps` batches of equal shape. Short batches are padded with
      `pad_values[column]`, 0 by default, and batches of padding follow the data. The added `float32` column `weights`
      is 1 for rows of data and 0 for padding: divide the loss by its sum.

    Before the first batch all processes compare `end`, `max_steps`, `global_batch`, `buffer` and their first step. If a
    setting differs, all processes raise `gristmill.ConfigError` instead of waiting for each other forever.

    On a single process, `max_steps` also limits the number of batches, including batches before a resume, and `"pad"`
    pads batches to `global_batch` rows. Without `max_steps` the data determines the number of batches.

    Args:
        ds: A dataset, or a started pass.
        sharding: A device, a `jax.sharding.Sharding`, or a tree of them; JAX's default device by default.
        buffer: Batches to send ahead; 2 by default.
        depth: Alias of `buffer`.
        global_batch: Rows of a batch over all processes.
        end: How processes agree on the number of batches; `"agree"` by default if there are several processes.
        max_steps: Maximum number of batches, including batches before a resume; no limit by default.
        pad_values: Values of padded rows, by column; 0 by default.
        weights: Name of the column that marks rows of data, with `end="pad"`.

    Raises:
        ConfigError: Arguments conflict or are invalid; raised here or at the first batch.
    """
    if buffer is not None and depth is not None:
        raise _errors.make("config", f"buffer={buffer} and depth={depth} are both given, and are one option", None)
    ahead = next((number for number in (buffer, depth) if number is not None), 2)
    target = Target(sharding, global_batch, part_of(ds))
    return DeviceIterator(ds, target, ahead, end, max_steps, pad_values or {}, weights)


def part_of(ds: IterDataset | MapDataset | DatasetIterator) -> Part | None:
    """Returns the part of a started pass; `None` for a dataset."""
    return ds.part if isinstance(ds, DatasetIterator) else None


class Sent(NamedTuple):
    """A batch in transfer with its host memory and the state after it, or the failure instead of a batch."""

    state: dict[str, Any]
    batch: Any = None
    host: Any = None
    failure: Exception | None = None
    # Handle of the processes' exchange about this batch.
    told: Any = None

    def has_arrived(self) -> bool:
        """Returns whether all arrays are ready. Donated arrays count as ready: JAX keeps the memory it still reads."""
        return all(array.is_deleted() or array.is_ready() for array in _jax.tree_util.tree_leaves(self.batch))

    def wait(self) -> None:
        for array in _jax.tree_util.tree_leaves(self.batch):
            if not array.is_deleted():
                array.block_until_ready()


class DeviceIterator(Closing):
    """A pass that yields JAX arrays, made by `device_put`. Use it from a single thread.

    Its state is the position of the consumer and excludes prefetched batches. A pass without devices accepts the state
    too, unless it was taken among batches of padding. The error of a batch is raised when that batch is due, and ends
    the pass.

    JAX does not survive a fork: in a forked process all methods raise `gristmill.WorkerError`, except `close`, which
    does nothing.
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
            raise _errors.make("config", f"buffer is {buffer}, and must be 0 or more", None)
        together = target.widest()
        self._agreement = Agreement(together) if together is not None else None
        self._end = _chosen(end, max_steps, pad_values, together is not None)
        self._padding: Padding | None = None
        if self._end == "pad":
            if target.global_batch is None:
                raise _errors.make("config", 'end="pad" requires `global_batch`, the number of rows of a padded batch', None)
            self._padding = Padding(target.rows_of(part_of(ds)), pad_values, weights)
        self._target = target
        self._buffer = buffer
        self._max_steps = max_steps
        self._source = ds if isinstance(ds, DatasetIterator) else ds.loader()
        self._ahead: deque[Sent] = deque()
        # Delivered batches that may still be in transfer.
        self._held: deque[Sent] = deque()
        # States of the consumer before the last batches, latest first.
        self._earlier: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self._begin = self._source.get_state()
        self._start_at(self._begin)
        self._closed = False

    def _start_at(self, state: dict[str, Any]) -> None:
        self._state = self._sent_state = state
        self._earlier.clear()
        self._ended = False
        # Whether the processes have compared their settings.
        self._checked = self._agreement is None
        # Whether the source may be ahead of the sent batches, after an interrupt.
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
            # Prefetched batches that other processes lack are not delivered here either.
            self._held.extend(self._ahead)
            self._ahead.clear()
            raise failure
        if not sent.has_arrived():
            self._held.append(sent)
        self._earlier.appendleft(self._state)
        self._state = sent.state
        return sent.batch

    def start_prefetch(self) -> None:
        """Sends the first batches before the first `next`."""
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
        """Raises on all processes if their settings differ."""
        if self._agreement is None or self._checked:
            return
        settings = {
            "end": ENDS.index(self._end or "agree"),
            "max_steps": self._max_steps,
            "global_batch": self._target.global_batch,
            # Number of exchanges that are sent before the first is read.
            "buffer": self._buffer if self._end == "agree" else None,
            "the first step": _step(self._state),
        }
        for name, ((first, here), (other, there)) in self._agreement.compare(settings).items():
            said = [ENDS[value or 0] if name == "end" else value for value in (here, there)]
            message = f"{name} is {said[0]} on process {first} and {said[1]} on process {other}"
            raise _errors.make("config", message, "use equal settings on all processes: otherwise some of them wait forever")
        self._checked = True

    def _send(self) -> Sent:
        """Sends the next batch, or records the failure."""
        sent = self._made()
        self._sent_state = sent.state
        if self._agreement is not None and self._end == "agree":
            word = READY if sent.failure is None else ENDED if isinstance(sent.failure, StopIteration) else FAILED
            # A process that has ended still takes part in every exchange.
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
        """Returns the next batch on the host, and the state after it."""
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
        """Returns the first batch of this pass again, as the example for padding if a resume begins after the data."""
        self._source.set_state(self._begin)
        try:
            return next(self._source)
        except StopIteration:
            message = "this process has no batch, and a batch of padding needs an example"
            help = "give every process at least one batch; pass a loader at its start, and call `set_state` afterwards"
            raise _errors.make("data", message, help) from None
        finally:
            self._go_to(self._sent_state)

    def _go_to(self, state: dict[str, Any]) -> None:
        """Moves the source to `state`."""
        self._source.set_state({key: value for key, value in state.items() if key != _PADDING})

    def _early(self, failure: Exception) -> Exception:
        """Returns the failure, or an error instead of an early end of the data with `end="drop"`."""
        if self._agreement is None or self._end != "drop" or not isinstance(failure, StopIteration):
            return failure
        done = f"the data of process {_jax.process_index()} ended after {_step(self._sent_state)} batches"
        help = 'max_steps=steps_for(len(…), global_batch), or end="agree"'
        return _errors.make("data", f"{done}, and max_steps is {self._max_steps}", help)

    def get_state(self) -> dict[str, Any]:
        """Returns the position of the consumer as values for JSON. Prefetched batches do not count."""
        self._check_process()
        return copy.deepcopy(self._state)

    def set_state(self, state: Mapping[str, Any] | str | bytes) -> None:
        """Moves to `state`, a state of this iterator or of a pass over the same dataset without `device_put`."""
        self._check_process()
        place: dict[str, Any] = json.loads(state) if isinstance(state, (str, bytes)) else dict(state)
        padding = place.pop(_PADDING, 0)
        if padding and self._padding is None:
            message = f"the state is after {padding} batches of padding, and this pass does not pad"
            raise _errors.make("state", message, 'resume with end="pad"')
        self._source.set_state(place)
        self._forget()
        place = self._source.get_state()
        self._start_at({**place, _PADDING: padding} if padding else place)

    def repart(self, part: Part | tuple[int, int] | str) -> None:
        """Switches to another part from the next batch on, without a restart, after hosts have joined or left.

        Prefetched batches are made again. The devices stay unchanged: if they hold rows of several processes, the part
        must have these rows.

        Args:
            part: The part, as for `loader`.

        Raises:
            ConfigError: The part is invalid; the current part stays.
        """
        self._check_open()
        self._source.repart(part)
        if self._padding is not None:
            self._padding = self._padding.of_rows(self._target.rows_of(self._source.part))
        earlier = tuple(self._earlier)
        self._move(self._state)
        self._earlier.extend(earlier)

    def back(self, count: int = 1) -> None:
        """Returns the last batches to the pass, which delivers them again, after a step that was not committed.

        If `sharding` spans several processes, all processes must call it.

        Args:
            count: Number of batches; at most 2, all delivered since the start or a `set_state`.

        Raises:
            StateError: Fewer than `count` batches can be returned.
        """
        self._check_open()
        if count < 1:
            return
        if count > len(self._earlier):
            message = f"cannot go back {count} batches, only {len(self._earlier)} are kept"
            help = f"at most {_KEPT} elements since the start or a restore are kept; for older positions, restore a saved state"
            raise _errors.make("state", message, help)
        self._move(self._earlier[count - 1])

    @property
    def part(self) -> Part | None:
        """The part of every batch that is delivered from the next batch on; `None` for whole batches."""
        self._check_open()
        return self._source.part

    def _move(self, state: dict[str, Any]) -> None:
        """Continues from `state` and drops the prefetched batches."""
        self._go_to(state)
        self._forget()
        self._start_at(state)

    def _check_open(self) -> None:
        self._check_process()
        if self._closed:
            raise ValueError("the iterator is closed")

    def save(self, directory: Any) -> Coroutine[Any, Any, Awaitable[None]]:
        """Writes the state to `directory`, by Orbax's protocol for checkpointable objects: see `gristmill.orbax`."""
        return orbax.save(self, directory)

    def load(self, directory: Any) -> Coroutine[Any, Any, Awaitable[None]]:
        """Restores the state that `save` wrote to `directory`."""
        return orbax.load(self, directory)

    def report(self) -> Report:
        """Returns the report of the pass so far, on the host."""
        self._check_process()
        return self._source.report()

    def close(self) -> None:
        """Ends the pass, including the pass given to `device_put`, and waits for transfers in progress."""
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
    """Returns the number of batches delivered up to `state`."""
    return int(state["delivered"]) + int(state.get(_PADDING, 0))


def _chosen(end: str | None, max_steps: int | None, pad_values: Mapping[str, Any], together: bool) -> str | None:
    """Checks the options and returns how the pass ends."""
    if end is not None and end not in ENDS:
        raise _errors.make("config", f"end is {end!r}, and must be one of {', '.join(ENDS)}", None)
    if max_steps is not None and max_steps < 1:
        raise _errors.make("config", f"max_steps is {max_steps}, and must be 1 or more", None)
    if pad_values and end != "pad":
        raise _errors.make("config", f"`pad_values` is given without padding: end is {end!r}", 'set end="pad"')
    if not together:
        return end
    if end in ("drop", "pad") and max_steps is None:
        help = f"max_steps=gm.jax.steps_for(length, global_batch, {end!r}), with the length of the whole data"
        raise _errors.make("config", f"end={end!r} over several processes requires `max_steps`", help)
    return end or "agree"

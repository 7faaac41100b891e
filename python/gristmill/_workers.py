"""The start of worker processes: their payload, program, arguments and options."""

from __future__ import annotations

import dataclasses
import marshal
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gristmill._errors import ConfigError
from gristmill._gristmill import IterDataset
from gristmill._by_value import largest, pickled
from gristmill._options import MpOptions, given
from gristmill._recipe import Plan, datasets_in, recipe

if TYPE_CHECKING:
    from collections.abc import Callable

    from gristmill._recipe import Dataset

#: Size in bytes from which the largest value of a payload is named.
LARGE = 16 << 20
#: First byte of a payload, by its encoding.
MARSHALLED, PICKLED = b"m", b"p"


@dataclasses.dataclass
class Launch:
    """The configuration of the workers that evaluate `dataset`."""

    dataset: IterDataset
    #: Returns the payload of workers, the modules to preload, and a message about the largest function. It runs while the process
    #: that forks workers starts.
    payload: Callable[[], tuple[bytes, list[str], str | None]]
    program: str
    arguments: list[str]
    folder: str | None
    #: Arguments of the process that forks workers; `None` if workers start directly.
    to_fork: list[str] | None
    #: Options of the workers by name. The numbers of workers and threads depend on the functions.
    options: dict[str, Any]
    #: Whether workers run Python functions.
    interpreted: bool
    #: Initial numbers of workers and of threads per worker, if they are tuned; `None` otherwise.
    start_workers: int | None
    start_threads: int | None
    #: Number of elements kept ready.
    buffer: int


def launch(dataset: Dataset) -> Launch | None:
    """Returns the workers for the stages before `mp_prefetch`; `None` if `dataset` has no `mp_prefetch`."""
    found = _find(dataset)
    if found is None:
        return None
    evaluated, options, init = found
    plan = Plan(evaluated)
    native = not plan.foreign and init is None
    start_workers = start_threads = None
    if not native:
        options, start_workers, start_threads = _of_functions(options, counts=init is not None)
    return Launch(
        dataset=evaluated,
        payload=partial(_native, plan) if native else partial(_pickled, plan, init, options),
        program=_interpreter(),
        arguments=_arguments(native),
        folder=current_folder(),
        to_fork=None if native or options.count == 0 else _to_fork(),
        options=options.by_name(),
        interpreted=not native,
        start_workers=start_workers,
        start_threads=start_threads,
        buffer=options.per_worker_buffer_size * max(1, options.count or start_workers or 1),
    )


def elsewhere(dataset: IterDataset, workers: int) -> tuple[IterDataset, bytes, bool]:
    """Returns the dataset that workers on other machines evaluate, their payload, and whether they run Python functions."""
    evaluated, _, init = _find(dataset) or (dataset, None, None)
    plan = Plan(evaluated)
    if not plan.foreign and init is None:
        return evaluated, _native(plan)[0], False
    return evaluated, _written(plan, init, workers)[0], True


def _find(last: Dataset) -> tuple[IterDataset, MpOptions, Any] | None:
    dataset, options = last, None
    # The last dataset inside lanes. Workers evaluate lanes completely.
    lanes: IterDataset | None = None
    while True:
        _, method, args, kwargs = recipe(dataset)
        if lanes is None and isinstance(dataset, IterDataset) and getattr(dataset, "_in_lanes"):
            lanes = dataset
        if method == "mp_prefetch" and isinstance(dataset, IterDataset):
            return lanes or dataset, *_asked(args, kwargs)
        parents = list(datasets_in((*args, *kwargs.values())))
        if len(parents) != 1:
            # If a stream of several has workers, they evaluate all streams.
            options = next((asked for asked in map(_find, parents) if asked is not None), None)
            return (dataset, *options[1:]) if options and isinstance(dataset, IterDataset) else None
        dataset = parents[0]


def _asked(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[MpOptions, Any]:
    _, options, init, *_ = (*args, None, None, None)
    keywords = dict(kwargs)
    options, init = keywords.pop("options", options), keywords.pop("worker_init_fn", init)
    return given(options, **keywords), init


#: Maximum number of workers of Python functions that tuning starts.
MOST_WORKERS = 64


def _of_functions(options: MpOptions, *, counts: bool) -> tuple[MpOptions, int | None, int | None]:
    """Returns the options for Python functions, and the initial numbers of workers and of threads per worker.

    `counts` is true if each worker receives the number of workers.
    """
    workers, most, threads = options.count, options.max_workers, options.threads_per_worker
    start_workers = start_threads = None
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if workers is None and most is None:
        if options.tune and not counts:
            most, start_workers = max(cores, MOST_WORKERS), cores
        else:
            workers = cores
    if workers is None and threads is None and options.tune:
        # Tuning adds threads if the functions release the interpreter's lock while they wait.
        start_threads = 1
    elif workers != 0 and threads is None:
        threads = 1
    chosen = dataclasses.replace(
        options, num_workers=workers, workers="auto", max_workers=most, threads_per_worker=threads
    )
    return chosen, start_workers, start_threads


#: Ignores Ctrl-C while a worker loads. The trainer handles it.
_DEAF = "import _signal; _signal.signal(_signal.SIGINT, _signal.SIG_IGN)"


def _interpreter() -> str:
    if not sys.executable:
        raise ConfigError("worker processes need a Python interpreter, and sys.executable is empty")
    return sys.executable


def _arguments(native: bool) -> list[str]:
    if native:
        # Native stages need only this package. Without site packages, the start takes a third of the time.
        folder = str(Path(__file__).parents[1])
        program = f"{_DEAF}; import sys; sys.path.append({folder!r}); from gristmill._worker import main; main()"
        return ["-I", "-S", "-E", "-c", program]
    return ["-c", f"{_places()}; from gristmill._worker import main; main()"]


def _places() -> str:
    places = f"{_DEAF}; import sys; sys.path[:] = {sys.path!r}; sys.argv[:] = {sys.argv!r}"
    # If Grain's interface is installed here, user modules also find it in workers.
    shim = sys.modules.get("gristmill.compat.grain._install")
    if shim is not None and shim.is_installed():
        places += "; import gristmill.compat.grain; gristmill.compat.grain.install()"
    return places


def _to_fork() -> list[str]:
    return ["-c", f"{_places()}; from gristmill._zygote import main; main({os.getpid()})"]


def current_folder() -> str | None:
    """Returns the current folder of this process; `None` if it no longer exists."""
    try:
        return os.getcwd()
    except OSError:
        return None


def _native(plan: Plan) -> tuple[bytes, list[str], None]:
    return MARSHALLED + marshal.dumps(plan.steps), [], None


def _pickled(plan: Plan, init: Any, options: MpOptions) -> tuple[bytes, list[str], str | None]:
    if options.count == 0:
        # Without workers, this process calls its own functions.
        return PICKLED, [], None
    payload, values = _written(plan, init, options.count or options.max_workers or 1)
    # Modules that functions use are loaded once for all workers.
    modules = [name for name in ("cloudpickle", "numpy") if name.encode() in payload]
    return payload, modules, largest(values) if len(payload) >= LARGE else None


def _written(plan: Plan, init: Any, workers: int) -> tuple[bytes, list[tuple[str, Any]]]:
    """Returns the payload for `workers` workers, and the user's objects in it, each with the name of its method."""
    values = [*plan.foreign, ("worker_init_fn", init)]
    return pickled((plan.steps, init, workers), values, PICKLED), values

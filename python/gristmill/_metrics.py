"""Figures of a pass for dashboards."""

from typing import Any

from gristmill import _errors
from gristmill._gristmill import Report


def metrics(loader: Any) -> dict[str, float]:
    """Returns the current figures of a pass under stable, flat names: `input/wait_share`, `input/elements_per_s`, ….

    May be called at any time, from any thread: it only reads existing counters. Returns an empty dict for a pass that
    is closed, or that belongs to the parent of a forked process.

    Args:
        loader: A pass: the result of `loader()`, or of a function in `gm.jax`, `gm.torch` or `gm.ray`.

    Returns:
        Numbers by name. The suffix of a name is its unit: `_share` (0 to 1), `_s` (seconds), `_bytes`, `_per_s`.

    Raises:
        ConfigError: `loader` is not a pass.
    """
    found = report(loader)
    return {} if found is None else found.metrics()


def report(loader: Any) -> Report | None:
    """Returns the report of a pass, or `None` if no report is available.

    Raises:
        ConfigError: `loader` is not a pass.
    """
    ask = getattr(loader, "report", None)
    if not callable(ask):
        told = f"there are no metrics of {type(loader).__name__}: it is no pass over a dataset"
        raise _errors.make("config", told, "pass the result of `loader()`, and loop over it")
    try:
        found = ask()
    except (ValueError, RuntimeError, _errors.Error):
        # The pass is closed, belongs to another process, or was queried from a function of its own pipeline.
        return None
    return found if isinstance(found, Report) else None

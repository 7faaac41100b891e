"""Figures of a pass for dashboards."""

from typing import Any

from gristmill import _errors
from gristmill._gristmill import Report


def metrics(loader: Any) -> dict[str, float]:
    """Says how a pass is going, under flat names that stay: `input/wait_share`, `input/elements_per_s`, ….

    It may be asked at any time and from any thread: it reads what is counted anyway. It does not raise: a pass that is closed, or was
    started by the process that this one is a fork of, gives nothing.

    Args:
        loader: A pass: what `loader()` gives, or `gm.jax`, `gm.torch` and `gm.ray` do.

    Returns:
        Numbers by name. A name ends in its unit, where it has one: `_share` (0 to 1), `_s` (seconds), `_bytes`, `_per_s`.

    Raises:
        ConfigError: `loader` is no pass.
    """
    found = report(loader)
    return {} if found is None else found.metrics()


def report(loader: Any) -> Report | None:
    """The report of a pass, if there is one to be had.

    Raises:
        ConfigError: `loader` is no pass.
    """
    ask = getattr(loader, "report", None)
    if not callable(ask):
        told = f"there are no metrics of {type(loader).__name__}: it is no pass over a dataset"
        raise _errors.make("config", told, "give it what `loader()` returns, and loop over the same")
    try:
        found = ask()
    except (ValueError, RuntimeError, _errors.Error):
        # Closed, of another process, or asked by a function of its own pipeline.
        return None
    return found if isinstance(found, Report) else None

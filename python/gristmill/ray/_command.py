"""Actors for the command line: `gristmill run … --on ray://auto`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gristmill.ray._cluster import prepared

if TYPE_CHECKING:
    from gristmill.ray._engine import Engine


def engine(cluster: str, payload: bytes, actors: tuple[int, int], threads: int, ram_budget: int) -> Engine:
    """Returns an engine that starts actors of `cluster`, which build the pipeline file in `payload`."""
    started = prepared(cluster, actors=actors, cpus=threads, threads=threads, ram_budget=ram_budget)
    started.take(payload)
    return started

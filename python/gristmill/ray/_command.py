"""Actors for the command line: `gristmill run … --on ray://auto`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gristmill.ray._cluster import prepared

if TYPE_CHECKING:
    from gristmill.ray._engine import Engine


def engine(cluster: str, payload: bytes, actors: tuple[int, int], threads: int, ram_budget: int) -> Engine:
    """The way in which actors of `cluster` are started that make a pipeline file of `payload`."""
    started = prepared(cluster, actors=actors, cpus=threads, threads=threads, ram_budget=ram_budget)
    started.take(payload)
    return started

"""Grain's `proto`. Its messages require the package `protobuf`, which is imported on first use."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name == "execution_summary_pb2":
        return import_module("gristmill.compat.grain.proto.execution_summary_pb2")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

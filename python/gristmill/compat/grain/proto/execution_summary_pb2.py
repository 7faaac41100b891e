"""The messages of Grain's debug mode, compatible with Grain's serialized messages.

DIFFERENCE: no pipeline produces them, because there is no debug mode: `report()` shows where the time goes. The
messages belong to a separate descriptor pool, so Grain's own messages can be imported too.
"""

from importlib import import_module
from typing import Any


def _protobuf(module: str) -> Any:
    try:
        return import_module(f"google.protobuf.{module}")
    except ImportError as error:
        raise ImportError("grain.proto needs the package protobuf: pip install protobuf") from error


_descriptor = _protobuf("descriptor_pb2")
_class_of = _protobuf("message_factory").GetMessageClass
_PACKAGE = "grain.python.execution_summary"
_SUMMARY = f".{_PACKAGE}.ExecutionSummary"
_Field = _descriptor.FieldDescriptorProto

# Numbers and types of the fields of a node.
_NODE = {
    "id": (2, _Field.TYPE_INT32),
    "name": (3, _Field.TYPE_STRING),
    "inputs": (4, _Field.TYPE_INT32),
    "wait_time_ratio": (5, _Field.TYPE_DOUBLE),
    "total_processing_time_ns": (6, _Field.TYPE_INT64),
    "min_processing_time_ns": (7, _Field.TYPE_INT64),
    "max_processing_time_ns": (8, _Field.TYPE_INT64),
    "num_produced_elements": (9, _Field.TYPE_INT64),
    "output_spec": (10, _Field.TYPE_STRING),
    "is_output": (11, _Field.TYPE_BOOL),
    "is_prefetch": (12, _Field.TYPE_BOOL),
    "bytes_consumed": (13, _Field.TYPE_INT64),
    "bytes_produced": (14, _Field.TYPE_INT64),
}


def _add(message: Any, name: str, number: int, kind: int | str, repeated: bool = False) -> None:
    """Adds a field of a scalar type, or of the message type with the given name."""
    label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
    field = message.field.add(name=name, number=number, label=label)
    if isinstance(kind, str):
        field.type, field.type_name = _Field.TYPE_MESSAGE, kind
    else:
        field.type = kind


def _file() -> Any:
    """Returns the description of both messages."""
    file = _descriptor.FileDescriptorProto(
        name="grain/proto/execution_summary.proto", package=_PACKAGE, syntax="proto3"
    )
    summary = file.message_type.add(name="ExecutionSummary")
    _add(summary, "nodes", 1, f"{_SUMMARY}.NodesEntry", repeated=True)
    node = summary.nested_type.add(name="Node")
    for name, (number, kind) in _NODE.items():
        _add(node, name, number, kind, repeated=name == "inputs")
    # protobuf encodes a map as a list of entries.
    entry = summary.nested_type.add(name="NodesEntry")
    entry.options.map_entry = True
    _add(entry, "key", 1, _Field.TYPE_INT32)
    _add(entry, "value", 2, f"{_SUMMARY}.Node")
    summaries = file.message_type.add(name="ExecutionSummaries")
    _add(summaries, "execution_summaries", 1, _SUMMARY, repeated=True)
    return file


def _message(name: str) -> Any:
    """Returns the class of a message with its nested classes, set up so that unpickling finds it in this module."""
    descriptor = DESCRIPTOR.message_types_by_name[name]
    message: Any = _class_of(descriptor)
    message.__module__ = __name__
    for inner in descriptor.nested_types:
        setattr(message, inner.name, _class_of(inner))
    return message


DESCRIPTOR: Any = _protobuf("descriptor_pool").DescriptorPool().AddSerializedFile(_file().SerializeToString())
ExecutionSummary = _message("ExecutionSummary")
ExecutionSummaries = _message("ExecutionSummaries")

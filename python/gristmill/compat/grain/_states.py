"""States under Grain's names, and back under the core's.

A state of the core is a tree with one node for each stage that has a position. What kind of stage a node belongs to is
known by its fields, so no pipeline is needed to rename them.
"""

from collections.abc import Mapping
from typing import Any, cast

# Fields of the core, Grain's names for them, and fields that Grain's states lack, with what they are when they matter not.
_KINDS: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({"next_index": "next_index"}, {"dropped": 0, "skipped": 0}),
    ({"window_start": "parent_window_start_state", "window": "window_index", "position": "pos_in_window"}, {}),
    ({"parent": "parent", "epoch": "epoch"}, {"empty": False}),
    ({"parents": "parents"}, {"stop": False}),
    ({"given": "next_index_in_buffer", "parent": "parent"}, {}),
    ({"parent": "parent", "row": "batch_idx"}, {}),
]
_OF_CORE = {frozenset([*names, *rest]): (names, rest) for names, rest in _KINDS}
_OF_GRAIN = {frozenset(names.values()): (names, rest) for names, rest in _KINDS}


def is_opaque(state: Mapping[str, Any]) -> bool:
    """Whether it is what an iterator of the user's own returned."""
    return set(state) == {"python"}


def to_grain(state: Any) -> Any:
    """A state of the core under Grain's names."""
    if isinstance(state, list):
        parts: list[Any] = state
        return [to_grain(part) for part in parts]
    if not isinstance(state, dict) or is_opaque(cast("dict[str, Any]", state)):
        return cast(Any, state)
    node = cast("dict[str, Any]", state)
    kind = _OF_CORE.get(frozenset(node))
    if kind is None:
        return {name: to_grain(part) for name, part in node.items()}
    names, rest = kind
    out = {theirs: to_grain(node[ours]) for ours, theirs in names.items()}
    out.update({name: node[name] for name, usual in rest.items() if node[name] != usual and name not in _PASSING})
    return out


# Counts for thresholds and reports, which start anew.
_PASSING = frozenset(["dropped", "skipped"])


def to_core(state: Any) -> Any:
    """The core's state that `to_grain` was given."""
    if isinstance(state, list):
        parts: list[Any] = state
        return [to_core(part) for part in parts]
    if not isinstance(state, dict) or is_opaque(cast("dict[str, Any]", state)):
        return cast(Any, state)
    node = cast("dict[str, Any]", state)
    for fields, (names, rest) in _OF_GRAIN.items():
        if fields <= node.keys() <= fields | rest.keys():
            out = {ours: to_core(node[theirs]) for ours, theirs in names.items()}
            out.update({name: node.get(name, usual) for name, usual in rest.items()})
            return out
    return {name: to_core(part) for name, part in node.items()}

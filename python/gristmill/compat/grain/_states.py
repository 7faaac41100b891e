"""Conversion of states between the core's names and Grain's names.

A core state is a tree with a node per stage that has a position. The fields of a node identify its kind of stage, so
the conversion does not need the pipeline. States written by Grain are also read.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

# Core fields with Grain's names, and core fields that Grain's states lack, with their neutral values.
_KINDS: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({"next_index": "next_index"}, {"dropped": 0, "in_a_row": 0, "skipped": 0}),
    ({"window_start": "parent_window_start_state", "window": "window_index", "position": "pos_in_window"}, {}),
    ({"parent": "parent", "epoch": "epoch"}, {"empty": False}),
    ({"parents": "parents"}, {"stop": False}),
    ({"given": "next_index_in_buffer", "parent": "parent"}, {}),
    ({"parent": "parent", "row": "batch_idx"}, {}),
]
_OF_CORE = {frozenset([*names, *rest]): (names, rest) for names, rest in _KINDS}
_OF_GRAIN = {frozenset(names.values()): (names, rest) for names, rest in _KINDS}
# Kinds with several names in Grain but only one in the core, and the state of Grain's cache.
_OF_GRAIN[frozenset(["parent", "index_for_rng"])] = ({"parent": "parent", "counter": "index_for_rng"}, {})
_OF_GRAIN[frozenset(["parent", "count_elements_read"])] = ({"parent": "parent", "counter": "count_elements_read"}, {})
_OF_GRAIN[frozenset(["parent", "position", "cache_filled"])] = ({"position": "position"}, {})

# A stage with several outputs per input that is evaluated together with the stage before it.
_FAN = frozenset(["given", "stream"])

# Interleaved streams. Grain stores a list per field of a slot.
_LANES = frozenset(["next_slot", "next_lane", "slots"])
_INTERLEAVED = "iterators_in_use_indices"
PLACES = (_INTERLEAVED, "iterators_in_use_states", "exhausted")
# States of streams whose turn has not come: the core's field and Grain's field.
_WAITING, _FUTURE = "waiting", "future_states"

# A filter of a stream. In Grain it has its parent's state, which the core also reads.
_FILTER = frozenset(["parent", "seen", "dropped"])

# Counts for thresholds and reports, which restart from 0.
_PASSING = frozenset(["dropped", "in_a_row", "skipped"])

# Start of a group of packed rows in Grain, and the number of rows already delivered from it.
_PACKED = frozenset(["parent", "next_row", "counter"])

# Start of a group of split rows in Grain, including the offset of the first element.
_CUT = frozenset(["parent_state", "remainder_slices", "elements_from_buffer_after_checkpoint"])

_Node = dict[str, Any]


def is_opaque(state: Mapping[str, Any]) -> bool:
    """Returns whether `state` is the state of a custom iterator."""
    return set(state) == {"python"}


def _is_named(state: Any) -> bool:
    """Returns whether `state` belongs to a mix of named streams: a source in the core, an ordinary stage in Grain."""
    return isinstance(state, dict) and isinstance(cast(_Node, state).get("parents"), dict)


def to_grain(state: Any) -> Any:
    """Converts a core state to Grain's names."""
    return _each_node(state, _node_to_grain)


def to_core(state: Any) -> Any:
    """Converts a state with Grain's names to a core state."""
    return _each_node(state, _node_to_core)


def _each_node(state: Any, rename: Callable[[_Node, Callable[[Any], Any]], Any]) -> Any:
    """Returns a tree of the renamed nodes. `rename` also receives a function that converts nested nodes."""

    def go(part: Any) -> Any:
        if isinstance(part, list):
            return [go(one) for one in part]
        if not isinstance(part, dict):
            return part
        return rename(cast(_Node, part), go)

    return go(state)


def _node_to_grain(node: _Node, inside: Callable[[Any], Any]) -> Any:
    if is_opaque(node):
        return node["python"] if _is_named(node["python"]) else node
    if node.keys() == _FILTER:
        return inside(node["parent"])
    if node.keys() == _FAN:
        return {"parent": inside(node["stream"]), "next_index_in_buffer": node["given"]}
    if _LANES <= node.keys() <= _LANES | {_WAITING}:
        return _interleaved(node, inside)
    kind = _OF_CORE.get(frozenset(node))
    if kind is None:
        return {name: inside(part) for name, part in node.items()}
    names, rest = kind
    out = {theirs: inside(node[ours]) for ours, theirs in names.items()}
    out.update({name: node[name] for name, usual in rest.items() if node[name] != usual and name not in _PASSING})
    return out


def _node_to_core(node: _Node, inside: Callable[[Any], Any]) -> Any:
    if is_opaque(node):
        return node
    if _is_named(node):
        return {"python": node}
    if _INTERLEAVED in node:
        return _lanes(node, inside)
    if node.get("epoch"):
        _check_ends(node["parent"])
    if node.keys() == _PACKED:
        return _packed(node, inside)
    if node.keys() == _CUT:
        return _cut(node, inside)
    for fields, (names, rest) in _OF_GRAIN.items():
        if fields <= node.keys() <= fields | rest.keys():
            out = {ours: inside(node[theirs]) for ours, theirs in names.items()}
            out.update({name: node.get(name, usual) for name, usual in rest.items()})
            return out
    return {name: inside(part) for name, part in node.items()}


def _check_ends(state: Any) -> None:
    """Raises `ValueError` for an interleave state from a later epoch: Grain marks open streams in it as ended."""
    if isinstance(state, list):
        for part in state:
            _check_ends(part)
    elif isinstance(state, dict):
        node = cast(_Node, state)
        places = zip(*(node[name] for name in PLACES), strict=True) if _INTERLEAVED in node else ()
        # A core state has no state for an ended stream.
        if any(ended and state is not None for _, state, ended in places):
            raise ValueError(
                "a state that Grain wrote in a later epoch of an interleave does not say which streams have ended: go on from one of "
                "the first epoch"
            )
        for part in node.values():
            _check_ends(part)


def _packed(node: _Node, inside: Callable[[Any], Any]) -> _Node:
    # The elements of a group are counted from its first element.
    first = {"state": inside(node["parent"]), "skip": 0, "number": 0}
    return {"parent": first, "cut": [], "rows_before": node["counter"] - node["next_row"], "row": node["next_row"]}


def _cut(node: _Node, inside: Callable[[Any], Any]) -> _Node:
    # A slice starting at -1 is a whole feature.
    starts = [max(start, 0) for _, (start, _) in sorted(node["remainder_slices"].items())]
    first = {"state": inside(node["parent_state"]), "skip": 0, "number": 0}
    done = node["elements_from_buffer_after_checkpoint"]
    return {"parent": first, "cut": starts if any(starts) else [], "rows_before": 0, "row": done}


def _interleaved(node: _Node, inside: Callable[[Any], Any]) -> _Node:
    slots: list[_Node | None] = node["slots"]
    return {
        "next_index_in_cycle": node["next_slot"],
        "next_index_in_datasets": node["next_lane"],
        _INTERLEAVED: [-1 if slot is None else slot["lane"] for slot in slots],
        "iterators_in_use_states": [None if slot is None else inside(slot["state"]) for slot in slots],
        # A slot with an ended stream equals a slot that never had one: the next stream takes it.
        "exhausted": [int(slot is None) for slot in slots],
        _FUTURE: {one["lane"]: one["state"] and inside(one["state"]) for one in node.get(_WAITING, ())},
    }


def waiting(state: Mapping[str, Any]) -> list[tuple[int, Any]]:
    """Returns the start states of the streams whose turn has not come, by number; `None` for an ended stream."""
    # JSON turns integer keys into text.
    return sorted((int(lane), inner) for lane, inner in state.get(_FUTURE, {}).items())


def _lanes(node: _Node, inside: Callable[[Any], Any]) -> _Node:
    places = zip(*(node[name] for name in PLACES), strict=True)
    slots = [
        None if ended or state is None else {"lane": lane, "state": inside(state)} for lane, state, ended in places
    ]
    later = [{"lane": lane, "state": state and inside(state)} for lane, state in waiting(node)]
    out = {"next_slot": node["next_index_in_cycle"], "next_lane": node["next_index_in_datasets"], "slots": slots}
    return {**out, _WAITING: later} if later else out

"""States under Grain's names, and back under the core's.

A state of the core is a tree with one node for each stage that has a position. What kind of stage a node belongs to is
known by its fields, so no pipeline is needed to rename them. States that Grain wrote are read, too.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

# Fields of the core, Grain's names for them, and fields that Grain's states lack, with what they are when they matter not.
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
# What Grain has other names for where the core has one, and what it keeps of its cache.
_OF_GRAIN[frozenset(["parent", "index_for_rng"])] = ({"parent": "parent", "counter": "index_for_rng"}, {})
_OF_GRAIN[frozenset(["parent", "count_elements_read"])] = ({"parent": "parent", "counter": "count_elements_read"}, {})
_OF_GRAIN[frozenset(["parent", "position", "cache_filled"])] = ({"position": "position"}, {})

# A stage that makes several elements of one, where it is evaluated with what is in front of it.
_FAN = frozenset(["given", "stream"])

# Streams in turn: Grain has a list for each field of a place.
_LANES = frozenset(["next_slot", "next_lane", "slots"])
_INTERLEAVED = "iterators_in_use_indices"
PLACES = (_INTERLEAVED, "iterators_in_use_states", "exhausted")
# Where streams begin whose turn has not come, in both.
_WAITING, _FUTURE = "waiting", "future_states"

# A filter of a stream, which in Grain has the state of its parent; the core reads that, too.
_FILTER = frozenset(["parent", "seen", "dropped"])

# Counts for thresholds and reports, which start anew.
_PASSING = frozenset(["dropped", "in_a_row", "skipped"])

# Where a group of Grain's packed rows began, and how far it has come out.
_PACKED = frozenset(["parent", "next_row", "counter"])

# The same of rows that are cut: where the first element is cut itself.
_CUT = frozenset(["parent_state", "remainder_slices", "elements_from_buffer_after_checkpoint"])

_Node = dict[str, Any]


def is_opaque(state: Mapping[str, Any]) -> bool:
    """Whether it is what an iterator of the user's own returned."""
    return set(state) == {"python"}


def _is_named(state: Any) -> bool:
    """Whether it is that of a mix of named streams: a source for the core, and a stage like others in Grain's states."""
    return isinstance(state, dict) and isinstance(cast(_Node, state).get("parents"), dict)


def to_grain(state: Any) -> Any:
    """A state of the core under Grain's names."""
    return _each_node(state, _node_to_grain)


def to_core(state: Any) -> Any:
    """The core's state that `to_grain` was given."""
    return _each_node(state, _node_to_core)


def _each_node(state: Any, rename: Callable[[_Node, Callable[[Any], Any]], Any]) -> Any:
    """A tree of what `rename` makes of its nodes; it is given what does the same to the nodes inside."""

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
    """Refuses what Grain writes of an interleave in a later epoch: a place whose stream had ended in an earlier one stays marked."""
    if isinstance(state, list):
        for part in state:
            _check_ends(part)
    elif isinstance(state, dict):
        node = cast(_Node, state)
        places = zip(*(node[name] for name in PLACES), strict=True) if _INTERLEAVED in node else ()
        # Ours have no state where a stream has ended.
        if any(ended and state is not None for _, state, ended in places):
            raise ValueError(
                "a state that Grain wrote in a later epoch of an interleave does not say which streams have ended: go on from one of "
                "the first epoch"
            )
        for part in node.values():
            _check_ends(part)


def _packed(node: _Node, inside: Callable[[Any], Any]) -> _Node:
    # The elements of a group are counted from its first.
    first = {"state": inside(node["parent"]), "skip": 0, "number": 0}
    return {"parent": first, "cut": [], "rows_before": node["counter"] - node["next_row"], "row": node["next_row"]}


def _cut(node: _Node, inside: Callable[[Any], Any]) -> _Node:
    # Slices of -1 are of a whole feature.
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
        # A place whose stream has ended and one that had none yet are the same: the next stream comes there.
        "exhausted": [int(slot is None) for slot in slots],
        _FUTURE: {one["lane"]: one["state"] and inside(one["state"]) for one in node.get(_WAITING, ())},
    }


def waiting(state: Mapping[str, Any]) -> list[tuple[int, Any]]:
    """Where streams of an interleave begin whose turn has not come; `None` is at the end of one."""
    # JSON has no numbers for keys.
    return sorted((int(lane), inner) for lane, inner in state.get(_FUTURE, {}).items())


def _lanes(node: _Node, inside: Callable[[Any], Any]) -> _Node:
    places = zip(*(node[name] for name in PLACES), strict=True)
    slots = [
        None if ended or state is None else {"lane": lane, "state": inside(state)} for lane, state, ended in places
    ]
    later = [{"lane": lane, "state": state and inside(state)} for lane, state in waiting(node)]
    out = {"next_slot": node["next_index_in_cycle"], "next_lane": node["next_index_in_datasets"], "slots": slots}
    return {**out, _WAITING: later} if later else out

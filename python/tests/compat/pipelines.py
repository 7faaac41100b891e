"""Random pipelines of whatever `grain` is imported, printed as JSON: run by `test_side_by_side.py`, once for each library.

`pipelines.py SHIM|WHEEL COUNT [FILE]`: WHEEL is a folder with Grain in it. The shim evaluates some of them by workers, and goes on
from states of its own at random points. FILE is what Grain printed; with it each pass of the shim begins at states that Grain
wrote, and what is left of it is printed. Where a pipeline has something that differs on purpose, its rule is one of
`differences.py`.
"""

import json
import random
import sys
from functools import partial
from itertools import islice
from typing import Any

import loaders
import numpy as np
import stages

SHIM = sys.argv[1] == "SHIM"


def imported() -> Any:
    """The library that is asked for."""
    if SHIM:
        import gristmill.compat.grain

        gristmill.compat.grain.install()
    else:
        sys.path.insert(0, sys.argv[1])
    try:
        import grain
        import grain.python
    except ImportError as error:
        print(f"Grain cannot be imported: {error}", file=sys.stderr)
        sys.exit(77)
    # Its operations say at each call that they are old.
    from absl import logging

    logging.set_verbosity(logging.FATAL)
    return grain


def passes(made: Any) -> Any:
    return made.__iter__()


def stored(state: Any) -> Any:
    """A state as it comes back from a disk."""
    return json.loads(state.decode()) if isinstance(state, bytes) else json.loads(json.dumps(state))


def given_back(state: Any, like: Any) -> Any:
    return json.dumps(state).encode() if isinstance(like, bytes) else state


def rest_of(made: Any, state: Any, most: int | None, *, moved: int = 0) -> list[Any]:
    """What a pass yields behind a state, up to so many elements; one that has moved on already, where that is asked for."""
    iterator = passes(made)
    for _ in islice(iterator, moved):
        pass
    iterator.set_state(given_back(state, iterator.get_state()))
    return [stages.shown(element) for element in islice(iterator, most)]


def kind_of_pipeline(rng: random.Random) -> Any:
    draw = rng.random()
    kinds = {0.22: loaders.loader, 0.25: loaders.loaded, 0.29: stages.elastic, 1.0: stages.stream}
    return next(kind for most, kind in kinds.items() if draw < most)


def run(grain: Any, seed: int) -> dict[str, Any]:
    rng = random.Random(seed)
    kind, found = kind_of_pipeline(rng), stages.Found()
    try:
        made = kind(grain, rng, found)
    except Exception as error:
        return {"refused": stages.kind_of(error), "rules": sorted(found.rules), "said": str(error)}
    if SHIM and seed % 50 == 0:
        made = found.with_workers(made, 1 + seed % 3)
    iterator = passes(made)
    elements, states = [], [stored(iterator.get_state())]
    try:
        for element in islice(iterator, found.most):
            elements.append(stages.shown(element))
            states.append(stored(iterator.get_state()))
    except Exception as error:
        # An endless repeat of nothing: which kind of error is each library's own.
        return {"error": bool(error), "rules": sorted(found.rules), "elements": elements, "said": str(error)}
    out = {"most": found.most, "far": found.far, "elements": elements, "rules": sorted(found.rules), "same": found.same}
    if SHIM:
        for done in rng.sample(range(len(states)), min(2, len(states))):
            for moved in (0, rng.randrange(4)):
                rest = rest_of(made, states[done], len(elements) - done if found.most else None, moved=moved)
                assert rest == elements[done:], f"pipeline {seed}: its own state {done}, {moved} elements on"
    return {**out, "states": states if not SHIM or found.same else []}


def resumed(grain: Any, seed: int, theirs: dict[str, Any]) -> list[Any]:
    """What is left behind some of the states that Grain wrote, with the number of elements before."""
    made = kind_of_pipeline(rng := random.Random(seed))
    out: list[Any] = []
    if theirs["rules"] or not theirs.get("states"):
        return out
    pipeline = made(grain, rng, stages.Found())
    for done in sorted({*range(0, len(theirs["states"]), 7), len(theirs["states"]) - 1}):
        try:
            most = len(theirs["elements"]) - done if theirs.get("most") else None
            out.append((done, rest_of(pipeline, theirs["states"][done], most)))
        except ValueError as refused:
            out.append((done, str(refused)))
    return out


def main() -> None:
    grain, count = imported(), int(sys.argv[2])
    first = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    if len(sys.argv) > 3 and sys.argv[3] != "-":
        theirs = [json.loads(line) for line in open(sys.argv[3])]
        work = partial(resumed, grain)
        printed = (work(first + at, theirs[at]) for at in range(count))
    else:
        printed = (run(grain, seed) for seed in range(first, first + count))
    for line in printed:
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

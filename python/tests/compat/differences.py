"""What differs from Grain 0.2.18 on purpose: the one table of it.

Each rule has its reason, and a test in `test_differences.py` that shows both sides. Random pipelines that meet a rule marked `drawn`
name it (`stages.py`), and are compared with themselves only; all the others must be equal in both libraries.
"""

from typing import NamedTuple


class Rule(NamedTuple):
    """A difference: why, and whether random pipelines meet it."""

    reason: str
    drawn: bool = False


RULES: dict[str, Rule] = {
    "data does not depend on workers": Rule(
        "the stream is a function of pipeline, seed and position; Grain's workers each run the pipeline on a slice of the data"
    ),
    "no record of a shard is lost": Rule(
        "a loader without drop_remainder gives the first shards one record more; Grain 0.2.18 loses the rest, a later one does not",
        drawn=True,
    ),
    "pieces have random numbers": Rule(
        "behind a flat map of a loader each piece has a generator that follows from its record; Grain's has none, and fails",
        drawn=True,
    ),
    "a full row takes no sequence of no cells": Rule(
        "max_sequences_per_bin holds for sequences without cells too; Grain's best fit takes any number of them into an empty row",
        drawn=True,
    ),
    "a sequence of no cells has no beginning": Rule(
        "nothing is written for it; Grain writes the token into the cell behind it, padding or another sequence, or fails at the end",
        drawn=True,
    ),
    "a short last window is shuffled": Rule("Grain's WindowShuffleMapDataset reads behind the end, and loses elements"),
    "every length is permuted": Rule("Grain's index_shuffle gives an element twice for lengths of 2^k+1 with even k from 16 on"),
    "cut tokens come once": Rule(
        "with several features Grain's concat-then-split loses and repeats tokens of an element that is cut twice",
        drawn=True,
    ),
    "every host has as many batches": Rule(
        "an elastic iterator ends with the last whole global batch; Grain's hosts end each for itself, some a step later than others",
        drawn=True,
    ),
    "streams are elastic": Rule(
        "an elastic iterator takes streams and filters: packed, filtered and mixed batches go on with another number of hosts; Grain's takes "
        "neither"
    ),
    "no index is behind 2^64": Rule(
        "it is an error; Grain's later epochs of a slice of an endless dataset begin in the midst of one of its, where such a number leads"
    ),
    "negative indices count from the end": Rule(
        "ds[-1] is the last element of the first epoch, as in Python; Grain's random stages take it for one of an epoch before it"
    ),
    "a batch has the byte order of the machine": Rule(
        "whatever the number of its elements; Grain's batch of one element keeps theirs"
    ),
    "errors are of one family": Rule(
        "an impossible argument is a ValueError where Grain's is an AssertionError, a KeyError or whatever its code met first"
    ),
    "ends are no places": Rule(
        "a state of Grain's behind the very last element of a stream may be refused: nothing is left to go on with"
    ),
}

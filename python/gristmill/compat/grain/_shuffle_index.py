"""The permutation used by `shuffle`, by index."""

from gristmill._gristmill import index_shuffle as _core_index_shuffle


def index_shuffle(index: int, max_index: int, seed: int, rounds: int) -> int:
    """Returns the image of `index` in a permutation of `0..=max_index`.

    DIFFERENCE: the result is a permutation for every length.
    """
    if rounds < 4 or rounds > 1024 or rounds % 2:
        raise ValueError(f"rounds must be an even integer between 4 and 1024, got {rounds}")
    if not 0 <= index <= max_index:
        raise ValueError(f"index must be in [0, max_index], got {index} and {max_index}")
    return _core_index_shuffle(index, max_index, seed, rounds)

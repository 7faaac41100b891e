"""Arrays go to other libraries where they lie, and come from them."""

from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
import pytest


def batch(npy: Path, *, writable: bool = False) -> np.ndarray[Any, Any]:
    array: np.ndarray[Any, Any] = next(gm.MapDataset.npy(npy).to_iter_dataset().batch(8).loader(writable=writable))["data"]
    return array


def address(array: Any) -> int:
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("writable", [False, True])
def test_numpy(npy: Path, writable: bool) -> None:
    array = batch(npy, writable=writable)
    taken = np.from_dlpack(array)
    assert address(taken) == address(array)
    assert taken.flags.writeable == writable


def test_the_capsule_says_whether_it_may_be_written_to(npy: Path) -> None:
    assert batch(npy).__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="readonly"):
        batch(npy).__dlpack__()
    assert "versioned" in repr(batch(npy).__dlpack__(max_version=(1, 0)))
    assert "versioned" not in repr(batch(npy, writable=True).__dlpack__())


def test_jax(npy: Path) -> None:
    jax = pytest.importorskip("jax")
    array = batch(npy, writable=True)
    assert jax.dlpack.from_dlpack(array).unsafe_buffer_pointer() == address(array)
    # Which JAX asks for read-only memory by DLPack is its version's matter; it is never handed out as if it were not.
    array = batch(npy)
    try:
        taken = jax.dlpack.from_dlpack(array)
    except BufferError:
        taken = jax.device_put(array)
    assert taken.unsafe_buffer_pointer() == address(array)


def test_torch(npy: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch, which is large")
    array = batch(npy, writable=True)
    assert torch.from_dlpack(array).data_ptr() == address(array)


class Exported:
    """Memory of a library that knows DLPack and nothing of NumPy."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_native_stages_take_what_exports_itself() -> None:
    memory = np.arange(12, dtype=np.int16).reshape(3, 4)
    rows = gm.MapDataset.range(3).map(lambda x: {"x": Exported(memory[x])}).drop_columns("none")
    assert [row["x"].tolist() for row in rows] == memory.tolist()
    first = rows[0]["x"]
    memory[:] = -1
    assert first.dtype == np.int16 and first.tolist() == [0, 1, 2, 3]
    with pytest.raises(gm.DataError, match="native stages have nothing for object"):
        next(iter(gm.MapDataset.range(1).map(lambda x: {"x": object()}).drop_columns("none")))


def test_jax_arrays_are_elements() -> None:
    jnp = pytest.importorskip("jax.numpy")
    rows = gm.MapDataset.range(4).map(lambda x: {"x": jnp.full(3, x)}).drop_columns("none")
    stacked = next(iter(rows.to_iter_dataset().batch(4)))["x"]
    assert stacked.tolist() == [[x] * 3 for x in range(4)]

"""Arrays go to other libraries where they lie, and come from them."""

import ctypes
import gc
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
import pytest
from gristmill._gristmill import Lease


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


def test_the_buffer_protocol_says_that_memory_is_read_only(npy: Path) -> None:
    for writable in (False, True):
        array = batch(npy, writable=writable)
        view = memoryview(array)
        assert view.readonly != writable and view.format == "f" and view.shape == (8, 4)
        assert np.frombuffer(view, np.float32).ctypes.data == address(array)


class Tensor(ctypes.Structure):
    """`DLTensor` of dlpack.h, flat."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Unversioned(ctypes.Structure):
    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class Versioned(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


def inside(capsule: Any, name: bytes, kind: Any) -> Any:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return kind.from_address(pointer(capsule, name))


@pytest.mark.parametrize("max_version", [None, (0, 8), (1, 0), (1, 3), (2, 0)])
def test_a_lease_is_what_dlpack_says(npy: Path, max_version: tuple[int, int] | None) -> None:
    array = batch(npy)
    capsule = Lease(array).__dlpack__(max_version=max_version)
    if max_version is None or max_version < (1, 0):
        tensor = inside(capsule, b"dltensor", Unversioned).tensor
    else:
        lent = inside(capsule, b"dltensor_versioned", Versioned)
        assert list(lent.version) == [1, 0] and lent.flags == 1
        tensor = lent.tensor
    assert (tensor.data, tensor.byte_offset) == (address(array), 0)
    assert (list(tensor.device), tensor.rank, tensor.code, tensor.bits, tensor.lanes) == ([1, 0], 2, 2, 32, 1)
    assert (tensor.shape[:2], tensor.strides[:2]) == ([8, 4], [4, 1])
    assert Lease(array).__dlpack_device__() == (1, 0)


@pytest.mark.parametrize("name", "bool uint8 int8 uint16 int16 float16 uint32 int32 float32 uint64 int64 float64".split())
def test_a_lease_of_any_dtype_and_shape(name: str) -> None:
    for shape in [(), (0,), (2, 0, 3), (1,), (3, 4, 5)]:
        array = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2, name)
        taken = np.from_dlpack(Lease(array))
        assert taken.dtype == array.dtype and np.array_equal(taken, array) and not taken.flags.writeable
        # What Python may write to is copied.
        assert taken.size == 0 or address(taken) != address(array)


def test_what_a_lease_does_not_do(npy: Path) -> None:
    lease = Lease(batch(npy))
    for asked in ({"stream": 1}, {"dl_device": (2, 0)}, {"copy": True}):
        with pytest.raises(BufferError):
            lease.__dlpack__(**asked)  # type: ignore[arg-type]
    with pytest.raises(gm.DataError, match="no arrays of dtype complex64"):
        Lease(np.zeros(3, np.complex64))


def test_jax_takes_a_lease_of_any_version(npy: Path) -> None:
    jax = pytest.importorskip("jax")
    array = batch(npy)
    assert jax.dlpack.from_dlpack(Lease(array)).unsafe_buffer_pointer() == address(array)
    shared = gm.jax.share({"x": array, "in": (array[2:], 3)})
    assert shared["x"].unsafe_buffer_pointer() == address(array)
    assert np.array_equal(shared["in"][0], array[2:]) and int(shared["in"][1]) == 3
    with pytest.raises(gm.DataError, match=r"batch\['t'\] is str, and devices hold only numbers"):
        gm.jax.share({"t": "text"})


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc/self/maps")
def test_memory_is_given_back_at_once(npy: Path) -> None:
    jax = pytest.importorskip("jax")

    def mapped() -> bool:
        return str(npy) in Path("/proc/self/maps").read_text()

    def row() -> Any:
        return gm.MapDataset.npy(npy)[0]["data"]

    # A capsule that nobody has taken, one that NumPy has, and JAX, which is not called again.
    for take in (lambda x: Lease(x).__dlpack__(), lambda x: np.from_dlpack(Lease(x)), gm.jax.share):
        taken = take(row())
        assert mapped()
        jax.block_until_ready(taken)
        del taken
        assert not mapped()


NATIVE_THREAD = """
import ctypes, sys
import gristmill as gm
sys.path.insert(0, sys.argv[1])
from test_dlpack import Versioned, inside
from gristmill._gristmill import Lease

def mapped():
    return sys.argv[2] in open("/proc/self/maps").read()

capsule = Lease(gm.MapDataset.npy(sys.argv[2])[0]["data"]).__dlpack__(max_version=(1, 0))
lent = inside(capsule, b"dltensor_versioned", Versioned)
ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule), taken := b"used_dltensor_versioned")
assert mapped()
# A thread that Python knows nothing of; it is waited for with the interpreter held.
threads, number = ctypes.PyDLL(None), ctypes.c_ulong()
start = (ctypes.byref(number), None, ctypes.c_void_p(lent.deleter), ctypes.c_void_p(ctypes.addressof(lent)))
assert threads.pthread_create(*start) == 0
assert threads.pthread_join(number, None) == 0
assert not mapped()
del capsule
"""


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc/self/maps")
def test_who_gives_memory_back_needs_no_interpreter(npy: Path) -> None:
    command = [sys.executable, "-c", NATIVE_THREAD, str(Path(__file__).parent), str(npy)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


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
    with pytest.raises(gm.DataError, match="native stages do not support object"):
        next(iter(gm.MapDataset.range(1).map(lambda x: {"x": object()}).drop_columns("none")))


def test_jax_arrays_are_elements() -> None:
    jnp = pytest.importorskip("jax.numpy")
    rows = gm.MapDataset.range(4).map(lambda x: {"x": jnp.full(3, x)}).drop_columns("none")
    stacked = next(iter(rows.to_iter_dataset().batch(4)))["x"]
    assert stacked.tolist() == [[x] * 3 for x in range(4)]


class Crafted:
    """What says of itself by DLPack what is not so."""

    def __init__(self, capsule: Any, device: Any) -> None:
        self.capsule, self.device = capsule, device

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule() if callable(self.capsule) else self.capsule

    def __dlpack_device__(self) -> Any:
        return self.device


def taken_over() -> Any:
    """A capsule that somebody has taken already."""
    exported = Exported(np.arange(3))
    capsule = exported.__dlpack__()
    np.from_dlpack(Crafted(capsule, (1, 0)))
    return capsule


def raising() -> Any:
    raise BufferError("not now")


@pytest.mark.parametrize(
    "crafted",
    [
        Crafted(lambda: np.arange(3).__dlpack__(), (2, 0)),
        Crafted(lambda: np.arange(3).__dlpack__(), (99, -1)),
        Crafted(lambda: np.arange(3).__dlpack__(), None),
        Crafted(lambda: np.arange(3).__dlpack__(), (1 << 80, 0)),
        Crafted(None, (1, 0)),
        Crafted(b"capsule", (1, 0)),
        Crafted(taken_over, (1, 0)),
        Crafted(raising, (1, 0)),
    ],
)
def test_what_exports_itself_wrongly_is_what_it_is_or_an_error_and_nothing_is_kept(crafted: Crafted) -> None:
    """Some versions of NumPy believe the capsule, whatever device was named beside it."""
    before = sys.getrefcount(crafted)
    rows = gm.MapDataset.range(2).map(lambda _: {"x": crafted}).drop_columns("none")
    for _ in range(3):
        try:
            assert rows[0]["x"].tolist() == [0, 1, 2]
        except (gm.Error, AttributeError, BufferError, OverflowError, RuntimeError, TypeError, ValueError):
            continue
    del rows
    gc.collect()
    assert sys.getrefcount(crafted) == before


@pytest.mark.parametrize(
    "shaped",
    [
        lambda a: a[::-1],
        lambda a: a.T,
        lambda a: a[:, ::2],
        lambda a: a[1:2, 1:2],
        lambda a: a[:0],
        lambda a: a[..., None],
        lambda a: np.broadcast_to(a[0], (5, 4)),
        lambda a: np.lib.stride_tricks.as_strided(a, (3, 2), (4, 8), writeable=False),
    ],
)
def test_views_of_any_strides_are_lent_and_taken_as_what_they_show(npy: Path, shaped: Any) -> None:
    array = shaped(batch(npy))
    expected = array.tolist()
    assert np.from_dlpack(Lease(array)).tolist() == expected
    rows = gm.MapDataset.range(1).map(lambda _: {"x": array, "y": Exported(np.array(array))}).drop_columns("none")
    assert [rows[0][key].tolist() for key in "xy"] == [expected, expected]


def test_views_that_claim_more_than_any_memory_are_refused() -> None:
    """Nothing of what a view without strides claims is reserved before it is there."""
    for shape in [(1 << 40, 1 << 10), (1 << 59,), (0, 1 << 50), (1 << 50, 0)]:
        claims = np.broadcast_to(np.float64(1), shape)
        rows = gm.MapDataset.range(1).map(lambda _, claims=claims: {"x": claims}).drop_columns("none")
        if 0 in shape:
            assert rows[0]["x"].shape == shape
        else:
            with pytest.raises(MemoryError):
                _ = rows[0]


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc/self/maps")
def test_memory_that_is_lent_often_goes_with_the_last_whoever_that_is(npy: Path) -> None:
    """Exported by both headers, taken or not, and dropped by threads after the loader has gone."""

    def mapped() -> bool:
        return str(npy) in Path("/proc/self/maps").read_text()

    it = gm.MapDataset.npy(npy).loader(threads=2)
    row = next(it)["data"]
    lease = Lease(row)
    held = [[np.from_dlpack(lease), lease.__dlpack__(), lease.__dlpack__(max_version=(1, 0)), row[1:]] for _ in range(50)]
    it.close()
    del it, row, lease
    gc.collect()
    assert mapped()
    kept = held[17][0]
    threads = [threading.Thread(target=part.clear) for part in held]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    del held, threads
    gc.collect()
    assert mapped() and kept.tolist() == [0, 1, 2, 3]
    del kept
    gc.collect()
    assert not mapped()

"""Makes `import grain` load this package."""

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType

_HERE = "gristmill.compat.grain"
_DATASET = "grain._src.python.dataset"
_TRANSFORMATIONS = f"{_DATASET}.transformations"

# The modules of this package that provide the names of each Grain module. Packages without names have none.
MODULES: Mapping[str, Sequence[str]] = {
    "grain": (_HERE,),
    "grain.python": (f"{_HERE}.python",),
    "grain.python.experimental": (f"{_HERE}.experimental",),
    "grain.experimental": (f"{_HERE}.experimental",),
    "grain.checkpoint": (f"{_HERE}.checkpoint",),
    "grain.constants": (f"{_HERE}.constants",),
    "grain.monitoring": (f"{_HERE}.monitoring",),
    "grain.multiprocessing": (f"{_HERE}.multiprocessing",),
    "grain.proto": (f"{_HERE}.proto",),
    "grain.proto.execution_summary_pb2": (f"{_HERE}.proto.execution_summary_pb2",),
    "grain.samplers": (f"{_HERE}.samplers",),
    "grain.sharding": (f"{_HERE}.sharding",),
    "grain.sources": (f"{_HERE}.sources",),
    "grain.transforms": (f"{_HERE}.transforms",),
    "grain._src": (),
    "grain._src.core": (),
    "grain._src.core.config": (f"{_HERE}._config",),
    "grain._src.core.constants": (f"{_HERE}.constants",),
    "grain._src.core.monitoring": (f"{_HERE}.monitoring",),
    "grain._src.core.sharding": (f"{_HERE}._sharding",),
    "grain._src.core.transforms": (f"{_HERE}._transforms",),
    "grain._src.core.tree_lib": (f"{_HERE}._tree_lib",),
    "grain._src.python": (),
    "grain._src.python.checkpoint": (),
    "grain._src.python.checkpoint.handler": (f"{_HERE}.checkpoint",),
    "grain._src.python.data_loader": (f"{_HERE}._data_loader",),
    "grain._src.python.data_sources": (f"{_HERE}._data_sources",),
    "grain._src.python.dataset": (),
    f"{_DATASET}.base": (f"{_HERE}._base",),
    f"{_DATASET}.dataset": tuple(
        f"{_HERE}.{name}" for name in ("_dataset", "_dataset_iterator", "_stages", "_apply", "_orders")
    ),
    f"{_DATASET}.elastic_iterator": (f"{_HERE}._elastic",),
    f"{_DATASET}.sources": (),
    f"{_DATASET}.sources.parquet_dataset": (f"{_HERE}._parquet",),
    f"{_DATASET}.sources.tfrecord_dataset": (f"{_HERE}._tfrecord",),
    f"{_TRANSFORMATIONS}": (),
    f"{_TRANSFORMATIONS}.batch": (f"{_HERE}._batch",),
    f"{_TRANSFORMATIONS}.cache": (f"{_HERE}._orders",),
    f"{_TRANSFORMATIONS}.filter": (f"{_HERE}._functions", f"{_HERE}._thresholds"),
    f"{_TRANSFORMATIONS}.flatmap": (f"{_HERE}._flatmap",),
    f"{_TRANSFORMATIONS}.interleave": (f"{_HERE}._interleave",),
    f"{_TRANSFORMATIONS}.limit": (f"{_HERE}._orders",),
    f"{_TRANSFORMATIONS}.map": (f"{_HERE}._functions",),
    f"{_TRANSFORMATIONS}.mix": (f"{_HERE}._mix",),
    f"{_TRANSFORMATIONS}.packing": (f"{_HERE}._packing",),
    f"{_TRANSFORMATIONS}.packing_packed_batch": (f"{_HERE}._packing",),
    f"{_TRANSFORMATIONS}.packing_concat_then_split": (f"{_HERE}._packing",),
    f"{_TRANSFORMATIONS}.prefetch": (f"{_HERE}._prefetch",),
    f"{_TRANSFORMATIONS}.prefetch_autotune": (f"{_HERE}._autotune",),
    f"{_TRANSFORMATIONS}.process_prefetch": (f"{_HERE}._prefetch",),
    f"{_TRANSFORMATIONS}.rebatch": (f"{_HERE}._rebatch",),
    f"{_TRANSFORMATIONS}.repeat": (f"{_HERE}._orders",),
    f"{_TRANSFORMATIONS}.shuffle": (f"{_HERE}._orders",),
    f"{_TRANSFORMATIONS}.slice": (f"{_HERE}._orders",),
    f"{_TRANSFORMATIONS}.source": (f"{_HERE}._sources",),
    f"{_TRANSFORMATIONS}.zip": (f"{_HERE}._zip",),
    "grain._src.python.experimental": (),
    "grain._src.python.experimental.device_put": (),
    "grain._src.python.experimental.device_put.device_put": (f"{_HERE}._device_put",),
    "grain._src.python.experimental.example_packing": (),
    "grain._src.python.experimental.example_packing.packing": (f"{_HERE}._pack_and_batch",),
    "grain._src.python.experimental.index_shuffle": (),
    "grain._src.python.experimental.index_shuffle.python": (),
    "grain._src.python.experimental.index_shuffle.python.index_shuffle_module": (f"{_HERE}._shuffle_index",),
    "grain._src.python.ipc": (),
    "grain._src.python.ipc.shared_memory_array": (f"{_HERE}._shared_memory",),
    "grain._src.python.load": (f"{_HERE}._load",),
    "grain._src.python.operations": (f"{_HERE}._operations",),
    "grain._src.python.options": (f"{_HERE}._options",),
    "grain._src.python.record": (f"{_HERE}._record",),
    "grain._src.python.samplers": (f"{_HERE}._samplers",),
    "grain._src.python.testing": (),
    "grain._src.python.testing.experimental": (f"{_HERE}._testing",),
}


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finder and loader of Grain's modules, which fills each module on its first import."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in MODULES:
            return None
        is_package = any(name.startswith(f"{fullname}.") for name in MODULES)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=is_package)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Returns an empty module with the requested name, a real module for tools that inspect it."""
        return ModuleType(spec.name, "gristmill under the name of Grain.")

    def exec_module(self, module: ModuleType) -> None:
        """Copies the names of the corresponding modules into `module`."""
        for name in MODULES[module.__name__]:
            ours = importlib.import_module(name)
            module.__file__ = ours.__file__
            for key, value in vars(ours).items():
                # A module's `__getattr__` makes some names on first access.
                if not key.startswith("__") or key in ("__version__", "__getattr__"):
                    vars(module).setdefault(key, value)


_FINDER = _Finder()


def is_installed() -> bool:
    """Returns whether `install` has been called."""
    return _FINDER in sys.meta_path


def install() -> None:
    """Makes `import grain` and its submodules load gristmill from now on, in worker processes too.

    Repeated calls do nothing. Raises `RuntimeError` if Grain itself has been imported, because its classes and this
    package's classes would mix.
    """
    if is_installed():
        return
    if "grain" in sys.modules:
        raise RuntimeError("grain is imported already: call gristmill.compat.grain.install() before it is")
    sys.meta_path.insert(0, _FINDER)

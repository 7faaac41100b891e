"""Programs that import Grain find the package, and are told where they cannot."""

import subprocess
import sys

PROGRAM = """
import gristmill.compat.grain
gristmill.compat.grain.install()
gristmill.compat.grain.install()
import grain
import grain.python as pygrain
from grain import experimental
from grain._src.python.dataset import dataset
from grain._src.python.dataset.sources.tfrecord_dataset import _TFRecordReader
assert pygrain.MapDataset is grain.MapDataset is dataset.MapDataset is gristmill.compat.grain.MapDataset
assert grain.experimental.ElasticIterator is experimental.ElasticIterator is pygrain.experimental.ElasticIterator
ds = grain.MapDataset.range(10).seed(1).shuffle().map(lambda x: x + 1).to_iter_dataset().mp_prefetch()
print(sorted(ds))
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)


def test_unmodified_programs_run() -> None:
    done = run(PROGRAM)
    assert done.stdout.strip() == str(list(range(1, 11))), done.stderr


def test_two_libraries_are_not_mixed() -> None:
    done = run("import sys\nsys.modules['grain'] = sys\nimport gristmill.compat.grain as g\ng.install()")
    assert "grain is imported already" in done.stderr

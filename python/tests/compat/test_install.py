"""Programs that import Grain find the package, and are told where they cannot."""

import subprocess
import sys
from pathlib import Path

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


MODULE = """
import grain

class Plus(grain.transforms.Map):
    def map(self, element):
        return element + 1
"""


def test_modules_of_the_users_own_find_it_in_workers(tmp_path: Path) -> None:
    (tmp_path / "transforms_of_mine.py").write_text(MODULE)
    program = f"""
import sys
sys.path.append({str(tmp_path)!r})
import gristmill.compat.grain as grain
grain.install()
import transforms_of_mine
ds = grain.MapDataset.range(5).to_iter_dataset().map(transforms_of_mine.Plus())
print(list(ds.mp_prefetch(grain.MultiprocessingOptions(num_workers=1))))
"""
    done = run(program)
    assert done.stdout.strip() == "[1, 2, 3, 4, 5]", done.stderr


def test_two_libraries_are_not_mixed() -> None:
    done = run("import sys\nsys.modules['grain'] = sys\nimport gristmill.compat.grain as g\ng.install()")
    assert "grain is imported already" in done.stderr

"""Runs Grain's own tests against the shim: `python python/oracle/run.py WHEEL [FILE...] [-- PYTEST_ARGUMENT...]`.

WHEEL is a folder with grain's unpacked wheel (`pip install --no-deps --target`). A FILE is named as in the wheel,
without `grain/_src/`. The tests are copied to a separate folder, so that they are not taken for modules of the package
under test.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# Test classes that are missing in the wheel, although it has their base class, which refers to them.
MISSING = {
    "python/dataset/transformations/interleave_test.py": (
        "\n\nclass InterleaveIterDatasetTest(_InterleaveIterDatasetTestBase):\n  pass\n"
    )
}
# Some tests check the name of their folder.
PLACE = Path("_src")
FILES = [line for line in (HERE / "files.txt").read_text().splitlines() if not line.startswith("#")]


def main() -> int:
    wheel, *arguments = sys.argv[1:]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    files, more = arguments[:at] or FILES, arguments[at + 1 :]
    os.environ["GRAIN_WHEEL"] = str(Path(wheel).resolve())
    sys.path.insert(0, str(HERE))
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            target = Path(folder, PLACE, file)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(wheel, "grain", "_src", file), target)
            with target.open("a") as copy:
                copy.write(MISSING.get(file, ""))
        os.chdir(folder)
        # Child processes of tests import the test module from here.
        sys.path.append(folder)
        options = ["-p", "plugin", "--import-mode=importlib", "-q", "-p", "no:cacheprovider", f"--rootdir={folder}"]
        return pytest.main([*options, *more, *(str(PLACE / file) for file in files)])


if __name__ == "__mp_main__":
    # Runs in child processes of tests.
    import plugin

    plugin.find_grain()

if __name__ == "__main__":
    sys.exit(main())

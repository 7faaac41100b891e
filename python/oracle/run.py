"""Runs Grain's own tests against the shim: `python python/oracle/run.py WHEEL [FILE...] [-- PYTEST_ARGUMENT...]`.

WHEEL is a folder that grain's wheel was unpacked into (`pip install --no-deps --target`); a FILE is named as in it, without
`grain/_src/`. The tests are taken from where they cannot be mistaken for modules of the package that they test.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# Classes of tests that the wheel has only the base class of, which names them.
MISSING = {
    "python/dataset/transformations/interleave_test.py": (
        "\n\nclass InterleaveIterDatasetTest(_InterleaveIterDatasetTestBase):\n  pass\n"
    )
}
# Some look at the folder that they are in.
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
        # Processes that a test starts look for its module there.
        sys.path.append(folder)
        options = ["-p", "plugin", "--import-mode=importlib", "-q", "-p", "no:cacheprovider", f"--rootdir={folder}"]
        return pytest.main([*options, *more, *(str(PLACE / file) for file in files)])


if __name__ == "__mp_main__":
    # In a process that a test has started.
    import plugin

    plugin.find_grain()

if __name__ == "__main__":
    sys.exit(main())

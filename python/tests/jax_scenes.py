"""Programs of several processes of `jax.distributed`, which start once for all of their scenes: `PROGRAM ADDRESS PROCESS COUNT SCENE...`."""

import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import jax

#: The arguments of the program.
PROCESS, COUNT = int(sys.argv[2]), int(sys.argv[3])


def begin() -> None:
    """Waits for the other processes."""
    jax.distributed.initialize(sys.argv[1], num_processes=COUNT, process_id=PROCESS, initialization_timeout=60)


def run(scenes: Mapping[str, Callable[[], Any]]) -> None:
    """Runs the scenes of the command line, and prints of each its name and its result. A scene that fails ends the process."""
    try:
        for name in sys.argv[4:]:
            print(json.dumps([name, scenes[name]()]), flush=True)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        # Any other way out waits for the other processes.
        os._exit(1)

"""The `gristmill` command: the code of the Rust binary, called in the extension."""

import signal
import sys
from typing import NoReturn

from gristmill._gristmill import cli


def main() -> NoReturn:
    """Runs the command line of this process."""
    # Python's handler would wait until the command returns. Those that have something to save install their own; the others end.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(cli(sys.argv, sys.executable))

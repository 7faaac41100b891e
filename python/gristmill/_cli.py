"""The `gristmill` command: runs the code of the Rust binary inside the extension."""

import signal
import sys
from typing import NoReturn

from gristmill._gristmill import cli


def main() -> NoReturn:
    """Runs the command line of this process and exits."""
    # Python's handler would run only after the command returns. Commands with state to save install their own handler;
    # the default action ends all others.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(cli(sys.argv, sys.executable))

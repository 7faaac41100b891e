"""The `gristmill` command: the code of the Rust binary, called in the extension."""

import sys
from typing import NoReturn

from gristmill._gristmill import cli


def main() -> NoReturn:
    """Runs the command line of this process."""
    sys.exit(cli(sys.argv, sys.executable))

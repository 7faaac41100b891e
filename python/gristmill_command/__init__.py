"""The `gristmill` command as the wheel's script starts it.

It is a package of its own, as an import of anything in `gristmill` begins with all of that: from its first line on Ctrl-C ends it
without a traceback.
"""

# What `signal` is made of: that adds enumerations, whose import takes longer than all of this.
_signal = __import__("_signal")


def main() -> None:
    """Runs the command line of this process."""
    # Python's handler would wait until the import, and then the command, returns.
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    from gristmill._cli import main as run

    run()

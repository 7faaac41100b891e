"""What goes wrong in gristmill itself; what a user's own function raises stays as it is."""


class Error(Exception):
    """Any error of gristmill; `help` says what can be done about it, where that is known."""

    help: str | None = None


class ConfigError(Error, ValueError):
    """The pipeline asks for something impossible."""


class DataError(Error, ValueError):
    """A record or an element is not what the stage can take."""


class BadRecord(DataError):
    """A record is no good, says a function of the user's that raises this.

    Where bad records are skipped, by `skip_bad_records` or `to_iter(on_bad_record="skip")`, it is left out and counted with those
    of damaged files; elsewhere it ends the run.
    """


class IoError(Error, OSError):
    """The operating system refused."""


class StateError(Error, ValueError):
    """A checkpoint does not belong to this pipeline, or its format is not known."""


class UnsupportedError(Error, NotImplementedError):
    """The data is valid, but uses something that gristmill does not read."""


class WorkerError(Error, RuntimeError):
    """A worker could not be started, or ended before its time."""


_BY_KIND: dict[str, type[Error]] = {
    "config": ConfigError,
    "data": DataError,
    "io": IoError,
    "state": StateError,
    "unsupported": UnsupportedError,
    "worker": WorkerError,
}


def make(kind: str, message: str, help: str | None) -> Error:
    """The exception for an error of that kind."""
    error = _BY_KIND.get(kind, Error)(message)
    if help is not None:
        error.help = help
        error.add_note(f"help: {help}")
    return error


for _public in (Error, BadRecord, *_BY_KIND.values()):
    _public.__module__ = "gristmill"

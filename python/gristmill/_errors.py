"""Errors raised by gristmill itself. Exceptions of user functions pass through unchanged."""


class Error(Exception):
    """Base class of gristmill's errors. `help` is the remedy, if there is a known remedy."""

    help: str | None = None


class ConfigError(Error, ValueError):
    """The pipeline or an argument is invalid."""


class DataError(Error, ValueError):
    """A record or an element is invalid for the stage that receives it."""


class BadRecord(DataError):
    """Raised by a user function to reject a record.

    The record is dropped and counted with the records of damaged files if the pipeline skips bad records
    (`skip_bad_records` or `to_iter(on_bad_record="skip")`). Otherwise the error ends the run.
    """


class IoError(Error, OSError):
    """The operating system reported an error."""


class StateError(Error, ValueError):
    """A checkpoint belongs to another pipeline, or has an unknown format."""


class UnsupportedError(Error, NotImplementedError):
    """The data is valid but uses a feature that gristmill does not support."""


class WorkerError(Error, RuntimeError):
    """A worker could not be started, or ended early."""


_BY_KIND: dict[str, type[Error]] = {
    "config": ConfigError,
    "data": DataError,
    "io": IoError,
    "state": StateError,
    "unsupported": UnsupportedError,
    "worker": WorkerError,
}


def make(kind: str, message: str, help: str | None) -> Error:
    """Returns the exception for an error of `kind`."""
    error = _BY_KIND.get(kind, Error)(message)
    if help is not None:
        error.help = help
        error.add_note(f"help: {help}")
    return error


for _public in (Error, BadRecord, *_BY_KIND.values()):
    _public.__module__ = "gristmill"

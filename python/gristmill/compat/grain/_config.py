"""Settings of the process. They can be read at any time, without parsing flags first."""

from typing import Any

_DEFAULTS: dict[str, Any] = {
    "py_debug_mode": False,
    "py_dataset_visualization_output_dir": None,
    "py_traceback_filtering": "auto",
    "py_relay_sigterm_to_main": False,
    "enable_multiprocess_worker_profiling": False,
}


class Config:
    """Grain's settings by name. Runs are always measured here, so the debug mode has no effect: `report()` of an
    iterator contains the times.
    """

    def __init__(self) -> None:
        self._values = dict(_DEFAULTS)

    def update(self, name: str, value: Any) -> None:
        """Sets a value."""
        if name not in self._values:
            raise ValueError(f"no setting {name!r}: there are {sorted(self._values)}")
        self._values[name] = value

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_values"][name]
        except KeyError:
            raise AttributeError(f"no setting {name!r}") from None


config = Config()

"""Options of a run: Python has those of pipeline files and of the command, and reads them alike."""

import dataclasses
import json
import threading
from pathlib import Path
from typing import Any

import gristmill as gm
import pytest
from gristmill._options import LoaderOptions

SCHEMA = json.loads((Path(gm.__file__).parent / "pipeline.schema.json").read_text())
#: Keyword arguments of `loader` that no other interface has: they concern arrays, and stages of Python.
OF_PYTHON = {"accept_changes", "workers", "writable"}


def test_python_has_every_option_of_a_run() -> None:
    forms = SCHEMA["properties"]["executor"]["anyOf"]
    # `threads=0` stands for `inline`.
    described = {name for form in forms for name in form.get("properties", ())} - {"inline"}
    of_processes = {field.name for field in dataclasses.fields(gm.MpOptions)} - {"num_workers", "per_worker_buffer_size"}
    of_loader = set(LoaderOptions.__annotations__)
    assert described == of_processes | (of_loader - OF_PYTHON)
    assert of_loader >= OF_PYTHON


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"threads": -1}, "threads: -1 is less than 0"),
        ({"threads": "many"}, "threads: "),
        ({"buffer": 0}, "buffer: is 0, and must be at least 1"),
        ({"timeout": 0}, "timeout: is 0, and must be more than 0 seconds"),
        ({"timeout": 1.5}, "`timeout` needs threads or worker processes"),
        ({"guard_timeout": "long"}, "guard_timeout: needs a number, got"),
        ({"metrics": 1.5}, "metrics: needs text"),
        ({"on_failed_element": "drop"}, "on_failed_element: "),
        ({"failed_element_limit": 2}, "failed_element_limit"),
        ({"record_keys": True}, "keys cannot be recorded without a folder"),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_of_its_option(options: dict[str, Any], says: str) -> None:
    ds: Any = gm.MapDataset.range(3)
    for source in (ds, ds.to_iter_dataset()):
        with pytest.raises(gm.ConfigError, match=says):
            source.loader(**options)


def test_options_of_worker_processes_are_pointed_to_their_method() -> None:
    ds: Any = gm.MapDataset.range(3)
    for name in ("num_workers", "ram_budget", "on_poison", "tune"):
        with pytest.raises(TypeError, match=rf"unexpected keyword argument '{name}': mp_prefetch"):
            ds.loader(**{name: 1})
    with pytest.raises(TypeError, match="threads=0"):
        ds.loader(inline=True)


def test_a_wait_beyond_the_timeout_is_an_error_and_the_state_goes_on() -> None:
    gate = threading.Event()

    def held(x: int) -> int:
        # The fourth element waits until the test opens the gate.
        if x == 3:
            gate.wait()
        return x

    ds = gm.MapDataset.range(8).map(held)
    it = ds.loader(threads=1, timeout=0.05)
    with pytest.raises(gm.WorkerError, match=r"element \d was not ready after 0.05 s, the limit of `timeout`"):
        list(it)
    state = it.get_state()
    gate.set()
    it.close()
    rest = ds.loader(threads=1, timeout=60)
    rest.set_state(state)
    assert list(rest) == list(range(state["delivered"], 8))


def test_a_remedy_is_spelled_for_python() -> None:
    with pytest.raises(gm.ConfigError) as refused:
        gm.MapDataset.range(3).loader(record_keys=True)
    assert refused.value.help == 'add `loader(keys="FOLDER")`'


def test_an_option_of_none_has_its_default() -> None:
    ds: Any = gm.MapDataset.range(3)
    nothing: dict[str, Any] = dict.fromkeys(LoaderOptions.__annotations__)
    assert list(ds.loader(**nothing)) == [0, 1, 2]

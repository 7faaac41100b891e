"""The endpoint of metrics, as Prometheus reads it."""

import threading
import time
import types
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gristmill as gm
import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "metrics.md"


def get(loader: gm.DatasetIterator[Any], path: str = "/metrics") -> str:
    with urllib.request.urlopen(
        f"http://{loader.metrics_address}{path}", timeout=120
    ) as answer:
        assert (
            answer.headers["Content-Type"]
            == "application/openmetrics-text; version=1.0.0; charset=utf-8"
        )
        return answer.read().decode()


def parsed(text: str) -> dict[tuple[str, str | None], float]:
    """Values by the name of the sample and its label."""
    parser: types.ModuleType = pytest.importorskip(
        "prometheus_client.openmetrics.parser"
    )
    families = list(parser.text_string_to_metric_families(text))
    assert all(family.documentation for family in families)
    return {
        (sample.name, next(iter(sample.labels.values()), None)): sample.value
        for family in families
        for sample in family.samples
    }


def settled(
    loader: gm.DatasetIterator[Any],
    holds: Callable[[dict[tuple[str, str | None], float]], bool],
) -> dict[tuple[str, str | None], float]:
    """The figures that the endpoint serves, once they hold: it looks at the pass every 100 ms."""
    while not holds(values := parsed(get(loader))):
        # Asks again: nothing tells when the endpoint has looked.
        time.sleep(0.02)
    return values


def test_prometheus_reads_every_figure() -> None:
    ds = gm.MapDataset.range(40).map(lambda x: x + 1).to_iter_dataset().batch(4)
    for how in ({}, {"threads": 2}, {"workers": False}):
        with ds.loader(metrics="127.0.0.1:0", **how) as loader:
            assert len(list(loader)) == 10
            metrics = gm.metrics(loader)
            # As the loop saw it, with what it took to have the interpreter.
            run = pytest.approx(metrics["input/run_s"])
            values = settled(
                loader, lambda v: v["gristmill_input_run_seconds_total", None] == run
            )
        assert values["gristmill_build_info", gm.__version__] == 1
        assert values["gristmill_input_elements_total", None] == 10
        assert values["gristmill_input_stage_elements_total", "1_map"] == 40
        assert len(values) == len(metrics) + 1


def test_names_of_notes_and_stages_are_escaped() -> None:
    ds = gm.MapDataset.source([{"ids": [1] * n} for n in (3, 20, 2)]).to_iter_dataset()
    with (
        ds.window_pack(length={"ids": 8}, over_long="split")
        .batch(1)
        .loader(metrics=0) as loader
    ):
        list(loader)
        values = settled(
            loader, lambda v: v.get(("gristmill_input_tokens_total", None), 0) == 25
        )
    assert values["gristmill_input_tokens_total", None] == 25
    assert any(
        name == "gristmill_input_notes_total" and label for name, label in values
    )


def test_it_answers_while_a_function_has_the_interpreter_or_hangs() -> None:
    asked, answered, texts = threading.Event(), threading.Event(), []

    def function(x: int) -> int:
        if x == 3:
            asked.set()
            assert answered.wait(120)
        return x

    def scrape() -> None:
        assert asked.wait(120)
        texts.append(get(loader))
        answered.set()

    loader = gm.MapDataset.range(6).map(function).loader(metrics=0)
    scraper = threading.Thread(target=scrape)
    scraper.start()
    assert list(loader) == list(range(6))
    scraper.join()
    assert texts and texts[0].endswith("# EOF\n")
    loader.close()


def test_a_pass_that_goes_elsewhere_goes_on_answering() -> None:
    ds = gm.MapDataset.range(10)
    with ds.loader(metrics=0) as loader:
        address, start = loader.metrics_address, loader.get_state()
        assert list(loader) == list(range(10))
        # Behind its end another takes its place.
        loader.set_state(start)
        assert next(loader) == 0 and loader.metrics_address == address
        assert parsed(get(loader))["gristmill_input_elements_total", None] == 1


def test_nobody_answers_where_nobody_was_asked_to_or_it_is_closed() -> None:
    with gm.MapDataset.range(3).loader() as loader:
        assert loader.metrics_address is None
    with gm.MapDataset.range(3).loader(metrics=0) as loader:
        address = loader.metrics_address
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(loader, "/")
        with pytest.raises(
            gm.ConfigError, match=r"metrics cannot be offered at 127\.0\.0\.1:\d+"
        ):
            gm.MapDataset.range(3).loader(metrics=address)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"http://{address}/metrics", timeout=120)
    with pytest.raises(gm.ConfigError, match="is no address to listen at"):
        gm.MapDataset.range(3).loader(metrics="here")
    with pytest.raises(gm.ConfigError, match="metrics: needs text"):
        gm.MapDataset.range(3).loader(metrics=1.5)  # type: ignore[arg-type]


def test_the_page_shows_how() -> None:
    text = PAGE.read_text().split("\n## Prometheus\n")[1]
    names: dict[str, Any] = {"gm": gm}
    exec(text.split("```python\n")[1].split("```")[0], names)
    assert names["scrape"](gm.MapDataset.range(8).to_iter_dataset().batch(2)).endswith(
        "# EOF\n"
    )


def test_options_that_there_are_not_or_of_another_type_are_told_by_name() -> None:
    ds: Any = gm.MapDataset.range(3)
    for source in (ds, ds.to_iter_dataset()):
        with pytest.raises(
            TypeError, match=r"loader\(\) got an unexpected keyword argument 'thread'"
        ):
            source.loader(thread=2)
        with pytest.raises(gm.ConfigError, match="buffer: needs a whole number"):
            source.loader(buffer="2")
        with pytest.raises(TypeError, match="positional"):
            source.loader(2)

"""The picture of a pass while it runs: the widget, and the script that a browser runs of it."""

import gc
import json
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import gristmill as gm
import pytest

pytest.importorskip("anywidget", reason="anywidget is not installed")


def passed(batches: int = 200) -> gm.DatasetIterator:
    return iter(gm.MapDataset.range(4 * batches).to_iter_dataset().batch(4).loader(threads=2))


def becomes(true: Callable[[], bool]) -> bool:
    end = time.monotonic() + 60
    while not true() and time.monotonic() < end:
        # Looks again: a thread of the library draws.
        time.sleep(0.01)
    return true()


def test_the_picture_is_drawn_anew_while_the_pass_runs() -> None:
    loader = passed()
    ribbon = gm.notebook.watch(loader, every=0.1)
    assert "Nothing was delivered yet" in ribbon.picture
    for _ in range(20):
        next(loader)
    assert becomes(lambda: ribbon.picture.startswith("<svg "))
    first = ribbon.picture
    assert list(loader)
    assert becomes(lambda: ribbon.picture != first)
    ribbon.stop()
    ribbon.close()


def test_it_is_the_ribbon_of_the_report() -> None:
    loader = passed()
    assert list(loader)
    ribbon = gm.notebook.watch(loader, every=60)
    svg = loader.report().to_svg()
    # All but what is measured anew at each look.
    assert ribbon.picture.split("<title>")[0] == svg.split("<title>")[0]
    assert svg in loader.report()._repr_html_() or svg.startswith("<svg ")
    ribbon.close()


def test_a_pass_that_nobody_has_is_not_kept_and_its_thread_ends() -> None:
    loader = passed()
    next(loader)
    ribbon = gm.notebook.watch(loader, every=0.1)
    assert ribbon._thread.is_alive()
    del loader
    gc.collect()
    assert becomes(lambda: not ribbon._thread.is_alive())
    # What was seen last stays.
    assert ribbon.picture.startswith("<svg ")
    ribbon.close()


def test_a_notebook_shows_the_widget_and_it_goes_on_without_the_object() -> None:
    loader = passed()
    ribbon = gm.notebook.watch(loader, every=0.1)
    shown = ribbon._repr_mimebundle_()
    bundle = shown[0] if isinstance(shown, tuple) else shown
    assert "application/vnd.jupyter.widget-view+json" in bundle
    widget = ribbon.widget
    del ribbon
    gc.collect()
    assert list(loader)
    assert becomes(lambda: widget.picture.startswith("<svg "))


def test_what_is_no_pass_is_refused() -> None:
    with pytest.raises(gm.ConfigError, match="no pass over a dataset"):
        gm.notebook.watch([1, 2])
    for every in (0.0, -1.0, float("nan")):
        with pytest.raises(gm.ConfigError, match="every is"):
            gm.notebook.watch(passed(), every=every)


def test_the_script_fetches_nothing() -> None:
    script = gm.notebook._SCRIPT
    assert not any(word in script for word in ("http", "import(", "fetch", "require", "src"))


@pytest.mark.skipif(shutil.which("node") is None, reason="no node on the PATH")
def test_the_script_draws_what_the_model_has(tmp_path: Path) -> None:
    (tmp_path / "ribbon.mjs").write_text(gm.notebook._SCRIPT)
    (tmp_path / "page.mjs").write_text("""
        import ribbon from "./ribbon.mjs";
        const told = {}, seen = [], el = {};
        const model = {
          picture: "<svg>1</svg>",
          get(name) { return this[name]; },
          on(what, draw) { told[what] = draw; },
          off(what, draw) { if (told[what] === draw) delete told[what]; },
        };
        const end = ribbon.render({ model, el });
        seen.push(el.innerHTML);
        model.picture = "<svg>2</svg>";
        told["change:picture"]();
        seen.push(el.innerHTML);
        end();
        seen.push(Object.keys(told).length);
        console.log(JSON.stringify(seen));
    """)
    done = subprocess.run(["node", tmp_path / "page.mjs"], capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == ["<svg>1</svg>", "<svg>2</svg>", 0]

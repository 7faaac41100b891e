"""The picture of a pass in a notebook, while it runs.

Imported when it is first used, as `gristmill.notebook`; it needs `anywidget`: `pip install gristmill[notebook]`. A report has the same picture without
it, as it is when the cell ends.
"""

import threading
import weakref
from typing import Any, cast

from gristmill import _errors, _optional
from gristmill._metrics import report

try:
    import anywidget as _any  # pyright: ignore[reportMissingImports]
    import traitlets as _traits  # pyright: ignore[reportMissingImports, reportMissingModuleSource]
except ModuleNotFoundError as _missing:
    raise _optional.needed(_missing, "notebook", "anywidget", "anywidget") from None

# Typed where they are installed alone.
_anywidget, _traitlets = cast("Any", _any), cast("Any", _traits)

#: What the browser runs. It fetches nothing, and draws what the extension has drawn: names in that are escaped there.
_SCRIPT = """
function render({ model, el }) {
  const draw = () => { el.innerHTML = model.get("picture"); };
  model.on("change:picture", draw);
  draw();
  return () => model.off("change:picture", draw);
}
export default { render };
"""

#: Before anything was delivered.
_NOTHING = '<p style="opacity:.7">Nothing was delivered yet.</p>'


#: The widget; made in one call, as checkers do not know what it derives from.
_Widget: Any = type(
    "_Widget", (_anywidget.AnyWidget,), {"_esm": _SCRIPT, "picture": _traitlets.Unicode(_NOTHING).tag(sync=True), "__module__": __name__}
)


class Ribbon:
    """The ribbon of a pass, which is drawn anew while it runs.

    Attributes:
        widget: The widget of `anywidget` that shows it, for layouts of other widgets.
    """

    def __init__(self, loader: Any, every: float) -> None:
        self.widget: Any = _Widget()
        self._pass = weakref.ref(loader)
        self._ended = threading.Event()
        self.draw()
        # It has the widget, which is shown however long anybody has this object; and not the pass.
        follow = (self._pass, self.widget, self._ended, every)
        threading.Thread(target=_follow, args=follow, name="gristmill-ribbon", daemon=True).start()

    def _repr_mimebundle_(self, **asked: Any) -> Any:
        return self.widget._repr_mimebundle_(**asked)

    @property
    def picture(self) -> str:
        """The ribbon as SVG, as it was drawn last."""
        return cast("str", self.widget.picture)

    def draw(self) -> bool:
        """Draws what there is by now, and says whether there can be more: not of a pass that is closed, or that nobody has any more."""
        return _draw(self._pass, self.widget)

    def stop(self) -> None:
        """Leaves the picture as it is."""
        self._ended.set()

    def close(self) -> None:
        """Stops, and takes the picture away."""
        self.stop()
        self.widget.close()


def _draw(the_pass: "weakref.ref[Any]", widget: Any) -> bool:
    loader = the_pass()
    found = None if loader is None else report(loader)
    if found is None:
        return False
    # Nothing is sent where nothing has changed.
    widget.picture = found.to_svg() or _NOTHING
    return True


def _follow(the_pass: "weakref.ref[Any]", widget: Any, ended: threading.Event, every: float) -> None:
    while not ended.wait(every):
        if not _draw(the_pass, widget):
            return


def watch(loader: Any, *, every: float = 1.0) -> Ribbon:
    """Shows the ribbon of a pass below a cell, drawn anew while the pass runs.

    The last expression of a cell shows it, or `display(…)`; the loop may stand in the same cell or in a later one.

    Args:
        loader: A pass, as `gristmill.metrics` takes it. It is not kept alive.
        every: Seconds from one picture to the next, a tenth at least.

    Returns:
        What shows it; its `stop()` leaves the picture as it is.

    Raises:
        ConfigError: `loader` is no pass, or `every` is less than a tenth.
    """
    if not every >= 0.1:
        raise _errors.make("config", f"every is {every}", "seconds from one picture to the next are needed, 0.1 or more")
    report(loader)
    return Ribbon(loader, every)

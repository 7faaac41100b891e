"""A live picture of a pass in a notebook.

Imported on first use of `gristmill.notebook`. Requires `anywidget`: `pip install gristmill[notebook]`. A report shows
the same picture without the package, but only once, at the end of the cell.
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

# Checkers see types only if the packages are installed.
_anywidget, _traitlets = cast("Any", _any), cast("Any", _traits)

#: Script for the browser. It makes no requests. It inserts the SVG of the extension, in which names are escaped.
_SCRIPT = """
function render({ model, el }) {
  const draw = () => { el.innerHTML = model.get("picture"); };
  model.on("change:picture", draw);
  draw();
  return () => model.off("change:picture", draw);
}
export default { render };
"""

#: Shown before the first delivery.
_NOTHING = '<p style="opacity:.7">Nothing was delivered yet.</p>'


#: The widget class, made by a call because checkers cannot see its base class.
_Widget: Any = type(
    "_Widget", (_anywidget.AnyWidget,), {"_esm": _SCRIPT, "picture": _traitlets.Unicode(_NOTHING).tag(sync=True), "__module__": __name__}
)


class Ribbon:
    """The ribbon of a pass, redrawn while the pass runs.

    Attributes:
        widget: The `anywidget` widget that shows the ribbon, for use in layouts of other widgets.
    """

    def __init__(self, loader: Any, every: float) -> None:
        self.widget: Any = _Widget()
        self._pass = weakref.ref(loader)
        self._ended = threading.Event()
        self.draw()
        # The thread holds the widget, which may outlive this object, but only a weak reference to the pass.
        follow = (self._pass, self.widget, self._ended, every)
        self._thread = threading.Thread(target=_follow, args=follow, name="gristmill-ribbon", daemon=True)
        self._thread.start()

    def _repr_mimebundle_(self, **asked: Any) -> Any:
        return self.widget._repr_mimebundle_(**asked)

    @property
    def picture(self) -> str:
        """The ribbon as SVG, as last drawn."""
        return cast("str", self.widget.picture)

    def draw(self) -> bool:
        """Redraws the ribbon. Returns false if the pass is closed or no longer exists."""
        return _draw(self._pass, self.widget)

    def stop(self) -> None:
        """Stops redrawing and keeps the last picture."""
        self._ended.set()

    def close(self) -> None:
        """Stops redrawing and removes the picture."""
        self.stop()
        self.widget.close()


def _draw(the_pass: "weakref.ref[Any]", widget: Any) -> bool:
    loader = the_pass()
    found = None if loader is None else report(loader)
    if found is None:
        return False
    # traitlets sends nothing if the value is unchanged.
    widget.picture = found.to_svg() or _NOTHING
    return True


def _follow(the_pass: "weakref.ref[Any]", widget: Any, ended: threading.Event, every: float) -> None:
    while not ended.wait(every):
        if not _draw(the_pass, widget):
            return


def watch(loader: Any, *, every: float = 1.0) -> Ribbon:
    """Shows the ribbon of a pass below a cell and redraws it while the pass runs.

    Make the result the last expression of a cell, or pass it to `display(…)`. The loop may run in the same cell or in a
    later cell.

    Args:
        loader: A pass, as for `gristmill.metrics`. It is not kept alive.
        every: Seconds between pictures, at least 0.1.

    Returns:
        The ribbon. `stop()` freezes the picture.

    Raises:
        ConfigError: `loader` is not a pass, or `every` is less than 0.1.
    """
    if not every >= 0.1:
        raise _errors.make("config", f"every is {every}", "seconds from one picture to the next are needed, 0.1 or more")
    report(loader)
    return Ribbon(loader, every)

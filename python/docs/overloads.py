"""Makes the site show methods that a stub declares only as overloads. The last overload has the docstring."""

from typing import Any

import griffe


class Overloads(griffe.Extension):
    """Adds overloaded methods to the members of their class."""

    def on_class_members(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Adds the overloaded methods of `cls`. Called once per class."""
        for name, overloads in cls.overloads.items():
            if name not in cls.members:
                shown = overloads[-1]
                shown.overloads = overloads
                cls.set_member(name, shown)

"""Shows methods that a stub writes as overloads alone, by the last of them, which has the docstring."""

from typing import Any

import griffe


class Overloads(griffe.Extension):
    """Makes members of them."""

    def on_class_members(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Asked once for every class."""
        for name, overloads in cls.overloads.items():
            if name not in cls.members:
                shown = overloads[-1]
                shown.overloads = overloads
                cls.set_member(name, shown)

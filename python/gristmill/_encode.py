"""`tokenise` with a function from text to ids: the slow way, for tokenizers that cannot be converted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from gristmill._errors import make


class Encode:
    """Encodes columns of text by a function, with the options of the native `tokenise`."""

    def __init__(
        self,
        *,
        tokenizer: Callable[[str], Iterable[int]],
        column: str | None = None,
        columns: Sequence[str] | None = None,
        into: Sequence[str] = (),
        prepend_bos: int | None = None,
        append_eos: int | None = None,
        max_len: int | None = None,
        overflow: str = "truncate",
        keep_text: bool = False,
        **others: object,
    ) -> None:
        if others:
            raise make("config", f"tokenise: {', '.join(others)} needs a tokenizer, and has no effect on a function", None)
        if (column is None) == (columns is None):
            raise make("config", "tokenise: either `column` or `columns` is required", None)
        for name, token in (("prepend_bos", prepend_bos), ("append_eos", append_eos)):
            if not (token is None or isinstance(cast(object, token), int)):
                raise make("config", f"tokenise: {name} is {token!r}", "a function has no names of tokens: pass the id")
        if overflow not in ("truncate", "error"):
            raise make("config", f"tokenise: overflow={overflow!r} needs a tokenizer", "use `truncate` or `error`")
        names = [column] if column is not None else list(columns or ())
        ids = ["tokens"] if column is not None else [f"{name}_tokens" for name in names]
        self.columns = list(zip(names, [*into, *ids[len(into) :]]))
        self.encode = tokenizer
        self.first = [] if prepend_bos is None else [prepend_bos]
        self.last = [] if append_eos is None else [append_eos]
        self.most, self.overflow, self.keep_text = max_len, overflow, keep_text

    def __call__(self, element: Mapping[str, Any]) -> dict[str, Any]:
        made = {name: value for name, value in element.items() if self.keep_text or name not in dict(self.columns)}
        for column, name in self.columns:
            if column not in element:
                raise make("data", f"tokenise: no column {column!r}", f"the columns are {', '.join(element)}")
            made[name] = self._ids(element[column])
        return made

    def _ids(self, text: str) -> np.ndarray[Any, np.dtype[np.int32]]:
        ids = list(self.encode(text))
        added = len(self.first) + len(self.last)
        if self.most is not None and len(ids) + added > self.most:
            if self.overflow == "error":
                raise make("data", f"tokenise: a text has {len(ids) + added} tokens, limit {self.most}", None)
            ids = ids[: max(self.most - added, 0)]
        return np.asarray(self.first + ids + self.last, np.int32)

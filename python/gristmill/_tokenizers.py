"""Tokenizers of other packages in `tokenise`: each is converted once, and compared on hard texts before use."""

from __future__ import annotations

from gristmill import _gristmill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

_tokenizer_json: Callable[[bytes], str] = getattr(_gristmill, "_tokenizer_json")
_ranks_json: Callable[[list[tuple[bytes, int]], str, list[tuple[str, int]]], str] = getattr(_gristmill, "_ranks_json")
_hard_texts: Callable[[bytes, bool], list[tuple[str, list[int]]]] = getattr(_gristmill, "_hard_texts")


def adapted(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `tokenise` so that `tokenizer` may be an object of another package.

    The contents of a file take the place of the object. Recipes and workers therefore need no other package.
    """

    def tokenise(*args: Any, **kwargs: Any) -> Any:
        tokenizer = kwargs.get("tokenizer")
        if not args or tokenizer is None or isinstance(tokenizer, str) or hasattr(tokenizer, "__fspath__"):
            return method(*args, **kwargs)
        contents = contents_of(tokenizer)
        if contents is None:
            from gristmill._encode import Encode

            return args[0].map(Encode(*args[1:], **kwargs))
        return method(*args, **{**kwargs, "tokenizer": contents})

    tokenise.__doc__ = method.__doc__
    setattr(tokenise, "__wrapped__", method)
    return tokenise


def tokenizer_json(tokenizer: Any) -> str:
    """Converts a tokenizer to the contents of a `tokenizer.json`, which every interface of gristmill reads.

    Args:
        tokenizer: The path of a `.tiktoken` file of a known encoding, a `tiktoken.Encoding`, a `tokenizers.Tokenizer`, or a fast
            tokenizer of `transformers`.

    Raises:
        ConfigError: The object is no tokenizer that can be converted.
        DataError: The converted tokenizer and the object differ. The error shows the text.
        UnsupportedError: The tokenizer is a model of SentencePiece, whose rules no `tokenizer.json` has. Every interface reads its
            file. Also for the ranks of an unknown encoding.
        OSError: The file cannot be read.
    """
    if isinstance(tokenizer, str) or hasattr(tokenizer, "__fspath__"):
        with open(tokenizer, "rb") as file:
            return _tokenizer_json(file.read())
    contents = contents_of(tokenizer)
    if contents is None:
        from gristmill._errors import make

        raise make("config", f"tokenizer_json: {_kind(tokenizer)} cannot be converted", None)
    return _tokenizer_json(_bytes_of(contents))


def contents_of(tokenizer: Any) -> str | None:
    """Returns the contents of a file for an object, or `None` for a function.

    Raises:
        ConfigError: The object is neither a known tokenizer nor a function.
        DataError: The converted tokenizer and the object differ on a hard text.
    """
    # transformers: the Rust tokenizer of a fast one.
    inner = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(inner, "to_str") and hasattr(inner, "encode"):
        contents: str = inner.to_str()
        compared(inner, contents, lambda texts: [inner.encode(text, add_special_tokens=False).ids for text in texts], True)
    elif hasattr(tokenizer, "_mergeable_ranks") and hasattr(tokenizer, "encode_ordinary"):
        ranks: Mapping[bytes, int] = tokenizer._mergeable_ranks
        special: Mapping[str, int] = tokenizer._special_tokens
        contents = _ranks_json(list(ranks.items()), tokenizer._pat_str, list(special.items()))
        compared(tokenizer, contents, tokenizer.encode_ordinary_batch, False)
    elif hasattr(tokenizer, "serialized_model_proto"):
        from base64 import b64encode

        contents = "data:;base64," + b64encode(tokenizer.serialized_model_proto()).decode()
        compared(tokenizer, contents, tokenizer.encode, False)
    elif callable(tokenizer) and not hasattr(tokenizer, "encode"):
        return None
    else:
        from gristmill._errors import make

        help = "pass a function from text to a list of ids, such as its method `encode`"
        raise make("config", f"tokenise: {_kind(tokenizer)} is no tokenizer that can be converted", help)
    return contents


def compared(
    tokenizer: Any, contents: str, encode: Callable[[list[str]], Iterable[list[int]]], special_in_text: bool
) -> None:
    """Compares the ids of an object with the ids of the converted tokenizer."""
    hard = _hard_texts(_bytes_of(contents), special_in_text)
    for (text, ids), wanted in zip(hard, encode([text for text, _ in hard])):
        if ids != list(wanted):
            from gristmill._errors import make

            both = f"{ids} and {list(wanted)}"
            message = f"tokenise: the converted tokenizer differs from {_kind(tokenizer)} on {text!r}: {both}"
            raise make("data", message, "pass a function from text to a list of ids, which is slower")


def _bytes_of(contents: str) -> bytes:
    if contents.startswith("{"):
        return contents.encode()
    from base64 import b64decode

    return b64decode(contents.partition(",")[2])


def _kind(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"

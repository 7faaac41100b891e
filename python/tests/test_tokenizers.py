"""Tokenizers of other packages in `tokenise`: every id equals the id of the package, on hard texts and on documents."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gristmill as gm

TEXTS = ["The miller sleeps.", "  two  spaces ", "¿Qué? 日本語 ①²", "", "a\n\n\tb\r\n", "=" * 300, "<s>[INST]<|endoftext|>", "don't I'LL"]
END = "<|endoftext|>"
DEMO_TOKENIZER = Path(__file__).parents[2] / "src/demo/tokenizer.json"
SPLIT = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"


def ids_of(tokenizer: Any, texts: list[str] = TEXTS, **options: Any) -> list[list[int]]:
    dataset = gm.MapDataset.source([{"text": text} for text in texts]).tokenise(column="text", tokenizer=tokenizer, **options)
    return [element["tokens"].tolist() for element in dataset]


def encoding(ranks: dict[bytes, int] | None = None, **changes: Any) -> Any:
    """Returns an encoding of tiktoken with the tokens of the demo."""
    import tiktoken

    letters = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in letters]
    byte_of = {chr(byte): byte for byte in letters} | {chr(256 + i): byte for i, byte in enumerate(others)}
    vocabulary: dict[str, int] = json.loads(DEMO_TOKENIZER.read_text())["model"]["vocab"]
    tokens = {bytes(byte_of[letter] for letter in token): rank for token, rank in vocabulary.items() if token != END}
    return tiktoken.Encoding("demo", **{"pat_str": SPLIT, "mergeable_ranks": ranks or tokens, "special_tokens": {END: 0}, **changes})


def test_an_encoding_of_tiktoken_gives_its_ids() -> None:
    own = encoding()
    assert ids_of(own) == own.encode_ordinary_batch(TEXTS)
    assert ids_of(own, special_in_text=True) == own.encode_batch(TEXTS, allowed_special="all")
    # The tokens are those of the demo, whose file gives the same ids.
    assert ids_of(own) == ids_of(DEMO_TOKENIZER)
    assert ids_of(own, append_eos=END)[0][-1] == 0


def test_an_expression_that_no_engine_splits_by_hand_is_used_as_it_is() -> None:
    own = encoding(pat_str=r"\s*\p{L}{1,3}|\s*\p{N}|\s*[^\s\p{L}\p{N}]|\s+")
    assert ids_of(own) == own.encode_ordinary_batch(TEXTS)


@pytest.mark.parametrize(
    "options",
    [
        {"model_type": "bpe", "byte_fallback": True, "normalization_rule_name": "identity", "remove_extra_whitespaces": False},
        {"model_type": "bpe", "user_defined_symbols": ["<start>", "@@"], "control_symbols": ["[INST]"]},
        {"model_type": "bpe", "add_dummy_prefix": False, "split_by_whitespace": False},
        {"model_type": "unigram"},
        {"model_type": "unigram", "byte_fallback": True, "normalization_rule_name": "nfkc_cf", "user_defined_symbols": ["@@"]},
    ],
)
def test_a_model_of_sentencepiece_gives_its_ids(options: dict[str, Any], tmp_path: Path) -> None:
    import sentencepiece

    pages = Path(__file__).parents[1] / "docs"
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(page.read_text() for page in sorted(pages.glob("*.md"))[:12]))
    made: dict[str, Any] = {"input": str(corpus), "model_prefix": str(tmp_path / "m"), "vocab_size": 700, "hard_vocab_limit": False}
    sentencepiece.SentencePieceTrainer.train(**made, minloglevel=2, **options)
    own = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "m.model"))
    texts = [*TEXTS, "<start>@@ x @@", "^" * 30, *corpus.read_text().split("\n\n")[:300]]
    wanted = own.encode(texts)
    assert ids_of(own, texts) == ids_of(tmp_path / "m.model", texts) == wanted
    tokens = gm.MapDataset.source([{"text": text} for text in texts]).tokenise(column="text", tokenizer=own)
    state = tokens.to_iter().mp_prefetch(workers=1)
    assert [element["tokens"].tolist() for element in state] == wanted


def test_tokenizers_of_hugging_face_give_their_ids() -> None:
    import tokenizers
    import transformers

    inner = tokenizers.Tokenizer.from_file(str(DEMO_TOKENIZER))
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, eos_token=END)
    wanted = [inner.encode(text, add_special_tokens=False).ids for text in TEXTS]
    assert ids_of(inner, special_in_text=True) == ids_of(fast, special_in_text=True) == wanted
    assert ids_of(inner) == ids_of(DEMO_TOKENIZER)


def test_a_recipe_holds_the_contents_and_needs_no_other_package() -> None:
    dataset = gm.MapDataset.source([{"text": TEXTS[0]}]).tokenise(column="text", tokenizer=encoding())
    pickled = pickle.dumps(dataset)
    assert b"tiktoken" not in pickled
    assert pickle.loads(pickled)[0]["tokens"].tolist() == dataset[0]["tokens"].tolist()


def test_a_function_is_the_slow_way() -> None:
    def encode(text: str) -> list[int]:
        return [ord(letter) for letter in text]

    assert ids_of(encode, ["ab", ""]) == [[97, 98], []]
    assert ids_of(encode, ["abcd"], prepend_bos=1, append_eos=2, max_len=4) == [[1, 97, 98, 2]]
    kept = gm.MapDataset.source([{"a": "x", "b": "y", "n": 3}]).tokenise(columns=["a", "b"], tokenizer=encode, keep_text=True)[0]
    assert (kept["a"], kept["a_tokens"].tolist(), kept["b_tokens"].dtype, kept["n"]) == ("x", [120], np.int32, 3)
    with pytest.raises(gm.DataError, match="a text has 4 tokens, limit 2"):
        ids_of(encode, ["abcd"], max_len=2, overflow="error")
    with pytest.raises(gm.ConfigError, match="prepend_bos is '<s>'"):
        ids_of(encode, prepend_bos="<s>")
    with pytest.raises(gm.ConfigError, match="special_in_text needs a tokenizer"):
        ids_of(encode, special_in_text=True)


def test_a_difference_and_an_unknown_object_are_errors() -> None:
    class Other:
        def __init__(self) -> None:
            own = encoding()
            self._mergeable_ranks, self._special_tokens, self._pat_str = own._mergeable_ranks, {END: 0}, own._pat_str

        def encode_ordinary(self, text: str) -> list[int]:
            return [1]

        def encode_ordinary_batch(self, texts: list[str]) -> list[list[int]]:
            return [[1] for _ in texts]

    with pytest.raises(gm.DataError, match="the converted tokenizer differs from .*Other on \"'s\"") as caught:
        ids_of(Other())
    assert "pass a function" in (caught.value.help or "")
    with pytest.raises(gm.ConfigError, match="builtins.object is no tokenizer"):
        ids_of(object())


def test_a_converted_tokenizer_is_saved_as_json(tmp_path: Path) -> None:
    file = tmp_path / "demo.tokenizer.json"
    file.write_text(gm.tokenizer_json(encoding()))
    assert ids_of(file) == ids_of(DEMO_TOKENIZER)
    with pytest.raises(gm.ConfigError, match="cannot be converted"):
        gm.tokenizer_json(len)

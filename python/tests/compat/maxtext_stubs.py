"""Stands in for what MaxText imports and its input pipeline does not use, where it is not installed.

`write(folder)` makes modules that processes find which were started with that folder on their path; each has all attributes.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

ABSENT = (
    "PIL ml_collections omegaconf pathwaysutils qwix sentencepiece tiktoken tokamax transformers tunix google.cloud "
    "jsonlines decord librosa drjax flax optax aqt jaxtyping grpc tensorboardX tensorstore cloud_tpu_diagnostics pydantic"
).split()


class Bytes:
    """A tokenizer of bytes, as `sentencepiece` would be one of a model."""

    def Load(self, path: str) -> None: ...

    def EncodeAsIds(self, text: str) -> list[int]:
        return [byte + 3 for byte in text.encode()]

    def pad_id(self) -> int:
        return 0

    def unk_id(self) -> int:
        return 0

    def bos_id(self) -> int:
        return 1

    def eos_id(self) -> int:
        return 2


class Chat:
    """A tokenizer of bytes with a chat template, as `transformers` would load one."""

    pad_token_id = unk_token_id = 0
    bos_token_id, eos_token_id = 1, 2
    chat_template: str | None = None

    def __init__(self, add_bos_token: bool, add_eos_token: bool) -> None:
        self.before, self.behind = [1] * add_bos_token, [2] * add_eos_token

    @staticmethod
    def from_pretrained(path: str, add_bos_token: bool, add_eos_token: bool, token: str | None) -> "Chat":
        return Chat(add_bos_token, add_eos_token)

    def encode(self, text: str) -> list[int]:
        return [*self.before, *(byte + 3 for byte in text.encode()), *self.behind]

    def decode(self, ids: list[int], skip_special_tokens: bool = True) -> str:
        return bytes(token - 3 for token in ids).decode()

    def apply_chat_template(self, messages: list[dict[str, str]], add_generation_prompt: bool, tokenize: bool) -> list[int]:
        text = "".join(f"<{message['role']}>{message['content']}</>" for message in messages)
        return [byte + 3 for byte in (text + "<assistant>" * add_generation_prompt).encode()]


class Of(type):
    """The kind of a class that has all attributes: others of its kind."""

    def __getattr__(cls, name: str) -> Any:
        return made(name)

    def __getitem__(cls, _: Any) -> Any:
        return cls


def made(name: str) -> Any:
    """A class for whatever is asked of a stub."""
    if name.startswith("__"):
        raise AttributeError(name)
    return Of(name, (), {"__init__": lambda self, *_, **__: None})


TOKENIZERS: dict[str, tuple[str, type]] = {"sentencepiece": ("SentencePieceProcessor", Bytes), "transformers": ("AutoTokenizer", Chat)}


class Anything(ModuleType):
    """A module in which everything is."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return made(name)


class Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds what is nowhere else."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if not any(fullname == name or fullname.startswith(f"{name}.") for name in ABSENT):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: Any) -> ModuleType:
        return module(spec.name)

    def exec_module(self, module: ModuleType) -> None: ...


def install() -> None:
    """From now on they are found, behind all that is installed."""
    if not any(isinstance(finder, Stubs) for finder in sys.meta_path):
        sys.meta_path.append(Stubs())
    # Also if they are installed: there is no model to load.
    for name in TOKENIZERS:
        sys.modules[name] = module(name)


def write(folder: Path) -> None:
    """A file for each that is not installed, by which another process comes to the same."""
    for name in ABSENT:
        if "." not in name and (name in TOKENIZERS or importlib.util.find_spec(name) is None):
            code = f"import importlib, sys\nimport maxtext_stubs\nmaxtext_stubs.install()\ndel sys.modules[{name!r}]\n"
            code += f"sys.path_importer_cache.clear()\nsys.modules[{name!r}] = maxtext_stubs.module({name!r})\n"
            (folder / f"{name}.py").write_text(code)


def module(name: str) -> ModuleType:
    """The stub of that name."""
    stub = Anything(name)
    stub.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
    if name in TOKENIZERS:
        setattr(stub, *TOKENIZERS[name])
    return stub

"""Virtual environments of the peers: one for each of those that cannot live together, and why a package is not there."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
# What each of them has besides.
COMMON = ("numpy", "tokenizers")


@dataclass(frozen=True)
class Peer:
    """A library, where it lives, and the file that runs it."""

    name: str
    environment: str
    # What is imported, and what is installed for it.
    module: str
    packages: tuple[str, ...]
    # The format in which it reads records; `None` for a tokenizer, which runs on unseen text.
    records: str | None

    @property
    def file(self) -> Path:
        return Path(__file__).with_name(f"peer_{self.name.replace('.', '_')}.py")

    @property
    def workloads(self) -> tuple[str, ...]:
        return ("tokens", f"records-{self.records}") if self.records else ("unseen",)


PEERS = (
    Peer("grain", "grain", "grain", ("grain",), "npy"),
    Peer("torch", "torch", "torch", ("torch",), "npy"),
    Peer("tf.data", "tensorflow", "tensorflow", ("tensorflow-cpu",), "tfrecord"),
    Peer("datasets", "torch", "datasets", ("torch", "datasets"), "arrow"),
    # It asks for NumPy and Hugging Face's packages of years ago, with which newer peers do not run.
    Peer("streaming", "streaming", "streaming", ("torch", "mosaicml-streaming"), "mds"),
    Peer("webdataset", "torch", "webdataset", ("torch", "webdataset"), "tar"),
    Peer("spdl", "torch", "spdl.pipeline", ("spdl",), "npy"),
    Peer("litdata", "torch", "litdata", ("torch", "litdata"), "litdata"),
    Peer("gigatoken", "tokenizers", "gigatoken", ("gigatoken",), None),
    Peer("fastokens", "tokenizers", "fastokens", ("fastokens",), None),
    Peer("tiktoken", "tokenizers", "tiktoken", ("tiktoken",), None),
)
OURS = Peer("gristmill", "gristmill", "gristmill", (str(REPOSITORY),), "npy")


class Environments:
    """Interpreters by name: those that were given, and those that are made in a folder."""

    def __init__(self, folder: Path, given: Mapping[str, Path], wheel: Path | None) -> None:
        self._folder, self._given, self._wheel = folder, dict(given), wheel
        self._reasons: dict[str, str] = {}

    def python(self, peer: Peer) -> Path:
        """The interpreter that runs a peer."""
        made = self._folder / peer.environment / "bin" / "python"
        return self._given.get(peer.environment, made)

    def missing(self, peer: Peer) -> str | None:
        """Why a peer cannot be run here; `None` if it can. What is not there is installed, unless the interpreter was given."""
        if peer.name not in self._reasons:
            self._reasons[peer.name] = self._provide(peer)
        return self._reasons[peer.name] or None

    def _provide(self, peer: Peer) -> str:
        python = self.python(peer)
        trying = [str(python), "-c", f"import {peer.module}" + ("" if peer is OURS else ", tokenizers")]
        if peer.environment in self._given:
            return _last(_run(trying))
        if not python.exists():
            print(f"making an environment for {peer.environment}", file=sys.stderr)
            if failed := _last(_run([sys.executable, "-m", "venv", str(python.parents[1])])):
                return failed
        packages = (str(self._wheel),) if peer is OURS and self._wheel else peer.packages
        if _run(trying) is None:
            return ""
        print(f"installing {' '.join(packages)}", file=sys.stderr)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *COMMON, *packages]
        return _last(_run(install)) or _last(_run(trying))


# What is built here is built as it is published.
PUBLISHED = {"MATURIN_PEP517_ARGS": "--profile dist"}


def _run(command: Sequence[str]) -> str | None:
    """What a command complained about; `None` if it did what it was asked to."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False, env=os.environ | PUBLISHED)
    return None if done.returncode == 0 else done.stderr or f"exit status {done.returncode}"


def _last(complaint: str | None) -> str:
    lines = [line for line in (complaint or "").splitlines() if line.strip()]
    return lines[-1].strip()[:120] if lines else ""

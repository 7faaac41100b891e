"""Runs the blocks of one page in the folder where it is started: `python site_page.py PAGE`.

The folder gets the data that pages name: `corpus`, `web`, `books`, `code`, `rows.npy`, `gpt2.tokenizer.json` and `pipeline.yaml`. Prints a line for each
block that it leaves out.
"""

import gzip
import importlib.util
import json
import linecache
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from site_blocks import REPOSITORY, Block, blocks

PIPELINE = """source:
  jsonl: {paths: ["corpus/*.jsonl"], columns: [text]}
stages:
  - tokenise: {tokenizer: gpt2.tokenizer.json, column: text}
  - window_pack: {length: {tokens: 64}, over_long: split}
  - batch: {batch_size: 64, remainder: drop}
"""


def prepare() -> None:
    """Writes what the pages take for granted."""
    import gristmill as gm
    import numpy as np

    words = "the mill wheel turns slowly after rain and the miller counts every sack of flour twice".split()
    for number, name in enumerate(("corpus", "web", "books", "code")):
        Path(name).mkdir()
        texts = [" ".join(words[(x * number + at) % 16] for at in range(x * 37 % 150 + 1)) for x in range(1000)]
        written = "".join(json.dumps({"text": text}) + "\n" for text in texts)
        Path(name, "a.jsonl").write_text(written)
        Path(name, "b.jsonl.gz").write_bytes(gzip.compress(written.encode()))
        with gm.sink(f"{name}/rows", "parquet") as sink:
            sink.write_all({"text": text} for text in texts)
        next(Path(name, "rows").glob("*.parquet")).rename(Path(name, "c.parquet"))
    np.save("rows.npy", np.arange(4000, dtype=np.float32).reshape(1000, 4))
    Path("gpt2.tokenizer.json").write_bytes((REPOSITORY / "src/demo/tokenizer.json").read_bytes())
    Path("pipeline.yaml").write_text(PIPELINE)
    Path("lm.yaml").write_text(PIPELINE)


def names() -> dict[str, Any]:
    """Those that every page has."""
    import gristmill as gm
    import numpy as np

    trained: list[Any] = []
    return {"gm": gm, "np": np, "json": json, "Path": Path, "trained": trained, "train": trained.append, "__name__": "__main__"}


def run_python(text: str, block: Block, known: dict[str, Any]) -> None:
    """Runs a text with the numbers of its lines on the page, which tracebacks show."""
    name = f"<{block.place}>"
    linecache.cache[name] = (len(text), None, ("\n" * (block.line - 1) + text).splitlines(keepends=True), name)
    exec(compile("\n" * (block.line - 1) + text, name, "exec"), known)


def run_shell(text: str) -> None:
    """Runs a text by a shell that stops at the first command that fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], env={**os.environ, "PATH": path}, timeout=240, check=False)
    assert done.returncode == 0, f"exit code {done.returncode}"


def read_file(text: str) -> None:
    """Reads a pipeline file and takes its first batch."""
    import gristmill as gm

    Path("shown.yaml").write_text(text)
    with gm.IterDataset.from_file("shown.yaml").loader() as batches:
        assert next(batches) is not None


def run(block: Block, known: dict[str, Any]) -> str | None:
    """Runs a block, or says why not."""
    marks = block.marks
    if block.included or "held by" in marks:
        return None
    if "not run" in marks:
        return marks["not run"].strip()
    lacking = [name for name in marks.get("needs", "").split() if not importlib.util.find_spec(name.strip(","))]
    if lacking:
        return f"needs {', '.join(lacking)}"
    if "setup" in marks:
        run_python(textwrap.dedent(marks["setup"]), block, known)
    if "file" in marks:
        Path(marks["file"].strip()).write_text(block.text)
    if block.language == "python":
        run_python(block.text, block, known)
    elif block.language == "sh":
        run_shell(block.text)
    elif block.language == "yaml" and "source:" in block.text:
        read_file(block.text)
    return None


def main(page: Path) -> None:
    prepare()
    known = names()
    for block in blocks(page):
        print(f"at {block.place}", file=sys.stderr, flush=True)
        if why := run(block, known):
            print(f"{block.place}: left out: {why}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

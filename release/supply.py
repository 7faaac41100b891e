"""Checks licences and sources of all dependencies by deny.toml, out of what `cargo metadata` tells: no more than Python is needed."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"


def allowed(expression: str, licences: set[str]) -> bool:
    """Whether an SPDX expression holds where these licences are accepted: any side of OR, both sides of AND."""
    # The form of before SPDX: a slash is OR.
    words = re.findall(r"[()]|[^\s()]+(?: WITH [^\s()]+)?", expression.replace("/", " OR "))
    found = _any(words, licences)
    if words:
        raise ValueError(f"{expression!r}: no licence expression")
    return found


def _any(words: list[str], licences: set[str]) -> bool:
    found = _all(words, licences)
    while words and words[0] == "OR":
        del words[0]
        found |= _all(words, licences)
    return found


def _all(words: list[str], licences: set[str]) -> bool:
    found = _one(words, licences)
    while words and words[0] == "AND":
        del words[0]
        found &= _one(words, licences)
    return found


def _one(words: list[str], licences: set[str]) -> bool:
    if not words:
        raise ValueError("a licence expression ends too early")
    word = words.pop(0)
    if word != "(":
        return word in licences
    found = _any(words, licences)
    if not words or words.pop(0) != ")":
        raise ValueError("a licence expression lacks a bracket")
    return found


def wrong(package: dict[str, Any], rules: dict[str, Any]) -> str | None:
    """What is against the rules."""
    if package["source"] is None:
        return None
    if package["source"] != REGISTRY:
        return f"comes from {package['source']}"
    licences = set(rules["allow"])
    for exception in rules["exceptions"]:
        if exception["crate"] == package["name"]:
            licences |= set(exception["allow"])
    if package["license"] is None:
        return "names no licence"
    return None if allowed(package["license"], licences) else f"has the licence {package['license']}, which deny.toml does not allow"


def main() -> int:
    rules = tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]
    told = subprocess.run(
        ["cargo", "metadata", "--locked", "--all-features", "--format-version", "1"], cwd=ROOT, check=True, stdout=subprocess.PIPE
    ).stdout
    packages = json.loads(told)["packages"]
    faults = [f"{p['name']} {p['version']} {fault}" for p in packages if (fault := wrong(p, rules))]
    print(f"{len(packages)} packages, {len(faults)} against deny.toml", *faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

"""Objects of Azure Blob Storage, as Azurite has them: the data of the same files on a disk."""

import base64
import email.utils
import hashlib
import hmac
import json
import os
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers import free_port, running

import gristmill as gm

AZURITE = os.environ.get("GRISTMILL_AZURITE") or shutil.which("azurite-blob")
pytestmark = pytest.mark.skipif(AZURITE is None, reason="no Azurite: npm install -g azurite")

ACCOUNT = "devstoreaccount1"
# The one that every Azurite has.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
LINES = [{"n": n, "text": f"{n} " + "x" * (n * 7919 % 900)} for n in range(4000)]


def put(endpoint: str, path: str, data: bytes = b"", **query: str) -> None:
    """Makes a blob or, with `restype`, a container: what the crate itself does not do."""
    headers = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    if not query:
        headers["x-ms-blob-type"] = "BlockBlob"
    signed = "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()))
    resource = f"/{ACCOUNT}/{ACCOUNT}/{path}" + "".join(f"\n{name}:{value}" for name, value in query.items())
    length = len(data) or ""
    text = f"PUT\n\n\n{length}\n\napplication/octet-stream\n\n\n\n\n\n\n{signed}{resource}"
    signature = base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()
    headers |= {"Authorization": f"SharedKey {ACCOUNT}:{signature}", "Content-Type": "application/octet-stream"}
    url = f"{endpoint}/{ACCOUNT}/{path}" + ("?" + "&".join(f"{k}={v}" for k, v in query.items()) if query else "")
    urllib.request.urlopen(urllib.request.Request(url, data=data, method="PUT", headers=headers)).close()


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    port = free_port()
    command = [str(AZURITE), "--blobPort", str(port), "--inMemoryPersistence", "--silent"]
    endpoint = f"http://127.0.0.1:{port}"
    with running(command, lambda: put(endpoint, "data", restype="container")):
        yield endpoint


@pytest.fixture
def container(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
    monkeypatch.setenv("AZURE_ALLOW_HTTP", "true")
    monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", endpoint)
    return endpoint


def test_objects_give_the_data_of_files(container: str, tmp_path: Path) -> None:
    for number, part in enumerate((LINES[:1500], LINES[1500:])):
        text = "".join(json.dumps(line) + "\n" for line in part).encode()
        (tmp_path / f"a-{number:03}.jsonl").write_bytes(text)
        put(container, f"data/in/a-{number:03}.jsonl", text)
    near = [e["text"] for e in gm.MapDataset.jsonl(str(tmp_path)).shuffle(seed=3)]
    for paths in ("az://data/in/a-{000..001}.jsonl", "az://data/in/*.jsonl", "az://data/in/"):
        assert [e["text"] for e in gm.MapDataset.jsonl(paths).shuffle(seed=3)] == near, paths


def test_what_is_not_there_is_said_without_secrets(container: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError, match="there is no such object"):
        gm.MapDataset.jsonl("az://data/none.jsonl")
    wrong = base64.b64encode(b"a hidden key").decode()
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", wrong)
    with pytest.raises(OSError) as caught:
        gm.MapDataset.jsonl("az://data/in/a-000.jsonl")
    assert wrong not in str(caught.value) and "hidden" not in str(caught.value)

"""Objects of S3, as moto's server has them: the data of the same files on a disk."""

import json
import os
import signal
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from servers import free_port, running

import gristmill as gm

pytest.importorskip("moto.server", reason="no moto: pip install 'moto[server]'")

LINES = [{"n": n, "text": f"{n} " + "x" * (n * 7919 % 900)} for n in range(4000)]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with running(command, lambda: urllib.request.urlopen(url).close()):
        yield url


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "hidden-id",
        "AWS_SECRET_ACCESS_KEY": "hidden-secret",
        "AWS_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    client(endpoint).create_bucket(Bucket="data")
    return endpoint


def client(endpoint: str) -> Any:
    """Amazon's own, with the credentials of the environment."""
    boto3: Any = pytest.importorskip("boto3")
    return boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")


def put(endpoint: str, name: str, data: bytes) -> str:
    client(endpoint).put_object(Bucket="data", Key=name, Body=data)
    return f"s3://data/{name}"


def shards(bucket: str, folder: Path) -> str:
    """Two files, here and there, and their pattern."""
    for number, part in enumerate((LINES[:1500], LINES[1500:])):
        text = "".join(json.dumps(line) + "\n" for line in part).encode()
        (folder / f"a-{number:03}.jsonl").write_bytes(text)
        put(bucket, f"in/a-{number:03}.jsonl", text)
    return "s3://data/in/a-{000..001}.jsonl"


def numbers(ds: gm.MapDataset | gm.IterDataset) -> list[int]:
    return [int(element["n"]) for element in ds]


def test_objects_are_files(bucket: str, tmp_path: Path) -> None:
    pattern = shards(bucket, tmp_path)
    near = [(int(e["n"]), e["text"]) for e in gm.MapDataset.jsonl(str(tmp_path / "*.jsonl")).shuffle(seed=3)]
    for paths in (pattern, "s3://data/in/*.jsonl", "s3://data/in/", "s3://data/in"):
        far = gm.MapDataset.jsonl(paths).shuffle(seed=3)
        assert [(int(e["n"]), e["text"]) for e in far] == near
    for workers in (0, 1, 4):
        stream = gm.MapDataset.jsonl(pattern).shuffle(seed=3).to_iter_dataset()
        assert numbers(stream.mp_prefetch(gm.MpOptions(num_workers=workers))) == [n for n, _ in near]


def test_states_are_states_of_files(bucket: str, tmp_path: Path) -> None:
    stream = gm.MapDataset.jsonl(shards(bucket, tmp_path)).shuffle(seed=3).to_iter_dataset()
    everything = numbers(stream)
    iterator = iter(stream)
    first = [int(next(iterator)["n"]) for _ in range(1000)]
    state = iterator.get_state()
    other = iter(stream.mp_prefetch(gm.MpOptions(num_workers=2)))
    other.set_state(state)
    assert first + [int(element["n"]) for element in other] == everything


def test_a_killed_worker_is_replaced(bucket: str, tmp_path: Path) -> None:
    stream = gm.MapDataset.jsonl(shards(bucket, tmp_path)).shuffle(seed=3).to_iter_dataset()
    everything = numbers(stream)
    iterator = iter(stream.mp_prefetch(gm.MpOptions(num_workers=2)))
    seen = [int(next(iterator)["n"]) for _ in range(10)]
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    workers = [int(pid) for pid in children if b"moto" not in Path(f"/proc/{pid}/cmdline").read_bytes()]
    if workers:
        os.kill(workers[-1], signal.SIGKILL)
    assert seen + [int(element["n"]) for element in iterator] == everything


def test_an_object_that_changed_is_refused(bucket: str, tmp_path: Path) -> None:
    url = put(bucket, "changing.jsonl", b'{"n": 1}\n' * 300_000)
    ds = gm.MapDataset.jsonl(url)
    state = iter(ds.to_iter_dataset()).get_state()
    put(bucket, "changing.jsonl", b'{"n": 2}\n' * 300_000)
    other = iter(gm.MapDataset.jsonl(url).to_iter_dataset())
    with pytest.raises(gm.StateError):
        other.set_state(state)


def test_what_is_not_there_is_said_without_secrets(bucket: str) -> None:
    for url in ("s3://data/none.jsonl", "s3://none/a.jsonl", "s3://data/none-*.jsonl", "s3://data/none/"):
        with pytest.raises(gm.Error) as caught:
            gm.MapDataset.jsonl(url)
        assert "hidden" not in str(caught.value) and "none" in str(caught.value)


def test_without_a_signature(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = put(bucket, "public.txt", b"one\ntwo\n")
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    with pytest.raises(gm.IoError, match="403"):
        gm.MapDataset.lines(url)
    client(bucket).put_object_acl(Bucket="data", Key="public.txt", ACL="public-read")
    assert [line["text"] for line in gm.MapDataset.lines(url)] == ["one", "two"]


def test_blocks_are_kept_on_disk(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("GRISTMILL_STORE_"):
            monkeypatch.delenv(name)
    pattern = shards(bucket, tmp_path)
    monkeypatch.setenv("GRISTMILL_STORE_CACHE_DIR", "")
    gm.store_options(cache_dir=tmp_path / "cache", cache_size="1GiB", memory=64 << 20)
    assert os.environ["GRISTMILL_STORE_CACHE_DIR"] == str(tmp_path / "cache")
    assert sorted(numbers(gm.MapDataset.jsonl(pattern))) == list(range(4000))
    deadline = time.monotonic() + 60
    while not list((tmp_path / "cache" / "blocks").glob("??/*")) and time.monotonic() < deadline:
        # Looks again: a thread of the library writes the blocks.
        time.sleep(0.05)
    assert list((tmp_path / "cache" / "blocks").glob("??/*"))
    for name in ("CACHE_SIZE", "MEMORY"):
        monkeypatch.delenv(f"GRISTMILL_STORE_{name}")


def test_shards_are_written_in_parts_and_appear_whole(bucket: str, tmp_path: Path) -> None:
    rows = [np.random.default_rng(n).standard_normal(100_000, dtype=np.float32) for n in range(60)]
    with gm.sink("s3://data/out", "array_record", shard_bytes=16 << 20) as sink:
        for row in rows:
            sink.write({"row": row.tobytes()})
    far = list(gm.MapDataset.array_record("s3://data/out/"))
    assert len(far) == len(rows) and all(row.tobytes() in record for row, record in zip(rows, far, strict=True))
    # A part is 8 MiB, and no upload is left open.
    assert "Uploads" not in client(bucket).list_multipart_uploads(Bucket="data")

    with pytest.raises(RuntimeError, match="stop"), gm.sink("s3://data/dropped", "array_record") as sink:
        for row in rows[:50]:
            sink.write({"row": row.tobytes()})
        raise RuntimeError("stop")
    found = client(bucket).list_objects_v2(Bucket="data", Prefix="dropped/").get("Contents", [])
    assert not [entry for entry in found if ".array_record" in entry["Key"]]
    assert "Uploads" not in client(bucket).list_multipart_uploads(Bucket="data")


def test_options_are_checked() -> None:
    with pytest.raises(gm.ConfigError, match="requests"):
        gm.store_options(requests=0)
    with pytest.raises(gm.ConfigError, match="cache_size"):
        gm.store_options(cache_size="much")

"""Shards written to a store."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
import pytest

server = pytest.importorskip("moto.server", reason="needs moto[server]")
boto3 = pytest.importorskip("boto3", reason="needs moto[server]")


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    running = server.ThreadedMotoServer(port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    url = f"http://{host}:{port}"
    settings = {
        "AWS_ENDPOINT_URL": url,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3", endpoint_url=url)
    client.create_bucket(Bucket="shards")
    yield client
    running.stop()


def element(i: int) -> dict[str, Any]:
    return {"i": i, "x": np.full(i % 7, i, np.float32)}


def write(folder: str, stop: int) -> None:
    with gm.sink(folder, "jsonl", shard_records=20, compression="zstd:1", resume=True) as sink:
        for i in range(sink.records, 100):
            if i == stop:
                raise KeyboardInterrupt
            sink.write(element(i))


def test_a_store_holds_what_a_disk_would(tmp_path: Path, bucket: Any) -> None:
    write(str(tmp_path / "disk"), 1000)
    for stop in (10, 50, 95):
        with pytest.raises(KeyboardInterrupt):
            write("s3://shards/out", stop)
    write("s3://shards/out", 1000)
    listed = bucket.list_objects_v2(Bucket="shards", Prefix="out/")["Contents"]
    stored = {o["Key"][4:]: bucket.get_object(Bucket="shards", Key=o["Key"])["Body"].read() for o in listed}
    assert stored == {path.name: path.read_bytes() for path in (tmp_path / "disk").iterdir()}
    back = list(gm.IterDataset.jsonl("s3://shards/out/"))
    assert [int(e["i"]) for e in back] == list(range(100))
    with pytest.raises(gm.ConfigError, match="resume"):
        gm.sink("s3://shards/out", "jsonl")


def test_a_folder_of_a_store_has_one_writer(bucket: Any) -> None:
    def names() -> list[str]:
        return [o["Key"] for o in bucket.list_objects_v2(Bucket="shards", Prefix="one/").get("Contents", [])]

    with gm.sink("s3://shards/one", "jsonl", shard_records=20) as first:
        first.write(element(0))
        for resume in (False, True):
            with pytest.raises(gm.ConfigError, match="another sink writes to this folder: process"):
                gm.sink("s3://shards/one", "jsonl", shard_records=20, resume=resume)
        assert "one/.gristmill-writer.json" in names()
    assert names() == ["one/manifest.json", "one/shard-00000.jsonl"]

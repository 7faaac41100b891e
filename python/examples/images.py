"""Images from WebDataset shards: decoded, randomly cropped, and without damaged images."""

import logging
import struct
import tempfile
import zlib
from typing import Any

import gristmill as gm
import numpy as np

SIZE = 24


def png(pixels: np.ndarray[Any, Any]) -> bytes:
    """Encodes an image as PNG."""
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    chunks = (struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def crop(sample: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Returns a square of the image, perhaps mirrored. It depends only on the element's position and the seed."""
    image = sample["png"]
    top, left = (rng.integers(0, side - SIZE + 1) for side in image.shape[:2])
    square = image[top : top + SIZE, left : left + SIZE]
    return {"image": square[:, ::-1] if rng.random() < 0.5 else square, "label": np.int32(sample["cls"])}


with tempfile.TemporaryDirectory() as folder:
    rng = np.random.default_rng(0)
    with gm.sink(folder, "webdataset", shard_records=40) as sink:
        for n in range(100):
            image = rng.integers(0, 256, (32 + n % 5, 40, 3), np.uint8)
            sink.write({"__key__": f"{n:05}", "png": png(image)[: 60 if n == 7 else None], "cls": str(n % 10)})

    # Image 7 is truncated. It is skipped, counted in the report, and logged.
    logging.getLogger("gristmill").setLevel(logging.ERROR)
    ds = gm.MapDataset.webdataset(folder, decode=True).shuffle(seed=1).to_iter(on_bad_record="skip")
    batches = ds.random_map(crop, seed=2).batch(16, drop_remainder=True).loader(threads=4)
    spec = {batch["image"].shape for batch in batches}
    skipped = [what for what in str(batches.report()).splitlines() if "skipped" in what]
    print(f"batches of {spec}; {skipped}")

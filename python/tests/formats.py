"""What tests of several formats need: values as lists, and records framed as TensorFlow frames them."""

from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """As pyarrow's `to_pylist` has it."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


def framed(record: bytes) -> bytes:
    """A record as TensorFlow writes it, with checksums computed bit by bit."""

    def masked(data: bytes) -> bytes:
        crc = 0xFFFFFFFF
        for byte in data:
            crc ^= byte
            for _ in range(8):
                crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        crc ^= 0xFFFFFFFF
        return ((crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF).to_bytes(4, "little")

    length = len(record).to_bytes(8, "little")
    return length + masked(length) + record + masked(record)

"""A link that is long, slow and loses packets, between two bridges: for kernels without `netem`."""

from __future__ import annotations

import fcntl
import os
import random
import select
import struct
import threading
import time
from collections import deque

#: How a device of frames is asked for: see Linux's `tuntap.rst`.
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
#: Frames that are on their way at a time, at most; others are lost, as in a router.
ROOM = 2000


def tap(name: str) -> int:
    """A device of this name, whose frames are read and written here."""
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return device


class LongLink(threading.Thread):
    """Brings frames of `near` to `far` at once, and those of `far` to `near` late, at a rate, and not all of them."""

    def __init__(self, near: int, far: int, delay: float, loss: float, bytes_per_s: float) -> None:
        super().__init__(daemon=True)
        self.near, self.far, self.delay, self.loss, self.bytes_per_s = near, far, delay, loss, bytes_per_s
        self.lost = self.brought = 0

    def run(self) -> None:
        """Brings frames for ever."""
        chance, late, free = random.Random(1), deque[tuple[float, bytes]](), 0.0
        while True:
            wait = max(0.0, late[0][0] - time.monotonic()) if late else None
            ready, _, _ = select.select([self.near, self.far], [], [], wait)
            if self.near in ready:
                put(self.far, os.read(self.near, 65536))
            now = time.monotonic()
            if self.far in ready:
                frame = os.read(self.far, 65536)
                if chance.random() < self.loss or len(late) == ROOM:
                    self.lost += 1
                else:
                    free = max(free, now) + len(frame) / self.bytes_per_s
                    late.append((free + self.delay, frame))
            while late and late[0][0] <= now:
                put(self.near, late.popleft()[1])
                self.brought += 1


def put(device: int, frame: bytes) -> None:
    """Writes a frame, which is lost while the device is down."""
    try:
        os.write(device, frame)
    except OSError:
        # A device that is down takes no frame, and nothing tells when it is up.
        time.sleep(0.001)

"""Long answers of many endpoints, of which the part that is the same for all is packed once.

A gzip file (RFC 1952) of three pieces of deflate (RFC 1951); each but the last ends at a byte, as a full flush
does, so that they can stand one behind the other.
"""

from __future__ import annotations

import zlib
from functools import lru_cache

_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\x03"
# As the probe packs.
_LEVEL = 4


def gzipped(before: bytes, shared: bytes, after: bytes) -> bytes:
    """Return the gzip file of three pieces one behind the other.

    Args:
        before: of one endpoint.
        shared: of many: the same object each time, whose hash is known.
        after: of one endpoint.
    """
    check = zlib.crc32(after, zlib.crc32(shared, zlib.crc32(before)))
    size = (len(before) + len(shared) + len(after)) & 0xFFFFFFFF
    end = check.to_bytes(4, "little") + size.to_bytes(4, "little")
    last = _deflated(after, zlib.Z_FINISH)
    return b"".join((_HEAD, _deflated(before, zlib.Z_FULL_FLUSH), _kept(shared), last, end))


@lru_cache(maxsize=4)
def _kept(content: bytes) -> bytes:
    return _deflated(content, zlib.Z_FULL_FLUSH)


def _deflated(content: bytes, flush: int) -> bytes:
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush(flush)

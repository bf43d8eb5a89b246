"""Unpack a request's body, never to more than allowed; pure."""

from __future__ import annotations

import zlib

import zstandard

from rlvitals_service.errors import BadRequest, TooLarge, UnsupportedMedia

GZIP = 31  # zlib's window size, plus 16 for a gzip header
MOST_MEMBERS = 16
CHUNK = 1 << 20
LARGEST_WINDOW = 1 << 27  # what `zstd --long=27` needs; more is an attack on memory
ENCODINGS = ("identity", "gzip", "zstd")


def media_type(header: str) -> str:
    """Give the bare media type of a Content-Type header."""
    return header.partition(";")[0].strip().lower()


def expand(body: bytes, encoding: str, limit: int) -> bytes:
    """Undo the Content-Encoding, stopping as soon as the result exceeds `limit` bytes."""
    encoding = encoding.strip().lower() or "identity"
    try:
        if encoding == "gzip":
            return _gunzip(body, limit)
        if encoding == "zstd":
            return _unzstd(body, limit)
    except (zlib.error, zstandard.ZstdError, MemoryError) as error:
        msg = f"The body is not valid {encoding}: {error}"
        raise BadRequest(msg) from None
    if encoding != "identity":
        msg = f"Content-Encoding '{encoding}' is not read here; use {', '.join(ENCODINGS)}."
        raise UnsupportedMedia(msg)
    if len(body) > limit:
        raise too_large(limit)
    return body


def _gunzip(body: bytes, limit: int) -> bytes:
    whole = b""
    rest = body
    for _ in range(MOST_MEMBERS):
        member = zlib.decompressobj(GZIP)
        whole += member.decompress(rest, limit + 1 - len(whole))
        if len(whole) > limit:
            raise too_large(limit)
        if not member.eof:
            msg = "The body is not valid gzip: it ends too early."
            raise BadRequest(msg)
        rest = member.unused_data
        if not rest:
            return whole
    msg = f"The body has more than {MOST_MEMBERS} gzip members; send one."
    raise BadRequest(msg)


def _unzstd(body: bytes, limit: int) -> bytes:
    decompressor = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
    with decompressor.stream_reader(body, read_across_frames=True) as reader:
        chunks: list[bytes] = []
        room = limit
        while chunk := reader.read(min(CHUNK, room + 1)):
            chunks.append(chunk)
            room -= len(chunk)
            if room < 0:
                raise too_large(limit)
    return b"".join(chunks)


def too_large(limit: int) -> TooLarge:
    """Say that a body is over the limit."""
    return TooLarge(f"The body exceeds {limit} bytes; send fewer records a request.")

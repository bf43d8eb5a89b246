"""Unpacking a body never makes more of it than allowed."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from rlvitals_service.body import expand, media_type
from rlvitals_service.errors import BadRequest, TooLarge, UnsupportedMedia

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "identity": bytes,
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
}


@pytest.mark.parametrize("encoding", PACKERS)
@given(body=st.binary(max_size=300))
def test_what_fits_comes_back(encoding: str, body: bytes) -> None:
    """At the limit exactly it fits; one byte more does not."""
    packed = PACKERS[encoding](body)
    assert expand(packed, encoding, len(body)) == body
    assert expand(packed, encoding.upper(), len(body) + 1) == body
    if body:
        with pytest.raises(TooLarge):
            expand(packed, encoding, len(body) - 1)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_bomb_costs_no_memory(encoding: str) -> None:
    """A body that would unpack to 200 MB is stopped near the limit."""
    bomb = PACKERS[encoding](bytes(200_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            expand(bomb, encoding, 1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


def test_members_follow_each_other() -> None:
    """Several gzip members or zstd frames are one body, within reason."""
    assert expand(gzip.compress(b"a") + gzip.compress(b"b"), "gzip", 10) == b"ab"
    assert expand(zstandard.compress(b"a") + zstandard.compress(b"b"), "zstd", 10) == b"ab"
    with pytest.raises(BadRequest):
        expand(gzip.compress(b"") * 1000, "gzip", 10)


def test_what_is_no_gzip_says_so() -> None:
    """Broken, short and unknown encodings are named."""
    with pytest.raises(BadRequest, match="gzip"):
        expand(b"hello", "gzip", 10)
    with pytest.raises(BadRequest, match="early"):
        expand(gzip.compress(b"hello")[:-4], "gzip", 10)
    with pytest.raises(BadRequest, match="zstd"):
        expand(b"hello", "zstd", 10)
    with pytest.raises(UnsupportedMedia, match="br"):
        expand(b"hello", "br", 10)


def test_media_types_are_bare() -> None:
    """Parameters and case do not matter."""
    assert media_type("Application/JSON; charset=utf-8") == "application/json"

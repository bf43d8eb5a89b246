"""A spool gives back exactly what was written, whatever cut the writing short."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals import spool as module
from rlvitals.losses import Losses
from rlvitals.spool import RECORD, Busy, Header, Spool, pack, parse
from rlvitals.store import Store

CAP = 2**30


def new(path: Path, cap: int = CAP) -> Spool:
    """Start a spool."""
    return Spool.create(path / "a.spool", Header(registration={"key": "k"}), cap)


def bodies(spool: Spool) -> list[bytes]:
    """Read all that is not acknowledged."""
    found: list[bytes] = []
    at = spool.acknowledged
    while frames := spool.read(at):
        found += [frame.body for frame in frames]
        at = frames[-1].end
    return found


@given(st.lists(st.binary(max_size=300), max_size=20), st.data())
@settings(deadline=None)
def test_any_cut_leaves_a_whole_beginning(parts: list[bytes], data: Any) -> None:
    """Cut anywhere, the frames before the cut are read and the torn one is not."""
    packed = [pack(RECORD, part) for part in parts]
    whole = b"".join(packed)
    cut = data.draw(st.integers(0, len(whole)))
    frames, damaged = parse(whole[:cut], 0)
    assert not damaged
    ends = [sum(map(len, packed[: i + 1])) for i in range(len(packed))]
    assert [frame.body for frame in frames] == parts[: sum(end <= cut for end in ends)]


def test_a_changed_byte_is_noticed() -> None:
    """What the checksum does not fit is not handed on."""
    whole = bytearray(pack(RECORD, b"first") + pack(RECORD, b"second"))
    whole[-1] ^= 1
    frames, damaged = parse(bytes(whole), 0)
    assert [frame.body for frame in frames] == [b"first"]
    assert damaged


def test_reopening_goes_on_behind_what_was_acknowledged(tmp_path: Path) -> None:
    """Another process finds the header and exactly the frames the service has not got."""
    spool = new(tmp_path)
    spool.append([pack(RECORD, b"%d" % i) for i in range(10)])
    spool.acknowledge(spool.read(0)[3].end)
    spool.close()
    again = Spool.open(tmp_path / "a.spool")
    assert again.header.registration == {"key": "k"}
    assert bodies(again) == [b"%d" % i for i in range(4, 10)]
    again.delete()
    assert not list(tmp_path.iterdir())


def test_a_living_spool_is_busy(tmp_path: Path) -> None:
    """Two never send from one spool."""
    spool = new(tmp_path)
    with pytest.raises(Busy):
        Spool.open(spool.path)
    spool.close()
    Spool.open(spool.path).close()


def test_only_its_owner_may_read_a_spool(tmp_path: Path) -> None:
    """Files are 0600 and a new folder is 0700."""
    spool = Spool.create(tmp_path / "spool" / "a.spool", Header(), CAP)
    spool.append([pack(RECORD, b"x")])
    spool.acknowledge(spool.end)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in sorted((tmp_path / "spool").iterdir())]
    assert modes == [0o600, 0o600]
    assert stat.S_IMODE((tmp_path / "spool").stat().st_mode) == 0o700
    spool.close()


@pytest.mark.parametrize("content", [b"", b"no header", b"[]\n", b"\x00" * 100 + b"\n"])
def test_a_file_that_is_no_spool_is_named_so(tmp_path: Path, content: bytes) -> None:
    """A stray file raises ValueError and stays."""
    path = tmp_path / "b.spool"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="header"):
        Spool.open(path)
    assert path.read_bytes() == content


def test_a_full_spool_drops_the_oldest_and_says_how_many(tmp_path: Path) -> None:
    """Above the cap the newest half stays; kept and dropped add up to what was written."""
    spool = new(tmp_path, cap=10_000)
    dropped = sum(spool.append([pack(RECORD, b"%04d" % i * 25)]) for i in range(500))
    kept = bodies(spool)
    assert dropped + len(kept) == 500
    assert kept[-1] == b"0499" * 25
    assert kept == [b"%04d" % i * 25 for i in range(dropped, 500)]
    assert spool.path.stat().st_size <= 10_000
    with pytest.raises(Busy):
        Spool.open(spool.path)
    spool.close()


def test_a_long_run_keeps_its_file_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is acknowledged leaves the disk, and positions stay good."""
    monkeypatch.setattr(module, "REWIND_BYTES", 1000)
    spool = new(tmp_path)
    for i in range(200):
        spool.append([pack(RECORD, b"%03d" % i * 20)])
        [frame] = spool.read(spool.acknowledged)
        assert frame.body == b"%03d" % i * 20
        spool.acknowledge(frame.end)
        assert spool.path.stat().st_size < 1500
    spool.append([pack(RECORD, b"last")])
    spool.close()
    assert bodies(Spool.open(tmp_path / "a.spool")) == [b"last"]


def test_a_frame_larger_than_one_reading_is_read_whole(tmp_path: Path) -> None:
    """A record may be larger than the usual batch."""
    spool = new(tmp_path)
    spool.append([pack(RECORD, b"x" * 5000), pack(RECORD, b"y")])
    [frame] = spool.read(0, limit=100)
    assert len(frame.body) == 5000
    assert [f.body for f in spool.read(frame.end, limit=100)] == [b"y"]
    spool.close()


def test_a_full_disk_moves_on_to_memory_and_keeps_the_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After ENOSPC nothing is half written, and what follows is sent from memory in order."""
    losses = Losses()
    store = Store(losses)
    store.use(new(tmp_path))
    store.append([pack(RECORD, b"0")])
    true_write = os.write

    def write(descriptor: int, data: Any) -> int:
        true_write(descriptor, bytes(data)[:3])
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(os, "write", write)
    store.append([pack(RECORD, b"1")])
    monkeypatch.undo()
    store.append([pack(RECORD, b"2")])
    seen = []
    while frames := store.read(10**6):
        seen += [frame.body for frame in frames]
        store.acknowledge(frames[-1])
    assert seen == [b"0", b"1", b"2"]
    assert not store.pending
    store.append([pack(RECORD, b"3")])
    assert store.spool is not None
    assert bodies(store.spool) == [b"3"]
    assert losses.snapshot() == {}


def test_memory_is_bounded_and_counts_what_it_drops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a disk the newest frames stay, and each dropped one is counted."""
    import rlvitals.store

    monkeypatch.setattr(rlvitals.store, "MEMORY_FRAMES", 5)
    losses = Losses()
    store = Store(losses)
    for i in range(8):
        store.append([pack(RECORD, b"%d" % i)])
    frames = store.read(10**6)
    assert [frame.body for frame in frames] == [b"3", b"4", b"5", b"6", b"7"]
    store.append([pack(RECORD, b"8")])
    store.acknowledge(frames[2])
    assert [frame.body for frame in store.read(10**6)] == [b"6", b"7", b"8"]
    assert losses.snapshot() == {"memory_full": 4}

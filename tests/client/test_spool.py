"""A spool gives back exactly what was written, whatever cut the writing short."""

from __future__ import annotations

import errno
import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals import spool as module
from rlvitals.frames import RECORD, pack, parse
from rlvitals.losses import Losses
from rlvitals.spool import Busy, Header, Spool
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
    frames, _ = parse(whole[:cut], 0)
    ends = [sum(map(len, packed[: i + 1])) for i in range(len(packed))]
    assert [frame.body for frame in frames] == parts[: sum(end <= cut for end in ends)]


@given(st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=8), st.data())
@settings(deadline=None)
def test_a_changed_byte_costs_one_frame(parts: list[bytes], data: Any) -> None:
    """What the checksum does not fit is not handed on; reading goes on behind it."""
    whole = bytearray(b"".join(pack(RECORD, part) for part in parts))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    frames, _ = parse(bytes(whole), 0)
    ends = [sum(len(pack(RECORD, part)) for part in parts[: i + 1]) for i in range(len(parts))]
    hit = next(i for i, end in enumerate(ends) if at < end)
    assert [frame.body for frame in frames] == parts[:hit] + parts[hit + 1 :]


def test_a_damaged_spool_gives_what_is_whole_and_counts_the_rest(tmp_path: Path) -> None:
    """Bytes that another program broke are skipped and reported, not the end of the run."""
    spool = new(tmp_path)
    spool.append([pack(RECORD, b"%d" % i * 50) for i in range(10)])
    spool.close()
    content = bytearray((tmp_path / "a.spool").read_bytes())
    content[-200] ^= 1
    (tmp_path / "a.spool").write_bytes(content)
    again = Spool.open(tmp_path / "a.spool")
    assert len(bodies(again)) == 9
    assert again.damaged == 1
    again.close()


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


def test_a_torn_frame_that_could_not_be_taken_back_costs_itself_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a write stops half way and the disk refuses to shorten the file, reading goes on."""
    spool = new(tmp_path)
    spool.append([pack(RECORD, b"first")])
    true_write = os.write

    def write(descriptor: int, data: Any) -> int:
        true_write(descriptor, bytes(data)[:12])
        raise OSError(errno.EIO, "input/output error")

    def truncate(descriptor: int, length: int) -> None:
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr(os, "ftruncate", truncate)
    with pytest.raises(OSError, match="input/output"):
        spool.append([pack(RECORD, b"second")])
    monkeypatch.undo()
    spool.append([pack(RECORD, b"third")])
    assert bodies(spool) == [b"first", b"third"]
    spool.acknowledge(spool.end)
    assert spool.pending_bytes == 0
    spool.close()


def test_a_living_spool_is_busy_also_where_files_cannot_be_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a cluster's file system without locks, the header's process tells who writes."""
    import fcntl
    import subprocess
    import sys

    def unsupported(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOSYS, "function not implemented")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        header = Header(host=socket.gethostname(), pid=other.pid)
        spool = Spool.create(tmp_path / "a.spool", header, CAP)
        with pytest.raises(Busy):
            Spool.open(spool.path)
        other.kill()
        other.wait()
        Spool.open(spool.path).close()
    spool.close()


def test_a_spool_that_was_brought_in_while_it_was_opened_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening and locking, its sender may have deleted it: nothing is sent again."""
    import fcntl

    spool = new(tmp_path)
    spool.append([pack(RECORD, b"x")])
    true_flock = fcntl.flock

    def flock(descriptor: int, operation: int) -> None:
        spool.delete()
        true_flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(FileNotFoundError):
        Spool.open(spool.path)


def test_a_header_of_megabytes_is_read_whole(tmp_path: Path) -> None:
    """How long the configuration is does not decide whether a run can be sent."""
    header = Header(registration={"config": "x" * 3_000_000})
    spool = Spool.create(tmp_path / "a.spool", header, CAP)
    spool.append([pack(RECORD, b"x")])
    spool.close()
    again = Spool.open(tmp_path / "a.spool")
    assert bodies(again) == [b"x"]
    again.close()


def test_a_crash_while_a_full_spool_is_shortened_loses_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was done when the power went, the file and its acknowledgement fit each other."""
    spool = new(tmp_path, cap=10_000)
    spool.append([pack(RECORD, b"%04d" % i * 25) for i in range(80)])
    spool.acknowledge(spool.read(0)[9].end)
    true_write_ack = module._write_ack

    def crash(path: Path, place: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_write_ack", crash)
    with pytest.raises(KeyboardInterrupt):
        spool.append([pack(RECORD, b"%04d" % i * 25) for i in range(80, 100)])
    monkeypatch.setattr(module, "_write_ack", true_write_ack)
    os.close(spool._descriptor)
    again = Spool.open(tmp_path / "a.spool")
    assert bodies(again) == [b"%04d" % i * 25 for i in range(10, 80)]
    again.close()

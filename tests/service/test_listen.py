"""The hub wakes exactly those who wait for a run, once a revision, and lets all go at the end."""

from __future__ import annotations

import asyncio
from uuid import UUID

from rlvitals_service.listen import Hub, Watch, _hear

ONE, TWO = UUID(int=1), UUID(int=2)


async def woken(watch: Watch) -> bool:
    """Tell whether a watch was woken, without waiting for it."""
    return await watch.wait(0.001)


def test_only_the_readers_of_the_run_wake() -> None:
    """A change of one run leaves the readers of another alone."""

    async def story() -> None:
        hub = Hub()
        with hub.watch(ONE) as first, hub.watch(ONE) as second, hub.watch(TWO) as other:
            hub.announce(ONE, 5)
            assert [await woken(w) for w in (first, second, other)] == [True, True, False]

    asyncio.run(story())


def test_a_revision_is_announced_once() -> None:
    """Notification and sweep bring the same news; it wakes once."""

    async def story() -> None:
        hub = Hub()
        with hub.watch(ONE) as watch:
            hub.announce(ONE, 5)
            assert await woken(watch)
            for old in (5, 4):
                hub.announce(ONE, old)
                assert not await woken(watch)
            hub.announce(ONE, 6)
            assert await woken(watch)

    asyncio.run(story())


def test_a_change_before_the_wait_is_not_missed() -> None:
    """What happens between the read and the wait wakes the wait at once."""

    async def story() -> None:
        hub = Hub()
        with hub.watch(ONE) as watch:
            hub.announce(ONE, 1)
            assert await watch.wait(30)

    asyncio.run(story())


def test_nothing_is_kept_of_a_run_nobody_watches() -> None:
    """Readers that left leave no trace, whatever is announced."""

    async def story() -> None:
        hub = Hub()
        with hub.watch(ONE):
            hub.announce(ONE, 1)
            assert hub.watched() == [ONE]
        hub.announce(ONE, 2)
        assert hub.watched() == []
        assert not hub._revisions

    asyncio.run(story())


def test_closing_wakes_everybody() -> None:
    """A service that stops sends its waiting readers home."""

    async def story() -> None:
        hub = Hub()
        with hub.watch(ONE) as watch:
            hub.close()
            assert await woken(watch)
            assert watch.hub.closing

    asyncio.run(story())


def test_a_foreign_notification_is_ignored() -> None:
    """Whatever else somebody sends on the channel does no harm."""

    async def story() -> None:
        hub = Hub()
        with hub.watch(ONE) as watch:
            for payload in ("", "hello", "[]", '{"run_id": 7}', "\0"):
                _hear(hub, payload)
            assert not await woken(watch)
            _hear(hub, f'{{"run_id": "{ONE}", "revision": 3, "kind": "run"}}')
            assert await woken(watch)

    asyncio.run(story())

"""What a run is called, here and at the service."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlvitals.delivery import Registered
    from rlvitals.settings import Settings


class Identity:
    """Answer who a run is from its settings and from what the service said."""

    settings: Settings
    _registered: Registered | None

    @property
    def id(self) -> str | None:
        """Give the service's id of the run; None until it answered."""
        return self._registered.id if self._registered else None

    @property
    def key(self) -> str:
        """Give the key that makes resuming find this run again."""
        return self.settings.key

    @property
    def name(self) -> str | None:
        """Give the run's name; the service chooses one when none was given."""
        return (self._registered and self._registered.name) or self.settings.name

    @property
    def attempt(self) -> int | None:
        """Give the number of this attempt; None until the service answered."""
        return self._registered.attempt if self._registered else None

    @property
    def url(self) -> str | None:
        """Give the run's page; None until the service answered."""
        return self._registered.dashboard_url if self._registered else None

"""Read runs and steer them: the client for people, notebooks and the dashboard."""

from __future__ import annotations

from rlvitals.connection import ApiError
from rlvitals.history import History
from rlvitals.reading import Page, Reading
from rlvitals.steering import Steering

__all__ = ["Api", "ApiError", "History", "Page"]


class Api(Reading, Steering):
    """Talk to a service; safe to share between threads.

    Answers are plain dictionaries and lists as the REST interface describes them; `history` is a
    History. Without arguments it finds RLVITALS_URL and RLVITALS_TOKEN, else the local service
    that `rlvitals up` wrote down. Every method raises ApiError; an address that cannot be one is
    a ValueError.
    """

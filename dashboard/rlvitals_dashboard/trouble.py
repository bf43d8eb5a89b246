"""Say calmly what went wrong between dashboard and service, and what happens next."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlvitals.api import ApiError

STILL_THERE = "What is on this page was last seen before that."


def message(error: ApiError) -> str:
    """Turn an error of the client into a sentence for the banner."""
    status = error.status
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return (
            f"The service refuses the dashboard's token ({error}). Give it one that may "
            "read, as RLVITALS_TOKEN or RLVITALS_TOKEN_FILE, and start the dashboard again."
        )
    if status == HTTPStatus.NOT_FOUND:
        return f"There is no such run, or this token may not see it ({error})."
    if status:
        return f"The service answered with an error ({error}). Asking again. {STILL_THERE}"
    return f"The service does not answer. Asking again every few seconds. {STILL_THERE}"


def directive_message(error: ApiError) -> str:
    """Turn an error about a directive into a sentence for the control card."""
    status = error.status
    if status == HTTPStatus.CONFLICT:
        return (
            f"✕ Nothing was changed: someone else was faster ({error}). "
            "Look at the directive above, then apply again."
        )
    if status == HTTPStatus.FORBIDDEN:
        return f"✕ Nothing was changed: the dashboard's token may not control runs ({error})."
    if status:
        return f"✕ Nothing was changed: {error}"
    return "✕ The service does not answer; it is unknown whether the change arrived. See above."

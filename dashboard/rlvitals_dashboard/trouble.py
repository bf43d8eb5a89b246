"""Say calmly what went wrong between dashboard and service, and what happens next."""

from __future__ import annotations

from http import HTTPStatus

STILL_THERE = "What is on this page was last seen before that."


def message(error: Exception) -> str:
    """Turn an error of the client into a sentence for the banner."""
    status = getattr(error, "status", None)
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return (
            f"The service refuses the dashboard's token ({status}: {error}). Give it one that may "
            "read, as RLVITALS_TOKEN or RLVITALS_TOKEN_FILE, and start the dashboard again."
        )
    if status == HTTPStatus.NOT_FOUND:
        return f"There is no such run, or this token may not see it ({error})."
    if isinstance(status, int) and status >= HTTPStatus.BAD_REQUEST:
        return f"The service answered with an error ({status}: {error}). Asking again. {STILL_THERE}"
    return f"The service does not answer. Asking again every few seconds. {STILL_THERE}"


def directive_message(error: Exception) -> str:
    """Turn an error about a directive into a sentence for the control card."""
    status = getattr(error, "status", None)
    if status == HTTPStatus.CONFLICT:
        return (
            f"✕ Nothing was changed: someone else was faster ({error}). "
            "Look at the directive above, then apply again."
        )
    if status == HTTPStatus.FORBIDDEN:
        return f"✕ Nothing was changed: the dashboard's token may not control runs ({error})."
    if isinstance(status, int):
        return f"✕ Nothing was changed: {error}"
    return "✕ The service does not answer; it is unknown whether the change arrived. See above."

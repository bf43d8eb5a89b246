"""Steer runs, and administer the service: directives, incidents, tokens, projects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlvitals.connection import Connection, part

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Steering(Connection):
    """Change what a service knows and what trainers do."""

    def update_run(self, run_id: str, **changes: Any) -> dict[str, Any]:
        """Change name, tags, notes or archived."""
        return self._object("PATCH", f"/runs/{part(run_id)}", changes)

    def acknowledge(self, run_id: str, incident_id: str, note: str | None = None) -> dict[str, Any]:
        """Acknowledge an incident of a run."""
        body = {} if note is None else {"note": note}
        path = f"/runs/{part(run_id)}/incidents/{part(incident_id)}/acknowledge"
        return self._object("POST", path, body)

    def directive(self, run_id: str) -> dict[str, Any] | None:
        """Give the newest directive of a run and how far it has come; None when there is none."""
        path = f"/runs/{part(run_id)}/directive"
        found: dict[str, Any] | None = self._having("directive", "GET", path)["directive"]
        return found

    def set_directive(
        self, run_id: str, directive: Mapping[str, Any] | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Ask the trainer for remedies, e.g. `{"mode": "on", "focal": {"gamma": 0.5}}`.

        `mode` is "on" unless given. `expires_at_step`, `reason` and `expected_version` may be
        added; a version that is no longer the newest raises ApiError 409.
        """
        body = {"mode": "on", **(directive or {}), **fields}
        return self._object("PUT", f"/runs/{part(run_id)}/directive", body)

    def withdraw_directive(
        self, run_id: str, reason: str = "", expected_version: int | None = None
    ) -> dict[str, Any]:
        """Ask the trainer to go back to its own advantages."""
        body: dict[str, Any] = {"mode": "off", "reason": reason}
        if expected_version is not None:
            body["expected_version"] = expected_version
        return self._object("PUT", f"/runs/{part(run_id)}/directive", body)

    def directives(self, run_id: str) -> list[dict[str, Any]]:
        """List a run's directives with their acknowledgements, newest first."""
        return self._rows(f"/runs/{part(run_id)}/directives", "directives")

    def create_project(self, name: str) -> dict[str, Any]:
        """Create a project."""
        return self._object("POST", "/projects", {"name": name})

    def create_token(
        self, name: str, scopes: Iterable[str] = ("ingest",), project: str | None = None
    ) -> dict[str, Any]:
        """Create a token; its secret, under "token", is shown this once."""
        body: dict[str, Any] = {"name": name, "scopes": list(scopes)}
        if project is not None:
            body["project"] = project
        return self._object("POST", "/tokens", body)

    def tokens(self) -> list[dict[str, Any]]:
        """List tokens without their secrets."""
        return self._rows("/tokens", "tokens")

    def revoke_token(self, token_id: str) -> None:
        """Revoke a token."""
        self._call("DELETE", f"/tokens/{part(token_id)}")

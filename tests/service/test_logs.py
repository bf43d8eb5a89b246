"""Each request leaves one line of JSON that names run and token, and holds no secret."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from tests.serving import Api, Service

from rlvitals_service.logs import JsonFormatter

Ask = Callable[[Callable[[], Any]], Any]


def lines(caplog: pytest.LogCaptureFixture, route: str) -> list[dict[str, object]]:
    """Give the request lines of a route as they would be written."""
    written = [
        json.loads(JsonFormatter().format(record))
        for record in caplog.records
        if record.name == "rlvitals_service.requests"
    ]
    return [line for line in written if line["route"] == route]


def test_a_request_leaves_one_line(
    service: Service, api: Api, caplog: pytest.LogCaptureFixture, eventually: Ask
) -> None:
    """Method, route, status, time, bytes, run and token id: enough to find what happened."""
    run_id = api.new_run()
    with caplog.at_level(logging.INFO):
        api.get(f"/runs/{run_id}/history", metrics="acr")
        # It is written when the answer is out, so a moment after it has arrived here.
        (line,) = eventually(lambda: lines(caplog, "/runs/{run_id}/history"))
    assert (line["method"], line["status"], line["run_id"]) == ("GET", 200, run_id)
    (token,) = service.rows("SELECT id FROM token WHERE name = 'admin'")
    assert line["token_id"] == str(token["id"])
    assert isinstance(line["milliseconds"], float)
    assert line["level"] == "info"


def test_no_line_holds_a_secret(
    service: Service, api: Api, caplog: pytest.LogCaptureFixture, eventually: Ask
) -> None:
    """Neither a token nor a query string is ever written down."""
    with caplog.at_level(logging.DEBUG):
        api.get("/runs", search="the-secret-word")
        api.call("GET", "/api/v1/runs", headers={"Authorization": "Bearer rlv_wrong_token"})
        made = api.post("/tokens", {"name": "new", "scopes": ["read"]}).json["token"]
        eventually(lambda: lines(caplog, "/tokens"))
    # uvicorn's own access log, which does hold the query, is off wherever ours is on
    ours = [one for one in caplog.records if one.name.startswith("rlvitals_service")]
    text = "\n".join(JsonFormatter().format(record) for record in ours)
    for secret in (*service.tokens.values(), "rlv_wrong_token", "the-secret-word", made):
        assert secret not in text


def test_probes_are_quiet(api: Api, caplog: pytest.LogCaptureFixture, eventually: Ask) -> None:
    """What comes every few seconds and goes well is not logged; what fails is."""
    with caplog.at_level(logging.INFO):
        assert api.call("GET", "/healthz").status == 200
        assert api.call("GET", "/nowhere").status == 404
        (failed,) = eventually(lambda: lines(caplog, "unknown"))
    assert failed["status"] == 404
    assert not lines(caplog, "/healthz")


def test_an_exception_is_part_of_its_line() -> None:
    """A traceback does not spill over into lines of its own."""
    error = ValueError("boom")
    info = (ValueError, error, None)
    record = logging.LogRecord("x", logging.ERROR, "f", 1, "it %s", ("broke",), info)
    text = JsonFormatter().format(record)
    line = json.loads(text)
    assert "\n" not in text
    assert line["message"] == "it broke"
    assert "ValueError: boom" in line["exception"]

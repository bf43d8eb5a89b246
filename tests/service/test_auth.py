"""Who may do what, endpoint by endpoint."""

from __future__ import annotations

import stat
import uuid
from pathlib import Path
from typing import Any

import pytest
from tests.serving import Api, Service, serving

from rlvitals_service.auth import digest_of

UNKNOWN = str(uuid.UUID(int=0))
# method, path, body, the scope that suffices
ENDPOINTS: list[tuple[str, str, Any, str]] = [
    ("POST", "/runs", {"project": "math", "key": "k"}, "ingest"),
    ("GET", "/runs", None, "read"),
    ("GET", "/runs/{run}", None, "read"),
    ("PATCH", "/runs/{run}", {"notes": "n"}, "control"),
    ("POST", "/runs/{run}/steps", {"records": []}, "ingest"),
    ("POST", "/runs/{run}/heartbeat", {}, "ingest"),
    ("POST", "/runs/{run}/finish", {"attempt": 9}, "ingest"),
    ("GET", "/runs/{run}/history?metrics=loss", None, "read"),
    ("GET", "/runs/{run}/incidents", None, "read"),
    ("GET", "/incidents", None, "read"),
    ("POST", "/runs/{run}/incidents/" + UNKNOWN + "/acknowledge", {}, "control"),
    ("POST", "/incidents/" + UNKNOWN + "/acknowledge", {}, "control"),
    ("PUT", "/runs/{run}/directive", {"mode": "off"}, "control"),
    ("GET", "/runs/{run}/directives", None, "read"),
    ("GET", "/projects", None, "read"),
    ("POST", "/projects", {"name": "math"}, "admin"),
    ("GET", "/tokens", None, "admin"),
    ("POST", "/tokens", {"name": "t", "scopes": ["read"]}, "admin"),
    ("DELETE", "/tokens/" + UNKNOWN, None, "admin"),
]
NAMES = [f"{method} {path}" for method, path, *_ in ENDPOINTS]


@pytest.fixture(scope="module")
def run_id(service: Service) -> str:
    """Make a run that everybody asks about."""
    return service.api("admin").new_run()


@pytest.mark.parametrize(("method", "path", "body", "scope"), ENDPOINTS, ids=NAMES)
def test_each_endpoint_wants_its_scope(
    service: Service, run_id: str, method: str, path: str, body: Any, scope: str
) -> None:
    """No token or a wrong one is 401, another scope 403; the scope and admin may."""
    path = f"/api/v1{path.format(run=run_id)}"
    for wrong in (None, "", "rlv_wrong", "\u00e9", service.tokens["admin"] + "x"):
        headers = {} if wrong is None else {"Authorization": f"Bearer {wrong}".encode("latin-1")}
        answer = Api(service.url, None).call(method, path, body, headers=headers)  # type: ignore[arg-type]
        assert answer.status == 401, wrong
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json["error"]["code"] == "unauthenticated"
    for name in service.tokens:
        answer = service.api(name).call(method, path, body)
        if name in {scope, "admin"}:
            assert answer.status not in {401, 403}, answer.body
            assert answer.status < 500
        else:
            assert answer.status == 403, name
            assert answer.json["error"]["code"] == "forbidden"


def test_a_bound_token_sees_its_project_only(service: Service) -> None:
    """A run of another project is 404, like one that does not exist, and is in no list."""
    admin = service.api("admin")
    other = admin.new_run("other")
    made = admin.post("/tokens", {"name": "bound", "project": "mine", "scopes": ["admin"]})
    assert made.status == 201
    bound = Api(service.url, made.json["token"])
    mine = bound.new_run("mine")
    assert bound.post("/runs", {"project": "other", "key": "k"}).status == 404
    for method, path, body, _ in ENDPOINTS:
        if "{run}" in path:
            answer = bound.call(method, f"/api/v1{path.format(run=other)}", body)
            assert answer.status == 404, path
    assert [run["id"] for run in bound.get("/runs").json["runs"]] == [mine]
    assert [one["name"] for one in bound.get("/projects").json["projects"]] == ["mine"]
    assert [one["name"] for one in bound.get("/tokens").json["tokens"]] == ["bound"]
    assert bound.post("/projects", {"name": "third"}).status == 404
    wider = bound.post("/tokens", {"name": "wider", "scopes": ["read"]}).json
    assert wider["project"] == "mine"


def test_only_the_hash_of_a_token_is_kept(api: Api, service: Service) -> None:
    """The secret is shown once and stored nowhere; use is noted."""
    made = api.post("/tokens", {"name": "once", "scopes": ["read", "ingest"]}).json
    secret = made["token"]
    assert secret.startswith("rlv_")
    (row,) = service.rows("SELECT * FROM token WHERE id = %s", made["id"])
    assert bytes(row["hash"]) == digest_of(secret)
    assert secret not in repr(row)
    assert row["last_used_at"] is None
    assert Api(service.url, secret).get("/runs").status == 200
    (listed,) = [one for one in api.get("/tokens").json["tokens"] if one["id"] == made["id"]]
    assert listed["last_used_at"] is not None
    assert listed["hint"] == secret[-4:]
    assert "token" not in listed


def test_a_revoked_token_ends_at_once(api: Api, service: Service) -> None:
    """After DELETE the token is 401 although it was used a moment before."""
    made = api.post("/tokens", {"name": "gone", "scopes": ["read"]}).json
    user = Api(service.url, made["token"])
    assert user.get("/runs").status == 200
    assert api.delete(f"/tokens/{made['id']}").status == 200
    assert user.get("/runs").status == 401
    assert api.delete(f"/tokens/{UNKNOWN}").status == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "x", "scopes": []}, "scopes"),
        ({"name": "x", "scopes": ["root"]}, "scopes[0]"),
        ({"scopes": ["read"]}, "name"),
        ({"name": "x", "scopes": ["read"], "extra": 1}, "extra"),
    ],
    ids=str,
)
def test_a_bad_token_request_names_its_field(api: Api, body: Any, field: str) -> None:
    """What is wrong with a request is 422 and named."""
    answer = api.post("/tokens", body)
    assert answer.status == 422
    assert answer.json["error"]["field"] == field


def test_the_first_token_lies_in_a_private_file(database_url: str, tmp_path: Path) -> None:
    """The bootstrap token is made once, is readable by its owner only, and is kept on restart."""
    path = tmp_path / "home" / "token"
    secrets = set()
    for _ in range(2):
        with serving(database_url, bootstrap_token_file=path) as service:
            secret = path.read_text().strip()
            assert Api(service.url, secret).get("/tokens").status == 200
            secrets.add(secret)
    assert len(secrets) == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_errors_have_one_shape(api: Api) -> None:
    """Unknown paths, wrong methods and broken JSON answer like every other error."""
    for answer, status in (
        (api.get("/nope"), 404),
        (api.delete("/runs"), 405),
        (api.get("/runs/not-an-id"), 422),
        (
            api.call(
                "POST", "/api/v1/runs", raw=b"{", headers={"Content-Type": "application/json"}
            ),
            400,
        ),
    ):
        assert answer.status == status
        assert answer.json["error"].keys() == {"code", "message", "field"}


def test_health_needs_no_token(service: Service) -> None:
    """Probes ask without a token; readiness includes the database."""
    for path in ("/healthz", "/readyz"):
        answer = service.api(None).call("GET", path)
        assert answer.status == 200, answer.body
        assert answer.json["status"] == "ok"


def test_openapi_describes_every_endpoint(service: Service) -> None:
    """Each operation has a summary, a description and its errors; the raw body is described."""
    document = service.api(None).call("GET", "/openapi.json").json
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            where = f"{method} {path}"
            assert operation.get("summary"), where
            assert operation.get("description"), where
            if path.startswith("/api/"):
                assert "401" in operation["responses"], where
    steps = document["paths"]["/api/v1/runs/{run_id}/steps"]["post"]
    schema = steps["requestBody"]["content"]["application/msgpack"]["schema"]
    assert schema == {"$ref": "#/components/schemas/StepBatch"}
    record = document["components"]["schemas"]["StepBatch"]["properties"]["records"]["items"]
    assert record == {"$ref": "#/components/schemas/StepRecord"}
    assert "StepRecord" in document["components"]["schemas"]

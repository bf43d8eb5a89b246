"""docker-compose.yml keeps the specification and the house rules of a service with secrets."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads(Path(__file__).with_name("compose-spec.json").read_text())
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
LASTING = [name for name, service in SERVICES.items() if service.get("restart") != "no"]
ours = pytest.mark.parametrize("name", ["migrate", "service", "dashboard"])


def test_the_file_keeps_the_compose_specification() -> None:
    """The public schema accepts the file, and is one that can refuse."""
    assert list(Draft7Validator(SCHEMA).iter_errors(COMPOSE)) == []
    assert list(Draft7Validator(SCHEMA).iter_errors({"services": {"db": {"imag": "x"}}}))


@pytest.mark.parametrize("name", SERVICES)
def test_every_port_is_published_on_this_host_only(name: str) -> None:
    """Nothing is reachable from the network before somebody decides so."""
    assert all(str(port).startswith("127.0.0.1:") for port in SERVICES[name].get("ports", []))


def test_the_database_is_not_published_and_its_network_leads_nowhere() -> None:
    """Only migrations and service get at the database."""
    assert "ports" not in SERVICES["db"]
    assert COMPOSE["networks"]["storage"]["internal"] is True
    inside = {name for name, service in SERVICES.items() if "storage" in service["networks"]}
    assert inside == {"db", "migrate", "service"}


def test_the_long_running_services_are_the_three_expected() -> None:
    """The checks below would pass for nothing if no service were long-running."""
    assert LASTING == ["db", "service", "dashboard"]


@pytest.mark.parametrize("name", LASTING)
def test_every_long_running_service_has_a_health_check(name: str) -> None:
    """What runs for long is watched."""
    assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_runs_unprivileged(name: str) -> None:
    """A numeric account other than root, no capability, nothing writable but what is named."""
    service = SERVICES[name]
    uid, gid = service["user"].split(":")
    assert int(uid) > 0
    assert int(gid) > 0
    assert service["cap_drop"] == ["ALL"]
    assert service["read_only"] is True


@pytest.mark.parametrize("name", SERVICES)
def test_secrets_come_from_files_and_never_from_the_environment(name: str) -> None:
    """No variable holds a password or a token, and no address has one inside."""
    for variable, value in SERVICES[name].get("environment", {}).items():
        if re.search(r"PASSWORD|TOKEN|SECRET", variable):
            assert variable.endswith("_FILE")
            assert Path(value).name in SERVICES[name]["secrets"]
            assert Path(value).parent == Path("/run/secrets")
        assert not re.search(r"://[^/@]*:[^/@]*@", str(value)), variable


def test_each_secret_is_a_file_that_git_and_the_image_leave_out() -> None:
    """A secret on the host reaches neither a commit nor an image."""
    for secret in COMPOSE["secrets"].values():
        assert secret["file"].startswith("./docker/secrets/")
    assert "secrets/" in (ROOT / "docker" / ".gitignore").read_text().splitlines()
    allowed = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in allowed
    assert not [line for line in allowed if line.startswith("!") and "secrets" in line]


def test_the_service_waits_for_the_migrations() -> None:
    """The service starts only on a schema that the one-shot migration has finished."""
    waits = SERVICES["service"]["depends_on"]
    assert waits["migrate"]["condition"] == "service_completed_successfully"
    assert SERVICES["migrate"]["depends_on"]["db"]["condition"] == "service_healthy"


@ours
def test_our_containers_use_our_commands_and_the_image_s_account(name: str) -> None:
    """Compose and Dockerfile agree about command and account."""
    assert SERVICES[name]["command"][:2] == ["rlvitals", name]
    assert f"USER {SERVICES[name]['user']}" in (ROOT / "Dockerfile").read_text()


def test_everything_the_dockerfile_copies_exists_and_is_let_in() -> None:
    """A renamed folder breaks this test rather than the next release's build."""
    copies = re.findall(
        r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE
    )
    sources = {source for line in copies for source in line.split()}
    assert len(sources) > 6
    allowed = (ROOT / ".dockerignore").read_text().splitlines()
    for source in sources:
        assert (ROOT / source).exists()
        assert f"!{source}" in allowed


def test_make_secrets_makes_both_once_in_a_closed_folder(tmp_path: Path) -> None:
    """The script's secrets differ, have 256 random bits, and survive a second call."""
    script = tmp_path / "make_secrets.sh"
    script.write_text((ROOT / "docker" / "make_secrets.sh").read_text())
    found = []
    for _ in range(2):
        subprocess.run(["sh", script], check=True, capture_output=True)
        names = sorted(path.name for path in (tmp_path / "secrets").iterdir())
        found.append([(tmp_path / "secrets" / name).read_text() for name in names])
        assert names == ["database_password", "token"]
    password, token = found[0]
    assert re.fullmatch(r"[0-9a-f]{64}", password)
    assert re.fullmatch(r"rlv_[0-9a-f]{64}", token)
    assert token[4:] != password
    assert found[0] == found[1]
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700

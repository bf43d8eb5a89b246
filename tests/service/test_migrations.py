"""The schema that the migrations build is the schema that the code means."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from tests.serving import opened

from rlvitals.metrics.catalog import CATALOG
from rlvitals_service import migrate
from rlvitals_service.tables import PART_KEY, STEP_KEY, STEP_METRICS, metadata


def differences(url: str) -> list[Any]:
    """Compare a database with the tables of the code."""
    with opened(url) as database, database.transaction() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True}
        )
        return list(compare_metadata(context, metadata))


def test_upgrading_from_nothing_leaves_no_difference(empty_url: str) -> None:
    """After an upgrade from empty, autogenerate finds nothing to do."""
    assert differences(empty_url) != []
    with opened(empty_url) as database:
        migrate.upgrade(database)
        migrate.upgrade(database)
        with database.transaction() as connection:
            assert migrate.current(connection) == migrate.head()
    assert differences(empty_url) == []


def test_downgrading_leaves_nothing(empty_url: str) -> None:
    """Every revision can be undone and done again."""
    with opened(empty_url) as database:
        migrate.upgrade(database)
        with database.transaction() as connection:
            command.downgrade(migrate.configuration(connection), "base")
        with database.transaction() as connection:
            left = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
            assert connection.exec_driver_sql(left).scalars().all() == ["alembic_version"]
        migrate.upgrade(database)
    assert differences(empty_url) == []


def test_concurrent_upgrades_are_safe(empty_url: str) -> None:
    """Two threads and two processes that migrate one empty database all succeed."""
    program = (
        "import sys; from rlvitals_service.database import Database;"
        "from rlvitals_service.migrate import upgrade; upgrade(Database(sys.argv[1]))"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", program, empty_url], stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    failures: list[Exception] = []

    def upgrade() -> None:
        try:
            with opened(empty_url) as database:
                migrate.upgrade(database)
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
            failures.append(error)

    threads = [threading.Thread(target=upgrade) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for process in processes:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
    assert failures == []
    assert differences(empty_url) == []


def test_there_is_one_head() -> None:
    """Two heads would make `upgrade head` ambiguous."""
    scripts = ScriptDirectory.from_config(migrate.configuration())
    assert len(scripts.get_heads()) == 1


def test_every_column_of_the_catalog_is_a_column() -> None:
    """The catalog and the table agree on which metrics have a column."""
    columns = {key for key, metric in CATALOG.items() if metric.column}
    assert columns <= set(STEP_METRICS)
    assert set(STEP_METRICS) <= CATALOG.keys()


@pytest.mark.parametrize("name", ["step", "step_part", "step_groups", "incident", "directive"])
def test_the_run_leads_every_key(name: str) -> None:
    """Keys of data about runs begin with run_id, have no serial and no foreign key."""
    table = metadata.tables[name]
    assert next(iter(table.primary_key.columns)).name == "run_id"
    assert not table.foreign_keys
    for index in table.indexes:
        if index.unique:
            assert next(iter(index.columns)).name == "run_id"
    assert PART_KEY[:4] == STEP_KEY


def test_packed_groups_are_not_compressed_again(database: Any) -> None:
    """The payload is stored out of line as it is."""
    query = (
        "SELECT attstorage FROM pg_attribute "
        "WHERE attrelid = 'step_groups'::regclass AND attname = 'payload'"
    )
    with database.transaction() as connection:
        assert connection.exec_driver_sql(query).scalar_one() in {"e", b"e"}

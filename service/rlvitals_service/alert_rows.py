"""Store alerts that user code raised, as incidents of kind `alert`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, and_, insert, select, update

from rlvitals.records import AlertRecord
from rlvitals_service.cleaning import clean_text
from rlvitals_service.identifiers import uuid7
from rlvitals_service.incident_rows import Where
from rlvitals_service.judging import ALERT
from rlvitals_service.tables import incident, incident_change


def store_alerts(connection: Connection, where: Where, alerts: Iterable[AlertRecord]) -> int:
    """Store alerts; give the number that changed anything.

    A title that is open already counts up instead of opening another incident, and a resend of
    the very same alert changes nothing.
    """
    return sum(_store(connection, where, alert) for alert in alerts)


def _store(connection: Connection, where: Where, alert: AlertRecord) -> bool:
    title, text = clean_text(alert.title), clean_text(alert.text)
    named = and_(
        incident.c.run_id == where.run_id, incident.c.kind == ALERT, incident.c.title == title
    )
    if _is_resend(connection, named, alert, text):
        return False
    found = connection.execute(select(incident).where(named, incident.c.state == "open")).first()
    words = {
        "severity": alert.level,
        "last_step": alert.step,
        "text": text,
        "revision": where.revision,
    }
    if found is None:
        incident_id, number, action = uuid7(), 1, "opened"
        fresh = {"attempt": where.attempt, "kind": ALERT, "onset_step": alert.step, "title": title}
        key = {"run_id": where.run_id, "id": incident_id}
        counted = {"changes": number, "evidence": {"count": number}}
        connection.execute(insert(incident).values(**key, **fresh, **words, **counted))
    else:
        incident_id, number, action = found.id, found.changes + 1, "updated"
        counted = {"changes": number, "evidence": {"count": number}}
        this = and_(incident.c.run_id == where.run_id, incident.c.id == incident_id)
        connection.execute(update(incident).where(this).values(**words, **counted))
    connection.execute(
        insert(incident_change).values(
            run_id=where.run_id,
            incident_id=incident_id,
            number=number,
            action=action,
            severity=alert.level,
            step=alert.step,
            text=text,
        )
    )
    return True


def _is_resend(connection: Connection, named: Any, alert: AlertRecord, text: str) -> bool:
    """Tell whether an alert of this title has said just this at just this step before."""
    query = (
        select(incident_change.c.number)
        .join(
            incident,
            and_(
                incident.c.run_id == incident_change.c.run_id,
                incident.c.id == incident_change.c.incident_id,
            ),
        )
        .where(
            named,
            incident_change.c.step.is_not_distinct_from(alert.step),
            incident_change.c.severity == alert.level,
            incident_change.c.text == text,
        )
    )
    return connection.execute(query).first() is not None

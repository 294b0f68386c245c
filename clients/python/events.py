"""Server-sent events, typed. A generator of clients has no words for a stream, so it is read here."""

import json
from collections.abc import Iterator

from toolhost_client import AuthenticatedClient
from toolhost_client.models import CallFinished, CallStarted, CallUnknown, PersonDecided

AuditRow = CallStarted | CallFinished | PersonDecided | CallUnknown

# `event` says which kind a row is.
KINDS: dict[str, type[AuditRow]] = {
    "started": CallStarted,
    "finished": CallFinished,
    "decision": PersonDecided,
    "unknown": CallUnknown,
}


def events(client: AuthenticatedClient, project: str, after: int) -> Iterator[AuditRow]:
    """Yields the rows of the audit after a number, and waits for more."""
    path = f"/api/v1/projects/{project}/events"
    with client.get_httpx_client().stream("GET", path, params={"after": after}, timeout=None) as answer:
        answer.raise_for_status()
        for line in answer.iter_lines():
            if line.startswith("data:"):
                row = json.loads(line.removeprefix("data:"))
                yield KINDS[row["event"]].from_dict(row)

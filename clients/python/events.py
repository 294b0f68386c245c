"""Server-sent events, typed. A generator of clients has no words for a stream, so it is read here."""

import json
from collections.abc import Iterator

from toolhost_client import AuthenticatedClient
from toolhost_client.models import CallFinished, CallStarted, CallUnknown, PersonDecided, SessionChanged, SessionStepped

Event = CallStarted | CallFinished | PersonDecided | CallUnknown | SessionChanged | SessionStepped

# `event` says which kind it is.
KINDS: dict[str, type[Event]] = {
    "started": CallStarted,
    "finished": CallFinished,
    "decision": PersonDecided,
    "unknown": CallUnknown,
    "session": SessionChanged,
    "step": SessionStepped,
}


def events(client: AuthenticatedClient, project: str, after: int) -> Iterator[Event]:
    """Yields what happens in a project after a number, and waits for more."""
    path = f"/api/v1/projects/{project}/events"
    with client.get_httpx_client().stream("GET", path, params={"after": after}, timeout=None) as answer:
        answer.raise_for_status()
        for line in answer.iter_lines():
            if line.startswith("data:"):
                event = json.loads(line.removeprefix("data:"))
                yield KINDS[event["event"]].from_dict(event)

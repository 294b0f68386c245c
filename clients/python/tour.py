"""A tour of the API with a generated client: tools, a call that is made once, a question that a person answers, events, the audit,
and the workflow package. It wants a project without a package, and two tokens for it:

    TOOLHOST_URL             such as http://127.0.0.1:7420
    TOOLHOST_TOKEN           of an agent, with the rights `call` and `read`
    TOOLHOST_PERSON_TOKEN    of a person, with `read`, `approve` and `manage`
    TOOLHOST_PACKAGE         a workflow package as a zip
"""

import io
from os import environ
from pathlib import Path
from uuid import uuid4

from events import events
from toolhost_client import AuthenticatedClient
from toolhost_client.api.asks import decide, get_ask, list_asks
from toolhost_client.api.audit import list_audit
from toolhost_client.api.package import export_package, import_package
from toolhost_client.api.projects import list_projects
from toolhost_client.api.tools import list_tools, make_call
from toolhost_client.models import (
    CallFinished,
    CallRequest,
    CallRequestArguments,
    CallStarted,
    DecisionRequest,
    PersonDecided,
    Problem,
)
from toolhost_client.types import File, UNSET


def client(token: str) -> AuthenticatedClient:
    return AuthenticatedClient(base_url=environ["TOOLHOST_URL"], token=environ[token])


def told(answer):
    """The answer, or its problem as an error."""
    if isinstance(answer, Problem) or answer is None:
        raise RuntimeError(answer)
    return answer


def call(tool: str, **arguments) -> CallRequest:
    return CallRequest(tool=tool, arguments=CallRequestArguments.from_dict(arguments))


agent, person = client("TOOLHOST_TOKEN"), client("TOOLHOST_PERSON_TOKEN")
project = told(list_projects.sync(client=agent)).data[0].key

tools = told(list_tools.sync(project, client=agent)).data
assert any(tool.name == "file.write" and tool.effect == "writes" for tool in tools)
print(f"{len(tools)} tools")

# With a key, a call is made once however often it is asked for: with the second answer comes the first outcome.
key = str(uuid4())
brew = call("ticket.create", title="Brew tea")
outcomes = [told(make_call.sync(project, client=agent, body=brew, idempotency_key=key)) for _ in range(2)]
assert outcomes[0] == outcomes[1] and outcomes[0].meta.call_id == key, outcomes
print(f"call {key} was made once")

# What fails says why, in one form.
failed = make_call.sync_detailed(project, client=agent, body=call("file.read", path="no such file"))
assert isinstance(failed.parsed, Problem) and failed.parsed.error.kind == "not_found", failed

# An agent asks, and a person answers.
asked = make_call.sync_detailed(project, client=agent, body=call("human.ask", question="Which tea?"))
assert asked.status_code == 202, asked
waiting = told(list_asks.sync(project, client=person)).data.asks
first = next(ask for ask in waiting if ask.kind == "question")
ask = told(get_ask.sync(project, f"ask-{first.number}", client=person)).data
print(f"{ask.id}: {ask.pages[0].strip().splitlines()[0]}")
answer = DecisionRequest(decision="answer", text="Green", digest=ask.digest)
decided = told(decide.sync(project, ask.id, client=person, body=answer)).data
assert decided.answer.say == "text" and decided.answer.text == "Green", decided

# Events from a number on: from the first, here. Each is of a class of its own.
seen = set()
for row in events(person, project, after=0):
    seen.add(type(row))
    match row:
        case CallStarted():
            print(f"{row.seq} {row.tool} begins, for {row.body.caller.persona}")
        case CallFinished():
            print(f"{row.seq} {row.tool} ended {'well' if row.body.outcome.ok else f'with {row.body.outcome.kind}'}")
        case PersonDecided():
            print(f"{row.seq} {row.body.caller.persona} said {row.body.decision.say}")
            break
        case other:
            print(f"{other.seq} nobody knows how {other.tool} ended")
assert {CallStarted, CallFinished, PersonDecided} <= seen, seen

# The audit in pages, and of one call.
rows, last = 0, 0
while page := told(list_audit.sync(project, client=person, after=last, limit=100)).data:
    rows, last = rows + len(page), page[-1].seq
of_call = told(list_audit.sync(project, client=person, call=key)).data
assert [row.event for row in of_call] == ["started", "finished"], of_call
print(f"{rows} rows of the audit")

# A package goes in, and out with its revision; who has seen an older one replaces nothing.
zip_file = Path(environ["TOOLHOST_PACKAGE"]).read_bytes()


def put(tag=UNSET):
    body = File(payload=io.BytesIO(zip_file), mime_type="application/zip")
    return import_package.sync_detailed(project, client=person, body=body, if_match=tag)


brought = told(put().parsed).data
exported = export_package.sync_detailed(project, client=person)
tag = exported.headers["ETag"]
assert tag == f'"{brought.revision}"' and exported.parsed.payload.read(2) == b"PK", exported
assert put('"0000"').parsed.error.kind == "conflict"
assert told(put(tag).parsed).data.revision == brought.revision
print(f"a package of {brought.files} files, revision {brought.revision[:12]}")

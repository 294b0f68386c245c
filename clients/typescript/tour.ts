// A tour of the API with a generated client: tools, a call that is made once, a question that a person answers, events, the audit,
// and the workflow package. It wants a project without a package, and two tokens for it:
//
//   TOOLHOST_URL             such as http://127.0.0.1:7420
//   TOOLHOST_TOKEN           of an agent, with the rights `call` and `read`
//   TOOLHOST_PERSON_TOKEN    of a person, with `read`, `approve` and `manage`
//   TOOLHOST_PACKAGE         a workflow package as a zip

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { env } from "node:process";

import createClient from "openapi-fetch";

import { type Event, events } from "./events.ts";
import type { components, paths } from "./schema.d.ts";

/** What an answer may be: data of a success, or an error. */
interface Answer<T> {
  data?: { data: T } | undefined;
  error?: { error: Pick<components["schemas"]["OutcomeError"], "kind" | "message"> } | undefined;
  response: Response;
}

function setting(name: string): string {
  const value = env[name];
  if (value === undefined) throw new Error(`${name} is not set`);
  return value;
}

function client(token: string) {
  return createClient<paths>({ baseUrl: setting("TOOLHOST_URL"), headers: { Authorization: `Bearer ${token}` } });
}

/** The data of an answer, or its problem as an error. */
function told<T>(answer: Answer<T>): T {
  if (answer.data !== undefined) return answer.data.data;
  const error = answer.error?.error;
  throw new Error(`${answer.response.status} ${error?.kind}: ${error?.message}`);
}

const agent = client(setting("TOOLHOST_TOKEN"));
const person = client(setting("TOOLHOST_PERSON_TOKEN"));

const project = told(await agent.GET("/api/v1/projects"))[0]?.key ?? "";
const path = { project };
const at = { params: { path } };

const tools = told(await agent.GET("/api/v1/projects/{project}/tools", at));
assert(tools.some((tool) => tool.name === "file.write" && tool.effect === "writes"));
console.log(`${tools.length} tools`);

// With a key, a call is made once however often it is asked for: with the second answer comes the first outcome.
const once = { params: { path, header: { "Idempotency-Key": randomUUID() } } };
const body = { tool: "ticket.create", arguments: { title: "Brew tea" } };
const outcomes = [];
for (let time = 0; time < 2; time++) {
  const answer = await agent.POST("/api/v1/projects/{project}/calls", { ...once, body });
  assert(answer.data, JSON.stringify(answer.error));
  outcomes.push(answer.data);
}
assert.deepEqual(outcomes[0], outcomes[1]);
const callId = outcomes[0]?.meta.callId;
assert.equal(callId, once.params.header["Idempotency-Key"]);
console.log(`call ${callId} was made once`);

// What fails says why, in one form.
const failed = await agent.POST("/api/v1/projects/{project}/calls", {
  ...at,
  body: { tool: "file.read", arguments: { path: "no such file" } },
});
assert.equal(failed.error?.error.kind, "not_found");

// An agent asks, and a person answers.
const asked = await agent.POST("/api/v1/projects/{project}/calls", {
  ...at,
  body: { tool: "human.ask", arguments: { question: "Which tea?" } },
});
assert.equal(asked.response.status, 202);
const open = told(await person.GET("/api/v1/projects/{project}/asks", at)).asks;
const first = open.find((ask) => ask.kind === "question");
assert(first);
const ofAsk = { params: { path: { project, ask: `ask-${first.number}` } } };
const ask = told(await person.GET("/api/v1/projects/{project}/asks/{ask}", ofAsk));
console.log(`${ask.id}: ${ask.pages[0]?.trim().split("\n")[0]}`);
const decided = told(
  await person.POST("/api/v1/projects/{project}/asks/{ask}/decision", {
    ...ofAsk,
    body: { decision: "answer", text: "Green", digest: ask.digest },
  }),
);
assert(decided.answer?.say === "text" && decided.answer.text === "Green");

// Events from a number on: from the first, here. Which fields a body has follows from `event`.
const stop = new AbortController();
const stream = await person.GET("/api/v1/projects/{project}/events", {
  params: { path, query: { after: 0 } },
  parseAs: "stream",
  signal: stop.signal,
});
assert(stream.data);
const seen = new Set<Event["event"]>();
for await (const row of events<Event>(stream.data)) {
  seen.add(row.event);
  switch (row.event) {
    case "started":
      console.log(`${row.seq} ${row.tool} begins, for ${row.body.caller.persona}`);
      break;
    case "finished":
      console.log(`${row.seq} ${row.tool} ended ${row.body.outcome.ok ? "well" : `with ${row.body.outcome.kind}`}`);
      break;
    case "decision":
      console.log(`${row.seq} ${row.body.caller.persona} said ${row.body.decision.say}`);
      break;
    case "unknown":
      console.log(`${row.seq} nobody knows how ${row.tool} ended`);
      break;
  }
  if (row.event === "decision") break;
}
stop.abort();
assert(seen.has("started") && seen.has("finished"));

// The audit in pages, and of one call.
const query = { limit: 1, after: 0 };
let rows = 0;
for (;;) {
  const page = told(await person.GET("/api/v1/projects/{project}/audit", { params: { path, query } }));
  const last = page.at(-1);
  if (last === undefined) break;
  rows += page.length;
  query.after = last.seq;
  query.limit = 100;
}
const ofCall = { params: { path, query: { call: callId ?? "" } } };
const two = told(await person.GET("/api/v1/projects/{project}/audit", ofCall));
assert.deepEqual(two.map((row) => row.event), ["started", "finished"]);
console.log(`${rows} rows of the audit`);

// A package goes in, and out with its revision; who has seen an older one replaces nothing.
const zip = new Blob([await readFile(setting("TOOLHOST_PACKAGE"))], { type: "application/zip" });
const put = (tag?: string) =>
  person.PUT("/api/v1/projects/{project}/package", {
    params: { path, header: tag === undefined ? {} : { "If-Match": tag } },
    headers: { "Content-Type": "application/zip" },
    body: "",
    bodySerializer: () => zip,
  });
const brought = told(await put());
const exported = await person.GET("/api/v1/projects/{project}/package", { ...at, parseAs: "blob" });
const tag = exported.response.headers.get("ETag");
assert.equal(tag, `"${brought.revision}"`);
assert(exported.data instanceof Blob && exported.data.size > 0);
assert.equal((await put('"0000"')).error?.error.kind, "conflict");
assert.equal(told(await put(tag ?? "")).revision, brought.revision);
console.log(`a package of ${brought.files} files, revision ${brought.revision.slice(0, 12)}`);

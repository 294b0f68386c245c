// A browser without a screen, and a client of MCP. Arguments: the address of the server, its project, and who signs in.
import crypto from "node:crypto";

const [server, project, name] = process.argv.slice(2);
const jars = new Map();

// One request, as a browser sends it: cookies by host, and nothing followed.
async function visit(address, form) {
  const url = new URL(address);
  const jar = jars.get(url.host) ?? new Map();
  jars.set(url.host, jar);
  const headers = { cookie: [...jar].map(([key, value]) => `${key}=${value}`).join("; "), origin: url.origin };
  const body = form && new URLSearchParams(form);
  const answer = await fetch(url, { method: form ? "POST" : "GET", headers, body, redirect: "manual" });
  for (const line of answer.headers.getSetCookie()) {
    const [pair] = line.split(";");
    const at = pair.indexOf("=");
    const [key, value] = [pair.slice(0, at), pair.slice(at + 1)];
    value === "" ? jar.delete(key) : jar.set(key, value);
  }
  return { status: answer.status, to: answer.headers.get("location"), text: await answer.text(), at: url };
}

// Follows redirects, and fills in the provider's forms, until a page says something else.
async function follow(address, stop = () => false) {
  let page = await visit(address);
  for (let steps = 0; steps < 20; steps += 1) {
    if (page.to) {
      const to = new URL(page.to, page.at);
      if (stop(to)) return { ...page, at: to };
      page = await visit(to);
      continue;
    }
    const action = page.text.match(/action="([^"]*\/interaction\/[^"]*)"/);
    if (!action) return page;
    const prompt = page.text.match(/name="prompt" value="(\w+)"/)[1];
    const form = prompt === "login" ? { prompt, login: name, password: "x" } : { prompt };
    page = await visit(new URL(action[1], page.at), form);
  }
  throw new Error("it goes round in circles");
}

function expect(is, what, seen) {
  if (!is) throw new Error(`${what}: ${JSON.stringify(seen)}`);
  console.log(`ok: ${what}`);
}

const sign = await visit(`${server}/login`);
expect(sign.text.includes('href="/login/openid"'), "the page for signing in leads to the provider", sign);
const inbox = await follow(`${server}/login/openid`);
expect(inbox.status === 200 && inbox.text.includes("<h1>Inbox</h1>"), "whoever the provider signs in sees the inbox", inbox);
expect(inbox.text.includes(`<span>${name}</span>`), "in their own name", inbox);
const again = await follow(`${server}/login/openid`);
expect(again.status === 200 && again.text.includes("<h1>Inbox</h1>"), "and signs in once more without a question", again);

const resource = `${server}/mcp/${project}`;
const challenge = (await fetch(resource, { method: "POST" })).headers.get("www-authenticate");
const metadata = await (await fetch(challenge.match(/resource_metadata="([^"]*)"/)[1])).json();
const issuer = metadata.authorization_servers[0];
const known = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json();
const verifier = crypto.randomBytes(32).toString("base64url");
const callback = "http://127.0.0.1:9/callback";
const asked = new URLSearchParams({
  response_type: "code", client_id: "an-agent", redirect_uri: callback, resource, state: "s",
  scope: "openid toolhost:call toolhost:read toolhost:profile:developer",
  code_challenge: crypto.createHash("sha256").update(verifier).digest("base64url"), code_challenge_method: "S256",
});
const back = await follow(`${known.authorization_endpoint}?${asked}`, (to) => to.port === "9");
const code = back.at.searchParams.get("code");
expect(code, "a client that found the provider by itself gets a code", back.at.href);
const form = { grant_type: "authorization_code", code, redirect_uri: callback, client_id: "an-agent", code_verifier: verifier, resource };
const token = await (await fetch(known.token_endpoint, { method: "POST", body: new URLSearchParams(form) })).json();
const bearer = { authorization: `Bearer ${token.access_token}` };
const tools = await fetch(`${server}/api/v1/projects/${project}/tools`, { headers: bearer });
const listed = await tools.json();
expect(tools.status === 200 && listed.data.length > 10, "its token lists the tools of its profile", listed.error ?? token);
const named = { tool: "file.list", arguments: {} };
const call = await fetch(`${server}/api/v1/projects/${project}/calls`, {
  method: "POST", headers: { ...bearer, "content-type": "application/json" }, body: JSON.stringify(named),
});
expect(call.status === 200, "and calls one", await call.json());
const wrong = await fetch(`${server}/api/v1/projects/${project}/tools`, { headers: { authorization: `Bearer ${token.id_token}` } });
expect(wrong.status === 401, "the token that says who somebody is opens nothing", wrong.status);

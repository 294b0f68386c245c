// A real OpenID provider: whoever gives a name is that person. Arguments: its port, and the address of the server.
import http from "node:http";
import Provider from "oidc-provider";

const [port, server] = process.argv.slice(2);
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    { client_id: "toolhost", client_secret: "s3cret", redirect_uris: [`${server}/login/openid/callback`] },
    {
      client_id: "an-agent", token_endpoint_auth_method: "none", redirect_uris: ["http://127.0.0.1:9/callback"],
      application_type: "native",
    },
  ],
  scopes: ["openid", "toolhost:call", "toolhost:read", "toolhost:profile:developer"],
  features: {
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({
        scope: "toolhost:call toolhost:read toolhost:profile:developer", audience: resource, accessTokenFormat: "jwt",
        jwt: { sign: { alg: "RS256" } },
      }),
    },
  },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
});
http.createServer(provider.callback()).listen(Number(port), "127.0.0.1", () => console.log("ready"));

// Server-sent events, typed. A generator of clients has no words for a stream, so it is read here.

import type { components } from "./schema.d.ts";

/** A row of the audit, or what happened to a session. `event` says which kind it is, and so which fields it has. */
export type Event = components["schemas"]["Event"];

/** Yields the data of each event of a stream, until the stream ends or nobody wants more of it. */
export async function* events<T>(stream: ReadableStream<Uint8Array>): AsyncGenerator<T> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const bytes of stream) {
    rest += decoder.decode(bytes, { stream: true });
    const parts = rest.split("\n\n");
    rest = parts.pop() ?? "";
    for (const part of parts) {
      const data = part
        .split("\n")
        .filter((line) => line.startsWith("data:"))
        .map((line) => line.slice("data:".length).trimStart());
      // A part without data says that the connection lives.
      if (data.length > 0) yield JSON.parse(data.join("\n")) as T;
    }
  }
}

"""A model that plays two turns: it calls the client's tool for reading a file, then says what it was answered.

Speaks the APIs that clients use: Anthropic's Messages, OpenAI's Responses and Chat Completions, streamed or whole. Prints its port, then
a line of JSON for each request with tools: how many tools, the name it would call, and whether that has answered.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PATH = sys.argv[1]
ARGUMENTS = json.dumps({"path": PATH})


def texts(value):
    """All texts in what a client sends, so that a result is found wherever it keeps it."""
    found, open_ = [], [value]
    while open_:
        one = open_.pop()
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, dict):
            open_.extend(one.values())
        elif isinstance(one, list):
            open_.extend(one)
    return found


def flat(tools):
    """(name, namespace) of each tool; some clients put those of a server into one entry."""
    for tool in tools:
        inner = tool.get("tools")
        if isinstance(inner, list):
            for one in inner:
                yield one.get("name") or one.get("function", {}).get("name", ""), tool.get("name")
        else:
            yield tool.get("name") or tool.get("function", {}).get("name", ""), None


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, body, kind="application/json"):
        data = body.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def events(self, events, named):
        lines = []
        for event in events:
            if named:
                lines.append(f"event: {event['type']}")
            lines.append("data: " + (event if isinstance(event, str) else json.dumps(event)) + "\n")
        self.send("\n".join(lines) + "\n", "text/event-stream")

    def do_HEAD(self):
        self.send("")

    def do_GET(self):
        self.send(json.dumps({"object": "list", "data": [{"id": "mock", "object": "model"}], "models": []}))

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        tools = list(flat(body.get("tools") or []))
        own = [(name, space) for name, space in tools if name.endswith("file_read")]
        name, space = own[0] if own else (None, None)
        # Of the newest message: what a model was told at the beginning may name the file, too.
        messages = body.get("messages") or body.get("input") or []
        last = messages[-1] if isinstance(messages, list) and messages else messages
        answered = [text for text in texts(last) if "the-secret-word" in text]
        if tools:
            print(json.dumps({"tools": len(tools), "name": name, "answered": bool(answered)}), flush=True)
        says = "it says " + answered[0] if answered else None
        if says is None and name is None:
            says = "nothing to call"
        if self.path.split("?")[0].endswith("/count_tokens"):
            self.send(json.dumps({"input_tokens": 1000}))
        elif "/messages" in self.path:
            self.anthropic(body, name, says)
        elif "/responses" in self.path:
            self.openai(body, name, space, says)
        elif "/chat/completions" in self.path:
            self.chat(body, name, says)
        else:
            self.send("{}")

    def anthropic(self, body, name, says):
        block = {"type": "text", "text": says} if says else {"type": "tool_use", "id": "toolu_1", "name": name, "input": {"path": PATH}}
        stop = "end_turn" if says else "tool_use"
        usage = {"input_tokens": 10, "output_tokens": 5}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model"), "stop_sequence": None}
        if not body.get("stream"):
            return self.send(json.dumps({**message, "content": [block], "stop_reason": stop, "usage": usage}))
        delta = {"type": "text_delta", "text": says} if says else {"type": "input_json_delta", "partial_json": ARGUMENTS}
        begun = {"type": "text", "text": ""} if says else {**block, "input": {}}
        self.events([
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None, "usage": usage}},
            {"type": "content_block_start", "index": 0, "content_block": begun},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"},
        ], named=True)

    def openai(self, body, name, space, says):
        if says:
            content = [{"type": "output_text", "text": says, "annotations": []}]
            item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
        else:
            item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name, "arguments": ARGUMENTS, "status": "completed"}
            if space:
                item["namespace"] = space
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
                 "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        response = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": body.get("model"), "output": [item],
                    "usage": usage, "parallel_tool_calls": False, "tool_choice": "auto", "tools": []}
        if not body.get("stream"):
            return self.send(json.dumps(response))
        self.events([
            {"type": "response.created", "sequence_number": 0, "response": {**response, "status": "in_progress", "output": []}},
            {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": item},
            {"type": "response.output_item.done", "sequence_number": 2, "output_index": 0, "item": item},
            {"type": "response.completed", "sequence_number": 3, "response": response},
        ], named=True)

    def chat(self, body, name, says):
        call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": ARGUMENTS}}
        message = {"role": "assistant", "content": says} if says else {"role": "assistant", "content": None, "tool_calls": [call]}
        stop = "stop" if says else "tool_calls"
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        head = {"id": "chat_1", "created": 1, "model": body.get("model")}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": stop}
            return self.send(json.dumps({**head, "object": "chat.completion", "choices": [choice], "usage": usage}))
        chunk = {**head, "object": "chat.completion.chunk"}
        self.events([
            {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}], "usage": usage},
            "[DONE]",
        ], named=False)


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(server.server_port, flush=True)
server.serve_forever()

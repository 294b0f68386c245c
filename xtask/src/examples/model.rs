//! A model server that plays a script: OpenAI's chat completions, whole or streamed, on a port of its own.
//!
//! It checks what a real one would: that each call it made has its answer in the next request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

/// How long a request may take to arrive.
const READ_MAX: Duration = Duration::from_secs(30);
/// How long the script may take to be played, once the program has ended.
const PLAYED_MAX: Duration = Duration::from_secs(5);
/// Largest request, bytes: more than any list of tools.
const BODY_BYTES_MAX: usize = 16 << 20;

/// One answer of the model.
pub(crate) enum Turn {
    Call { tool: String, arguments: Value },
    Says(String),
}

impl Turn {
    pub(crate) fn call(tool: &str, arguments: Value) -> Self {
        Self::Call { tool: tool.to_owned(), arguments }
    }

    pub(crate) fn says(text: &str) -> Self {
        Self::Says(text.to_owned())
    }

    /// The message of the assistant, and why it ends.
    fn message(&self, n: usize) -> (Value, &'static str) {
        match self {
            Self::Call { tool, arguments } => {
                let function = json!({ "name": tool, "arguments": arguments.to_string() });
                let call = json!({ "index": 0, "id": call_id(n), "type": "function", "function": function });
                (json!({ "role": "assistant", "content": null, "tool_calls": [call] }), "tool_calls")
            }
            Self::Says(text) => (json!({ "role": "assistant", "content": text }), "stop"),
        }
    }
}

/// The server, until its script is played.
pub(crate) struct Model {
    /// What `OPENAI_BASE_URL` takes.
    pub(crate) url: String,
    played: Receiver<Result<()>>,
}

impl Model {
    pub(crate) fn start(script: Vec<Turn>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no port on this machine")?;
        let url = format!("http://{}/v1", listener.local_addr()?);
        let (done, played) = channel();
        // It ends with its script, or with this process.
        thread::spawn(move || {
            // Whoever has gone does not want to know.
            let _ = done.send(play(&listener, &script));
        });
        Ok(Self { url, played })
    }

    /// Whether the whole script was played, and each call answered.
    pub(crate) fn played(self) -> Result<()> {
        self.played.recv_timeout(PLAYED_MAX).context("the model's script was not played to its end")?
    }
}

fn play(listener: &TcpListener, script: &[Turn]) -> Result<()> {
    let mut turns = script.iter().enumerate();
    let mut next = turns.next();
    while let Some((n, turn)) = next {
        let (mut stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(READ_MAX))?;
        let (path, body) = read(&stream)?;
        if !path.ends_with("/chat/completions") {
            answer(&mut stream, "404 Not Found", "application/json", "{}")?;
            continue;
        }
        check(&body, script, n)?;
        let (message, why) = turn.message(n);
        if body["stream"] == true {
            answer(&mut stream, "200 OK", "text/event-stream", &streamed(&message, why))?;
        } else {
            answer(&mut stream, "200 OK", "application/json", &whole(&message, why).to_string())?;
        }
        next = turns.next();
    }
    Ok(())
}

/// Every call before has its answer, and the tool of the next one is offered.
fn check(body: &Value, script: &[Turn], n: usize) -> Result<()> {
    let messages = body["messages"].as_array().context("a request without messages")?;
    for (made, turn) in script.iter().enumerate().take(n) {
        let Turn::Call { tool, .. } = turn else { continue };
        let answers = |message: &&Value| message["role"] == "tool" && message["tool_call_id"] == call_id(made);
        let answer = messages.iter().find(answers).with_context(|| format!("`{tool}` has no answer: {messages:?}"))?;
        let text = answer["content"].to_string();
        ensure!(!text.contains("AI_TOOL_"), "`{tool}` failed: {text}");
    }
    if let Turn::Call { tool, .. } = &script[n] {
        let tools = body["tools"].as_array().context("a request without tools")?;
        ensure!(tools.iter().any(|offered| offered["function"]["name"] == tool.as_str()), "`{tool}` is not offered");
    }
    Ok(())
}

fn call_id(n: usize) -> String {
    format!("call_{n}")
}

fn read(stream: &TcpStream) -> Result<(String, Value)> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).context("no request line")?.to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 || header.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse()?;
        }
    }
    if length > BODY_BYTES_MAX {
        bail!("a request of {length} bytes");
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((path, serde_json::from_slice(&body).unwrap_or_default()))
}

fn answer(stream: &mut TcpStream, status: &str, kind: &str, body: &str) -> Result<()> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    Ok(stream.flush()?)
}

fn whole(message: &Value, why: &str) -> Value {
    json!({
        "id": "chatcmpl-script", "object": "chat.completion", "created": 0, "model": "script",
        "choices": [{ "index": 0, "message": message, "finish_reason": why, "logprobs": null }],
        "usage": { "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 },
    })
}

fn streamed(message: &Value, why: &str) -> String {
    let chunk = |delta: &Value, why: Value| {
        json!({
            "id": "chatcmpl-script", "object": "chat.completion.chunk", "created": 0, "model": "script",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": why }],
        })
    };
    let (said, end) = (chunk(message, Value::Null), chunk(&json!({}), why.into()));
    format!("data: {said}\n\ndata: {end}\n\ndata: [DONE]\n\n")
}

#[cfg(test)]
mod tests {
    use super::{Model, Turn};
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use serde_json::{Value, json};

    /// Sends one request and gives the body of the answer.
    fn ask(model: &Model, body: &Value) -> String {
        let address = model.url.trim_start_matches("http://").trim_end_matches("/v1");
        let mut stream = TcpStream::connect(address).expect("it listens");
        let body = body.to_string();
        let head = format!("POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all((head + &body).as_bytes()).expect("it reads");
        let mut said = String::new();
        stream.read_to_string(&mut said).expect("it answers");
        said.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default()
    }

    fn script() -> Model {
        Model::start(vec![Turn::call("file_read", json!({ "path": "a" })), Turn::says("done")]).expect("a free port")
    }

    #[test]
    fn a_script_is_played_to_its_end_whole_or_streamed() {
        let model = script();
        let tools = json!([{ "type": "function", "function": { "name": "file_read" } }]);
        let first = ask(&model, &json!({ "messages": [], "tools": tools }));
        let first: Value = serde_json::from_str(&first).expect("JSON");
        let call = &first["choices"][0]["message"]["tool_calls"][0];
        assert_eq!((&call["function"]["name"], &call["id"]), (&json!("file_read"), &json!("call_0")));
        let answered = json!([{ "role": "tool", "tool_call_id": "call_0", "content": "x" }]);
        let last = ask(&model, &json!({ "stream": true, "messages": answered, "tools": tools }));
        assert!(last.starts_with("data: {") && last.contains("done") && last.ends_with("data: [DONE]\n\n"), "{last}");
        model.played().expect("nothing was amiss");
    }

    #[test]
    fn a_call_without_an_answer_is_found_out() {
        let model = script();
        let tools = json!([{ "type": "function", "function": { "name": "file_read" } }]);
        ask(&model, &json!({ "messages": [], "tools": tools }));
        assert_eq!(ask(&model, &json!({ "messages": [], "tools": tools })), "");
        assert!(model.played().expect_err("a call is open").to_string().contains("no answer"));
    }

    #[test]
    fn a_tool_that_is_not_offered_is_not_called() {
        let model = script();
        assert_eq!(ask(&model, &json!({ "messages": [], "tools": [] })), "");
        assert!(model.played().expect_err("nobody offered it").to_string().contains("not offered"));
    }
}

//! What a pretended model says, and how badly its server says it.

use serde_json::Value;

/// One reply.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    pub(super) thought: Option<(String, String)>,
    pub(super) text: String,
    pub(super) calls: Vec<TurnCall>,
    pub(super) stop: Option<String>,
    pub(super) tokens: Tokens,
    pub(super) shape: Shape,
    pub(super) fault: Option<Fault>,
}

/// A call, as it stands in the stream.
#[derive(Debug, Clone)]
pub(super) struct TurnCall {
    /// None: ours, by its place.
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) arguments: String,
}

/// Tokens of a reply, as its usage has them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tokens {
    /// All that was sent.
    pub input: u64,
    /// Of these, from the cache.
    pub cached: u64,
    /// Of these, into the cache.
    pub written: u64,
    pub output: u64,
}

/// How a reply is cut into pieces.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Shape {
    /// Bytes of arguments in an event; 0: all at once.
    pub(super) argument_bytes: usize,
    /// The calls' pieces take turns.
    pub(super) interleaved: bool,
    /// Bytes of the body in one write; 0: all at once.
    pub(super) torn_bytes: usize,
    /// The body is torn once, here.
    pub(super) torn_at: Option<usize>,
}

/// What goes wrong. "After" counts events of the stream.
#[derive(Debug, Clone)]
pub enum Fault {
    /// No stream at all.
    Status { code: u16, headers: Vec<(String, String)>, body: String },
    /// The request is read, and nothing is said.
    Silence,
    /// Goes quiet, and keeps the connection.
    StallAfter(usize),
    /// Closes the connection in the middle of the body.
    CutAfter(usize),
    /// Ends the body as bodies end, with no event that says so.
    EndAfter(usize),
    /// Resets the connection.
    ResetAfter(usize),
    /// An error among the events: its kind and its message.
    ErrorAfter(usize, String, String),
    /// Says text without end, at least this many bytes of it, then ends well.
    Flood(usize),
    /// A body of the test's own.
    Raw { content_type: String, body: String },
}

impl Turn {
    /// Says this and stops.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    /// Asks for this call.
    #[must_use]
    pub fn call(tool: &str, arguments: &Value) -> Self {
        Self::default().and_call(tool, arguments)
    }

    /// Goes wrong before it says anything.
    #[must_use]
    pub fn fault(fault: Fault) -> Self {
        Self::text("Hello there.").but(fault)
    }

    /// Answers with this status and the provider's usual body.
    #[must_use]
    pub fn status(code: u16) -> Self {
        let body = format!(r#"{{"error":{{"type":"some_error","message":"status {code} it is"}}}}"#);
        Self::fault(Fault::Status { code, headers: Vec::new(), body })
    }

    /// Says this before its calls.
    #[must_use]
    pub fn and_text(mut self, text: &str) -> Self {
        text.clone_into(&mut self.text);
        self
    }

    /// Asks for a further call.
    #[must_use]
    pub fn and_call(self, tool: &str, arguments: &Value) -> Self {
        self.and_raw_call(tool, &arguments.to_string())
    }

    /// Asks for a call whose arguments are these letters.
    #[must_use]
    pub fn and_raw_call(mut self, tool: &str, arguments: &str) -> Self {
        self.calls.push(TurnCall { id: None, name: tool.to_owned(), arguments: arguments.to_owned() });
        self
    }

    /// The ids of its calls, one each; an empty one is sent as empty.
    #[must_use]
    pub fn with_ids(mut self, ids: &[&str]) -> Self {
        for (call, id) in self.calls.iter_mut().zip(ids) {
            call.id = Some((*id).to_owned());
        }
        self
    }

    /// Thinks before it speaks. Only one of the formats signs that.
    #[must_use]
    pub fn thinking(mut self, thought: &str, signature: &str) -> Self {
        self.thought = Some((thought.to_owned(), signature.to_owned()));
        self
    }

    /// The reason to stop, instead of the one that fits.
    #[must_use]
    pub fn stopping(mut self, reason: &str) -> Self {
        self.stop = Some(reason.to_owned());
        self
    }

    #[must_use]
    pub fn costing(mut self, tokens: Tokens) -> Self {
        self.tokens = tokens;
        self
    }

    /// Arguments come in pieces of so many bytes.
    #[must_use]
    pub fn arguments_by(mut self, bytes: usize) -> Self {
        self.shape.argument_bytes = bytes;
        self
    }

    /// The pieces of its calls take turns.
    #[must_use]
    pub fn interleaved(mut self) -> Self {
        self.shape.interleaved = true;
        self
    }

    /// The body comes in writes of so many bytes, wherever that tears it.
    #[must_use]
    pub fn torn_by(mut self, bytes: usize) -> Self {
        self.shape.torn_bytes = bytes;
        self
    }

    /// The body comes in two writes, torn at this byte.
    #[must_use]
    pub fn torn_at(mut self, byte: usize) -> Self {
        self.shape.torn_at = Some(byte);
        self
    }

    #[must_use]
    pub fn but(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }
}

impl Shape {
    /// The pieces of some arguments. A piece ends where a character does.
    pub(super) fn pieces(self, arguments: &str) -> Vec<String> {
        if self.argument_bytes == 0 {
            return vec![arguments.to_owned()];
        }
        let mut pieces = vec![String::new()];
        for c in arguments.chars() {
            if pieces.last().is_some_and(|piece| piece.len() >= self.argument_bytes) {
                pieces.push(String::new());
            }
            pieces.last_mut().unwrap().push(c);
        }
        pieces
    }

    /// The pieces of all calls in the order they are sent: the place of the call, and the piece.
    pub(super) fn order(self, calls: &[TurnCall]) -> Vec<(usize, String)> {
        let pieces = calls.iter().map(|call| self.pieces(&call.arguments)).collect::<Vec<_>>();
        let longest = pieces.iter().map(Vec::len).max().unwrap_or(0);
        let mut order = Vec::new();
        if self.interleaved {
            for round in 0..longest {
                order.extend(pieces.iter().enumerate().filter_map(|(at, own)| Some((at, own.get(round)?.clone()))));
            }
        } else {
            for (at, own) in pieces.into_iter().enumerate() {
                order.extend(own.into_iter().map(|piece| (at, piece)));
            }
        }
        order
    }
}

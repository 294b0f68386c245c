//! Where a call comes from, across programs: the trace that it belongs to, and the request that it answers.

use std::sync::Arc;

/// Longest `tracestate`, bytes: what W3C Trace Context asks a program to carry at least.
const STATE_BYTES_MAX: usize = 512;

/// Where a call comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// The operation of the caller that the call is a part of.
    pub parent: Option<TraceParent>,
    /// Another operation that the call belongs to, such as the HTTP request that carried it.
    pub linked: Option<TraceParent>,
    /// The request of MCP that the call answers.
    pub request: Option<McpRequest>,
}

impl Origin {
    /// The origin of a call that another call makes. It keeps the parent, and names no request, because it answers none.
    #[must_use]
    pub fn of_inner_call(&self) -> Arc<Self> {
        Arc::new(Self { parent: self.parent.clone(), linked: self.linked.clone(), request: None })
    }
}

/// A request of MCP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpRequest {
    pub method: &'static str,
    /// The prompt that is asked for.
    pub prompt: Option<&'static str>,
    /// Its JSON-RPC id, as text.
    pub id: Option<String>,
    pub session: Option<String>,
    pub protocol_version: Option<String>,
    pub transport: Transport,
}

/// What carries MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Pipe,
    Http,
}

/// An operation in a trace, as W3C Trace Context writes it in `traceparent` and `tracestate`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceParent {
    pub trace_id: u128,
    pub span_id: u64,
    pub is_sampled: bool,
    /// What tracing systems have added; may be empty.
    pub state: String,
}

impl TraceParent {
    /// Reads the two values. `None` for a `traceparent` that is not one: a trace then begins here, as the specification has it.
    /// A `tracestate` that is too long or no header text is left out.
    #[must_use]
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let mut fields = traceparent.trim().split('-');
        let (version, trace, span, flags) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let version = hex_number(version, 2)?;
        // 255 is no version, and the first version has nothing after the flags.
        if version == 0xff || (version == 0 && fields.next().is_some()) {
            return None;
        }
        let (trace_id, span_id) = (hex_number(trace, 32)?, u64::try_from(hex_number(span, 16)?).ok()?);
        let is_sampled = hex_number(flags, 2)? & 1 == 1;
        if trace_id == 0 || span_id == 0 {
            return None;
        }
        let is_kept = |state: &&str| state.len() <= STATE_BYTES_MAX && state.bytes().all(|b| (0x20..0x7f).contains(&b));
        let state = tracestate.map(str::trim).filter(is_kept).unwrap_or_default().to_owned();
        Some(Self { trace_id, span_id, is_sampled, state })
    }
}

/// A number of exactly so many lower-case digits.
fn hex_number(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let fits = text.len() == digits && text.bytes().all(is_digit);
    fits.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::{STATE_BYTES_MAX, TraceParent};

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    #[test]
    fn a_parent_is_read_as_the_specification_writes_it() {
        let parent =
            TraceParent::parse(&format!("00-{TRACE}-{SPAN}-01"), Some("rojo=00f067aa0ba902b7")).expect("it is one");
        assert_eq!(
            (parent.trace_id, parent.span_id),
            (0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, 0x00f0_67aa_0ba9_02b7)
        );
        assert_eq!((parent.is_sampled, parent.state.as_str()), (true, "rojo=00f067aa0ba902b7"));
        let unsampled = TraceParent::parse(&format!("00-{TRACE}-{SPAN}-00"), None).expect("it is one");
        assert!(!unsampled.is_sampled && unsampled.state.is_empty());
        // A later version may say more, of which the first four fields are known.
        assert!(TraceParent::parse(&format!("cc-{TRACE}-{SPAN}-01-what-comes"), None).is_some());
    }

    #[test]
    fn what_is_no_parent_is_ignored() {
        let (upper, zeros) = (TRACE.to_uppercase(), "0".repeat(32));
        for text in [
            String::new(),
            "00".to_owned(),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("00-{upper}-{SPAN}-01"),
            format!("00-{zeros}-{SPAN}-01"),
            format!("00-{TRACE}-{}-01", &zeros[..16]),
            format!("00-{}-{SPAN}-01", &TRACE[1..]),
            format!("00-{TRACE}-+{}-01", &SPAN[1..]),
            format!("00-{TRACE}-{SPAN}-1"),
        ] {
            assert_eq!(TraceParent::parse(&text, None), None, "{text}");
        }
    }

    #[test]
    fn a_state_that_is_no_header_text_is_left_out() {
        let traceparent = format!("00-{TRACE}-{SPAN}-01");
        for state in ["a=\n".repeat(2), "a".repeat(STATE_BYTES_MAX + 1), "a=\u{e4}".to_owned()] {
            let state = format!("b={state}c");
            let parent = TraceParent::parse(&traceparent, Some(&state)).expect("it is one");
            assert_eq!(parent.state, "", "{state:?}");
        }
    }
}

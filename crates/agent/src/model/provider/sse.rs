//! Server-sent events, byte by byte: the data of each event, whatever pieces it comes in.

use std::collections::VecDeque;

use super::failure::Failure;

/// Reads a stream of events. Lines are decoded when they are whole, so a character may be torn anywhere. What is held is
/// limited by the limit of the reply.
#[derive(Default)]
pub(super) struct Decoder {
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// The data of the event that has not ended yet.
    data: String,
    has_data: bool,
    /// A line ended in a carriage return: a line feed that follows belongs to it.
    after_return: bool,
    events: VecDeque<String>,
}

impl Decoder {
    pub(super) fn push(&mut self, mut bytes: &[u8]) -> Result<(), Failure> {
        if self.after_return && !bytes.is_empty() {
            self.after_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(at) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.line.extend_from_slice(&bytes[..at]);
            self.end_line()?;
            let rest = &bytes[at + 1..];
            bytes = match (bytes[at], rest) {
                (b'\r', [b'\n', rest @ ..]) => rest,
                (b'\r', []) => {
                    self.after_return = true;
                    rest
                }
                _ => rest,
            };
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// The stream is over. Its last event may lack the empty line behind it; if it is torn, its reader will see so.
    pub(super) fn end(&mut self) -> Result<(), Failure> {
        if !self.line.is_empty() {
            self.end_line()?;
        }
        self.end_event();
        Ok(())
    }

    /// The data of the next event.
    pub(super) fn next(&mut self) -> Option<String> {
        self.events.pop_front()
    }

    fn end_line(&mut self) -> Result<(), Failure> {
        if self.line.is_empty() {
            self.end_event();
            return Ok(());
        }
        let line = std::str::from_utf8(&self.line).map_err(|_| Failure::broken("it is not UTF-8"))?;
        // Events name themselves in their data; comments and ids are for others.
        if let Some(data) = line.strip_prefix("data:") {
            if self.has_data {
                self.data.push('\n');
            }
            self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
            self.has_data = true;
        }
        self.line.clear();
        Ok(())
    }

    fn end_event(&mut self) {
        if self.has_data {
            self.events.push_back(std::mem::take(&mut self.data));
            self.has_data = false;
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<String> {
        let mut decoder = Decoder::default();
        for piece in pieces {
            decoder.push(piece).unwrap();
        }
        decoder.end().unwrap();
        std::iter::from_fn(|| decoder.next()).collect()
    }

    #[test]
    fn events_are_the_same_wherever_the_stream_is_torn() {
        for end in ["\n", "\r\n", "\r"] {
            let stream =
                [": hi", "event: a", "data: {\"ä\":", "data:\"€😀\"}", "", "id: 7", "", "data: b", "", ""].join(end);
            let expected = ["{\"ä\":\n\"€😀\"}", "b"];
            let bytes = stream.as_bytes();
            for at in 0..=bytes.len() {
                assert_eq!(events(&[&bytes[..at], &bytes[at..]]), expected, "torn at {at}, line end {end:?}");
            }
            assert_eq!(events(&bytes.chunks(1).collect::<Vec<_>>()), expected);
        }
    }

    #[test]
    fn what_is_no_text_is_no_event() {
        assert!(Decoder::default().push(b"data: \xff\n\n").is_err());
    }
}

//! What a person types at this terminal: whole lines, or single keys while a menu waits for one.

use std::io::Read as _;

use tokio::sync::mpsc;
pub(crate) use toolhost_sandbox::typing::SingleKeys;
use toolhost_sandbox::typing::{forget_keys, forget_typed};

/// Pieces typed ahead that wait to be read.
const PIECES_MAX: usize = 16;
const PIECE_BYTES_MAX: usize = 4096;
/// Ctrl-D, where the terminal does not make the end of the input of it.
const END: u8 = 4;
const ESCAPE: u8 = 27;

/// What was typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    Key(char),
    Line(String),
}

/// The keyboard. It is read by one thread of its own for as long as the process lives: a read cannot be taken back.
#[derive(Default)]
pub(crate) struct Keyboard {
    pieces: Option<mpsc::Receiver<Vec<u8>>>,
    held: Vec<u8>,
}

impl Keyboard {
    /// The next line; `None` when the terminal has gone.
    pub(crate) async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(line) = self.held_line() {
                return Some(line);
            }
            if !self.fill().await {
                let rest = std::mem::take(&mut self.held);
                return (!rest.is_empty()).then(|| String::from_utf8_lossy(&rest).into_owned());
            }
        }
    }

    /// The next key, or a line that came whole; `None` when the terminal has gone, or for Ctrl-D. The terminal gives
    /// [`SingleKeys`].
    pub(crate) async fn typed(&mut self) -> Option<Typed> {
        loop {
            if let Some(line) = self.held_line() {
                return Some(Typed::Line(line));
            }
            match self.held.first().copied() {
                Some(END) => {
                    self.held.clear();
                    return None;
                }
                Some(ESCAPE) => self.forget_escape(),
                Some(_) => {
                    let text = String::from_utf8_lossy(&std::mem::take(&mut self.held)).into_owned();
                    let mut keys = text.chars();
                    // What comes at once was pasted, or written by a program: it is one text.
                    return Some(match (keys.next(), keys.next()) {
                        (Some(key), None) => Typed::Key(key),
                        _ => Typed::Line(text),
                    });
                }
                None if !self.fill().await => return None,
                None => {}
            }
        }
    }

    /// Forgets what was typed so far, also a line that is not whole yet; but not that the input ended.
    pub(crate) fn forget(&mut self) {
        self.held.clear();
        let Some(pieces) = &mut self.pieces else {
            let ended = forget_typed();
            self.pieces = Some(if ended { mpsc::channel(1).1 } else { read_pieces() });
            return;
        };
        forget_keys();
        while pieces.try_recv().is_ok() {}
    }

    /// Forgets a key that is no character, such as an arrow: `ESC [ A`.
    fn forget_escape(&mut self) {
        let is_sequence = matches!(self.held.get(1), Some(b'[' | b'O'));
        let end = self.held.iter().skip(2).position(|byte| (0x40..0x7f).contains(byte));
        let length = match (is_sequence, end) {
            (true, Some(end)) => end + 3,
            (true, None) => self.held.len(),
            (false, _) => 1,
        };
        self.held.drain(..length);
    }

    fn held_line(&mut self) -> Option<String> {
        let end = self.held.iter().position(|byte| *byte == b'\n')?;
        let line: Vec<u8> = self.held.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line[..end]).into_owned())
    }

    async fn fill(&mut self) -> bool {
        let piece = self.pieces.get_or_insert_with(read_pieces).recv().await;
        self.held.extend(piece.iter().flatten());
        piece.is_some()
    }
}

fn read_pieces() -> mpsc::Receiver<Vec<u8>> {
    let (pieces, received) = mpsc::channel(PIECES_MAX);
    std::thread::spawn(move || {
        let mut piece = [0; PIECE_BYTES_MAX];
        loop {
            match std::io::stdin().lock().read(&mut piece) {
                Ok(read @ 1..) if pieces.blocking_send(piece[..read].to_vec()).is_ok() => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    });
    received
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What these bytes are read as, one after the other.
    async fn typed(bytes: &[u8]) -> Vec<Typed> {
        let (pieces, received) = mpsc::channel(PIECES_MAX);
        let mut keyboard = Keyboard { pieces: Some(received), held: Vec::new() };
        pieces.send(bytes.to_vec()).await.expect("it has room");
        drop(pieces);
        let mut all = Vec::new();
        while let Some(typed) = keyboard.typed().await {
            all.push(typed);
        }
        all
    }

    #[tokio::test]
    async fn one_character_is_a_key_and_what_comes_at_once_is_a_text() {
        let line = |text: &str| Typed::Line(text.to_owned());
        for (bytes, expected) in [
            (&b"a"[..], vec![Typed::Key('a')]),
            ("é".as_bytes(), vec![Typed::Key('é')]),
            (b"allow", vec![line("allow")]),
            (b"d not now\n", vec![line("d not now")]),
            (b"x\n\nY\n", vec![line("x"), line(""), line("Y")]),
            (b"\x1b[A", vec![]),
            (b"\x1b[1;5Ax", vec![Typed::Key('x')]),
            (b"\x1bOPy", vec![Typed::Key('y')]),
            (b"\x1b", vec![]),
            (b"\x04a", vec![]),
        ] {
            assert_eq!(typed(bytes).await, expected, "{bytes:?}");
        }
    }
}

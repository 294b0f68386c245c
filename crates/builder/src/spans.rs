//! Where the values of a JSON text stand.
//!
//! The texts have been parsed before, so the scanner only has to find where things are; where it cannot follow, it says
//! so by none and never panics.

use std::ops::Range;

use crate::finding::token;
use crate::limits::DEPTH_MAX;

/// Where a value stands in a text.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) span: Range<usize>,
    pub(crate) inside: Inside,
}

#[derive(Debug)]
pub(crate) enum Inside {
    Leaf,
    Items(Vec<Tree>),
    Fields(Vec<Field>),
}

#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// Where its name begins.
    pub(crate) start: usize,
    pub(crate) value: Tree,
}

impl Tree {
    /// Finds out where the values of a text stand.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let mut scanner = Scanner { text, at };
        scanner.value(0)
    }

    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        match &self.inside {
            Inside::Fields(fields) => fields.iter().find(|field| field.name == name).map(|field| &field.value),
            _ => None,
        }
    }

    pub(crate) fn items(&self) -> Option<&[Self]> {
        match &self.inside {
            Inside::Items(items) => Some(items),
            _ => None,
        }
    }

    /// Where the value of a JSON pointer begins, or its name where it has one; of a value that is not there, what it would
    /// be in.
    pub(crate) fn begin(&self, pointer: &str) -> usize {
        let (mut tree, mut at) = (self, self.span.start);
        for part in pointer.split('/').skip(1) {
            let next = match &tree.inside {
                Inside::Leaf => None,
                Inside::Items(items) => {
                    part.parse().ok().and_then(|index: usize| items.get(index)).map(|item| (item.span.start, item))
                }
                Inside::Fields(fields) => {
                    fields.iter().find(|field| token(&field.name) == part).map(|field| (field.start, &field.value))
                }
            };
            let Some((begin, value)) = next else { break };
            (at, tree) = (begin, value);
        }
        at
    }

    /// The text in one of its fields.
    pub(crate) fn text_in(&self, text: &str, name: &str) -> Option<String> {
        let span = self.field(name)?.span.clone();
        serde_json::from_str(text.get(span)?).ok()
    }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl Scanner<'_> {
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn take(&mut self, wanted: u8) -> Option<()> {
        (self.peek()? == wanted).then(|| self.at += 1)
    }

    fn value(&mut self, depth: usize) -> Option<Tree> {
        let first = self.peek().filter(|_| depth <= DEPTH_MAX)?;
        let start = self.at;
        let inside = match first {
            b'[' => Inside::Items(self.list(b']', |scanner| scanner.value(depth + 1))?),
            b'{' => Inside::Fields(self.list(b'}', |scanner| scanner.field(depth + 1))?),
            b'"' => self.string().map(|()| Inside::Leaf)?,
            _ => {
                let rest = &self.text[start..];
                self.at += rest.find(|c: char| c.is_ascii_whitespace() || ",]}".contains(c)).unwrap_or(rest.len());
                Inside::Leaf
            }
        };
        (self.at > start).then_some(Tree { span: start..self.at, inside })
    }

    fn list<T>(&mut self, end: u8, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.at += 1;
        let mut all = Vec::new();
        if self.peek()? == end {
            self.at += 1;
            return Some(all);
        }
        loop {
            all.push(one(self)?);
            if self.peek()? == end {
                self.at += 1;
                return Some(all);
            }
            self.take(b',')?;
        }
    }

    fn field(&mut self, depth: usize) -> Option<Field> {
        self.peek()?;
        let start = self.at;
        self.string()?;
        let name = serde_json::from_str(&self.text[start..self.at]).ok()?;
        self.take(b':')?;
        Some(Field { name, start, value: self.value(depth)? })
    }

    fn string(&mut self) -> Option<()> {
        self.take(b'"')?;
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at)? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Some(())
    }
}

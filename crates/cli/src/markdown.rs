//! Markdown of a model's as a terminal shows it, line by line as it comes.
//!
//! Each line stands for itself, but for blocks of code and tables: a model's words appear while it speaks, and nothing that was
//! printed is taken back. What is not known is shown as it was written.

use anstream::adapter::strip_str;
use anstyle::{AnsiColor, Style};
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use toolhost_contract::QUOTE_MARK;

use crate::fold::columns_of;
use crate::print::{BOLD, DIM, paint, shown_width, visible_line};

const CODE: Style = AnsiColor::Cyan.on_default();
const ITALIC: Style = Style::new().italic();
const FENCE_LEN_MIN: usize = 3;
/// Lines of a table that are held until its columns are known; of a longer one the rest is shown as it was written.
const TABLE_LINES_MAX: usize = 200;
/// Columns of a table that are laid out; one with more is shown as it was written.
const TABLE_COLUMNS_MAX: usize = 100;
const COLUMN_GAP: &str = "  ";

/// Where the text stands.
#[derive(Debug, Default)]
pub(crate) struct Markdown {
    /// The fence that ends the block of code.
    fence: Option<String>,
    /// The lines so far of what may become a table.
    table: Vec<String>,
}

impl Markdown {
    /// The next line, without its end and without commands for a terminal: what is shown now. The lines of a table are held
    /// until it ends.
    pub(crate) fn line(&mut self, line: &str) -> Vec<String> {
        let is_row = self.fence.is_none() && line.trim_start().starts_with('|');
        if is_row && self.table.len() < TABLE_LINES_MAX {
            self.table.push(line.to_owned());
            return Vec::new();
        }
        let mut shown = self.rest();
        shown.push(self.single(line));
        shown
    }

    /// What is held still, at the end of the text.
    pub(crate) fn rest(&mut self) -> Vec<String> {
        let lines = std::mem::take(&mut self.table);
        match aligned(&lines) {
            Some(table) => table,
            None => lines.iter().map(|line| self.single(line)).collect(),
        }
    }

    fn single(&mut self, line: &str) -> String {
        let words = line.trim_start();
        if let Some(fence) = &self.fence {
            if words.starts_with(&**fence) && words.trim_end().chars().all(|c| fence.starts_with(c)) {
                self.fence = None;
                return paint(DIM, line);
            }
            return paint(CODE, line);
        }
        if let Some(fence) = fence_of(words) {
            self.fence = Some(fence);
            return paint(DIM, line);
        }
        let blanks = &line[..line.len() - words.len()];
        format!("{blanks}{}", styled(words))
    }
}

/// The fence that a line begins a block of code with.
fn fence_of(words: &str) -> Option<String> {
    let mark = words.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let fence: String = words.chars().take_while(|c| *c == mark).collect();
    let is_closed = mark == '`' && words[fence.len()..].contains('`');
    (fence.len() >= FENCE_LEN_MIN && !is_closed).then_some(fence)
}

/// A line outside of code.
fn styled(words: &str) -> String {
    let mut shown = Shown::default();
    for event in Parser::new(words) {
        match event {
            Event::Rule => shown.text.push_str(&paint(DIM, words)),
            event => shown.add(event),
        }
    }
    // A definition of a link, for one, has no events.
    if shown.text.is_empty() { words.to_owned() } else { shown.text }
}

/// What Markdown's events come to.
#[derive(Default)]
struct Shown {
    text: String,
    styles: Vec<Style>,
    link: Option<String>,
}

impl Shown {
    fn add(&mut self, event: Event<'_>) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                self.styles.push(if level == HeadingLevel::H1 { BOLD.underline() } else { BOLD });
            }
            Event::Start(Tag::Strong) => self.styles.push(self.styles.last().copied().unwrap_or_default().bold()),
            Event::Start(Tag::Emphasis) => self.styles.push(self.styles.last().copied().unwrap_or(ITALIC).italic()),
            Event::End(TagEnd::Heading(_) | TagEnd::Strong | TagEnd::Emphasis) => {
                self.styles.pop();
            }
            Event::Start(Tag::BlockQuote(_)) => self.text.push_str(&paint(DIM, "> ")),
            Event::Start(Tag::List(first)) => {
                self.text.push_str(&first.map_or("• ".to_owned(), |n| format!("{n}. ")));
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                self.link = Some(dest_url.into_string());
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                // A link is read before it is followed.
                if let Some(url) = self.link.take().filter(|url| !self.text.ends_with(&**url)) {
                    self.text.push_str(&paint(DIM, format_args!(" ({})", visible_line(&url))));
                }
            }
            Event::Code(text) => self.words(Some(CODE), &text),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                self.words(self.styles.last().copied(), &text);
            }
            _ => {}
        }
    }

    /// `&#27;` stands for the character that begins a command of the terminal's.
    fn words(&mut self, style: Option<Style>, text: &str) {
        match style {
            Some(style) => self.text.push_str(&paint(style, visible_line(text))),
            None => self.text.push_str(&visible_line(text)),
        }
    }
}

/// A table with columns as wide as their widest cell. `None` where these lines are none, a word of them would be lost, or the
/// terminal is narrower.
fn aligned(lines: &[String]) -> Option<Vec<String>> {
    if lines.iter().any(|line| line.matches('|').count() > TABLE_COLUMNS_MAX + 1) {
        return None;
    }
    let source = lines.join("\n");
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), Shown::default());
    for event in Parser::new_ext(&source, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Table(_) | Tag::TableHead | Tag::TableRow | Tag::TableCell) => {}
            Event::End(TagEnd::TableCell) => row.push(std::mem::take(&mut cell).text),
            Event::End(TagEnd::TableHead | TagEnd::TableRow) => rows.push(std::mem::take(&mut row)),
            Event::End(TagEnd::Table) => {}
            event => cell.add(event),
        }
    }
    let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
    let told = rows.iter().flatten().map(|cell| strip_str(cell).to_string()).collect::<String>();
    if rows.is_empty() || letters(&told) != letters(&source) {
        return None;
    }
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |n: usize| rows.iter().filter_map(|row| row.get(n)).map(|cell| shown_width(cell)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let whole = widths.iter().sum::<usize>() + COLUMN_GAP.len() * columns.saturating_sub(1);
    let room = columns_of(&std::io::stdout()).map(|columns| columns.saturating_sub(QUOTE_MARK.len()));
    if room.is_some_and(|room| whole > room) {
        return None;
    }
    let padded = |(cell, width): (&String, &usize)| format!("{cell}{}", " ".repeat(width - shown_width(cell)));
    let mut shown: Vec<String> = rows
        .iter()
        .map(|row| row.iter().zip(&widths).map(padded).collect::<Vec<_>>().join(COLUMN_GAP).trim_end().to_owned())
        .collect();
    shown[0] = paint(BOLD, &shown[0]);
    shown.insert(1, paint(DIM, "─".repeat(whole)));
    Some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        let mut markdown = Markdown::default();
        let mut shown: Vec<String> = text.lines().flat_map(|line| markdown.line(line)).collect();
        shown.extend(markdown.rest());
        strip_str(&shown.join("\n")).to_string()
    }

    #[test]
    fn marks_become_styles_and_words_stay() {
        assert_eq!(
            plain("# A title\nSome **bold** and *slanted* `code`.\n- one\n  - two\n3. three\n> said"),
            "A title\nSome bold and slanted code.\n• one\n  • two\n3. three\n> said"
        );
        assert_eq!(Markdown::default().line("a **b**"), [format!("a {}", paint(BOLD, "b"))]);
        assert_eq!(plain("see [the docs](https://example.com/x)"), "see the docs (https://example.com/x)");
        assert_eq!(plain("<https://example.com>"), "https://example.com");
    }

    #[test]
    fn code_stays_as_it_is() {
        let code = "```rust\nlet a = *b; // **no** mark\n# no title\n    let c = `d`;\n```\n**after**";
        assert_eq!(plain(code), "```rust\nlet a = *b; // **no** mark\n# no title\n    let c = `d`;\n```\nafter");
        assert_eq!(plain("````\n```\n````\n*x*"), "````\n```\n````\nx");
        assert_eq!(plain("```a``` b"), "a b");
    }

    #[test]
    fn a_table_has_columns_and_what_is_none_stays_as_it_is() {
        let table = "| Name | What **it** is |\n|---|:-:|\n| `a` | one |\n| long name | [x](http://y) |";
        assert_eq!(
            plain(&format!("{table}\nend")),
            format!("Name       What it is\n{}\na          one\nlong name  x (http://y)\nend", "─".repeat(23))
        );
        for other in ["| a | b |\n| c | d |", "| a |\n|---|\n| b | lost |", "```\n| a |\n|---|\n| b |\n```"] {
            assert_eq!(plain(other), other);
        }
        let long = format!("| a |\n|---|\n{}", "| b |\n".repeat(TABLE_LINES_MAX));
        assert_eq!(plain(&long).matches('b').count(), TABLE_LINES_MAX);
    }

    #[test]
    fn nothing_that_is_written_otherwise_becomes_a_command_of_the_terminal() {
        for text in [
            "a &#27;[2J b",
            "a &#x202e; b",
            "[x](http://a/&#27;[2J)",
            "**&#27;[2J**",
            "`\u{1b}[2J`",
            "|a|b|\n|-|-|\n|&#27;[2J|c|",
        ] {
            let shown = plain(&visible_line(text));
            assert!(!shown.contains(['\u{1b}', '\u{202e}']) && shown.contains("\\u{"), "{shown:?}");
        }
    }

    #[test]
    fn no_word_is_lost() {
        for text in [
            "| a | b |",
            "<div>text</div>",
            "[a]: http://x",
            "---",
            "2 * 3 * 4",
            "snake_case_name",
            "a < b && c > d",
            "\\*x\\*",
            "- [ ] todo",
            "&copy;",
        ] {
            let shown = plain(text);
            let letters = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
            if text != "&copy;" {
                assert_eq!(letters(&shown), letters(text), "{text}");
            }
            assert!(!shown.is_empty(), "{text}");
        }
    }
}

//! Markdown of a model's as a terminal shows it, line by line as it comes.
//!
//! Each line stands for itself, but for blocks of code: a model's words appear while it speaks, and nothing that was printed
//! is taken back. What is not known is shown as it was written.

use anstyle::{AnsiColor, Style};
use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};

use crate::print::{BOLD, DIM, paint, visible_line};

const CODE: Style = AnsiColor::Cyan.on_default();
const ITALIC: Style = Style::new().italic();
const FENCE_LEN_MIN: usize = 3;

/// Where the text stands.
#[derive(Debug, Default)]
pub(crate) struct Markdown {
    /// The fence that ends the block of code.
    fence: Option<String>,
}

impl Markdown {
    /// The next line, without its end and without commands for a terminal, in its style.
    pub(crate) fn line(&mut self, line: &str) -> String {
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
    let (mut shown, mut styles, mut link) = (String::new(), Vec::new(), None);
    // `&#27;` stands for the character that begins a command of the terminal's.
    let add = |shown: &mut String, styles: &[Style], text: &str| match styles.last() {
        Some(style) => shown.push_str(&paint(*style, visible_line(text))),
        None => shown.push_str(&visible_line(text)),
    };
    for event in Parser::new(words) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                styles.push(if level == HeadingLevel::H1 { BOLD.underline() } else { BOLD });
            }
            Event::Start(Tag::Strong) => styles.push(styles.last().copied().unwrap_or_default().bold()),
            Event::Start(Tag::Emphasis) => styles.push(styles.last().copied().unwrap_or(ITALIC).italic()),
            Event::End(TagEnd::Heading(_) | TagEnd::Strong | TagEnd::Emphasis) => {
                styles.pop();
            }
            Event::Start(Tag::BlockQuote(_)) => shown.push_str(&paint(DIM, "> ")),
            Event::Start(Tag::List(first)) => shown.push_str(&first.map_or("• ".to_owned(), |n| format!("{n}. "))),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                link = Some(dest_url.into_string())
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                // A link is read before it is followed.
                if let Some(url) = link.take().filter(|url| !shown.ends_with(&**url)) {
                    shown.push_str(&paint(DIM, format_args!(" ({})", visible_line(&url))));
                }
            }
            Event::Code(text) => add(&mut shown, &[CODE], &text),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => add(&mut shown, &styles, &text),
            Event::Rule => shown.push_str(&paint(DIM, words)),
            _ => {}
        }
    }
    // A definition of a link, for one, has no events.
    if shown.is_empty() { words.to_owned() } else { shown }
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    fn plain(text: &str) -> String {
        let mut markdown = Markdown::default();
        text.lines().map(|line| strip_str(&markdown.line(line)).to_string()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn marks_become_styles_and_words_stay() {
        assert_eq!(
            plain("# A title\nSome **bold** and *slanted* `code`.\n- one\n  - two\n3. three\n> said"),
            "A title\nSome bold and slanted code.\n• one\n  • two\n3. three\n> said"
        );
        assert_eq!(Markdown::default().line("a **b**"), format!("a {}", paint(BOLD, "b")));
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
    fn nothing_that_is_written_otherwise_becomes_a_command_of_the_terminal() {
        for text in ["a &#27;[2J b", "a &#x202e; b", "[x](http://a/&#27;[2J)", "**&#27;[2J**", "`\u{1b}[2J`"] {
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

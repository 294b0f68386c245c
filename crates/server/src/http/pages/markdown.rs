//! Markdown on a page: a text that an agent or a person has written, with its headings, lists, tables and links.
//!
//! Only what is listed here becomes an element, and every element is written by the template. HTML in the source is shown as text, an image
//! as its words, and a link leads to the web or to a mail alone, with its target beside it.

use askama::Template;
use pulldown_cmark::{CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd};

use super::marks::without_marks;
use toolhost_contract::{REDACTED, Redactor};

/// The longest text that is read as Markdown, bytes.
const BYTES_MAX: usize = 128 * 1024;
/// Most pieces of a text: elements, and texts between them.
const PIECES_MAX: usize = 20_000;
/// How deep quotes, lists and the like are nested at most.
const DEPTH_MAX: usize = 32;
/// The longest target of a link, bytes; a longer one is text.
const TARGET_BYTES_MAX: usize = 2048;
/// The lowest heading that there is.
const HEADINGS: [&str; 6] = ["h1", "h2", "h3", "h4", "h5", "h6"];

/// A text as elements of a page.
#[derive(Template)]
#[template(path = "markdown.html")]
pub(super) struct Markdown {
    pieces: Vec<Piece>,
}

/// What the template writes, in this order. Names of elements come from this file alone.
enum Piece {
    Text(String),
    Open(&'static str),
    Close(&'static str),
    /// The head of a column.
    Column,
    /// A list that counts from here.
    Numbers(u64),
    /// A box that scrolls, around a table.
    Wide,
    Link(String),
}

/// What the end of an element writes.
enum Closer {
    Nothing,
    Tag(&'static str),
    Table,
    Head,
    /// A cell that began as this piece.
    Cell(usize),
    Link {
        target: String,
        is_link: bool,
    },
    Image(String),
}

struct Writer {
    pieces: Vec<Piece>,
    closers: Vec<Closer>,
    /// The level of the heading that the text stands below.
    level: usize,
    /// Levels of the headings that the text stands below, as the source has them.
    headings: Vec<usize>,
    /// Words of the link that is being written.
    words: Option<String>,
    in_head: bool,
}

impl Markdown {
    /// A text that stands below a heading of this level. `None`: it has no marks, or is longer or deeper than is read; it is shown as it is.
    pub(super) fn of(source: &str, level: usize) -> Option<Self> {
        if source.len() > BYTES_MAX {
            return None;
        }
        let mut writer = Writer {
            pieces: Vec::new(),
            closers: Vec::new(),
            level,
            headings: Vec::new(),
            words: None,
            in_head: false,
        };
        for event in Parser::new_ext(source, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
            writer.event(event);
            if writer.pieces.len() > PIECES_MAX || writer.closers.len() > DEPTH_MAX {
                return None;
            }
        }
        mask(&mut writer.pieces);
        let is_mark = |piece: &Piece| match piece {
            Piece::Text(_) => false,
            Piece::Open(tag) | Piece::Close(tag) => !matches!(*tag, "p" | "br"),
            _ => true,
        };
        writer.pieces.iter().any(is_mark).then_some(Self { pieces: writer.pieces })
    }
}

/// Masks what looks like a secret only without the marks that stand inside it.
fn mask(pieces: &mut [Piece]) {
    let (mut said, mut texts) = (String::new(), Vec::new());
    for (index, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Text(text) => {
                texts.push((said.len(), index));
                said.push_str(text);
            }
            Piece::Open(tag) | Piece::Close(tag) if matches!(*tag, "em" | "strong" | "s" | "code" | "a") => {}
            Piece::Link(_) => {}
            _ => said.push('\n'),
        }
    }
    // From the end, so that what stands before stays where it is.
    for secret in Redactor::default().spans(&said).into_iter().rev() {
        for (begins, index) in texts.iter().rev() {
            let Some(Piece::Text(text)) = pieces.get_mut(*index) else { continue };
            let (from, to) = (secret.start.max(*begins), secret.end.min(begins + text.len()));
            if from < to {
                let is_first = from == secret.start;
                text.replace_range(from - begins..to - begins, if is_first { REDACTED } else { "" });
            }
        }
    }
}

/// What a text says without its marks, on one line.
pub(super) fn plain(source: &str) -> String {
    let source = &source[..source.floor_char_boundary(BYTES_MAX)];
    let mut said = String::new();
    for event in Parser::new_ext(source, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => said.push_str(&text),
            Event::SoftBreak | Event::HardBreak | Event::Rule => said.push(' '),
            Event::End(end) if !end_is_inside_a_line(end) => said.push(' '),
            _ => {}
        }
    }
    let words: Vec<&str> = said.split_whitespace().collect();
    if words.is_empty() { source.to_owned() } else { words.join(" ") }
}

/// Whether words may go on behind it.
fn end_is_inside_a_line(end: TagEnd) -> bool {
    matches!(end, TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image)
}

impl Writer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => {
                let closer = self.begin(tag);
                self.closers.push(closer);
            }
            Event::End(_) => {
                let closer = self.closers.pop().unwrap_or(Closer::Nothing);
                self.end(closer);
            }
            Event::Code(text) => {
                self.open("code");
                self.text(&text);
                self.close("code");
            }
            // A break that a person has typed is kept: most texts are no documents.
            Event::SoftBreak | Event::HardBreak => self.open("br"),
            Event::Rule => self.open("hr"),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => self.text(&text),
            Event::TaskListMarker(_) => {}
        }
    }

    fn begin(&mut self, tag: Tag<'_>) -> Closer {
        let name = match tag {
            Tag::Paragraph => "p",
            Tag::Heading { level, .. } => self.heading(level as usize),
            Tag::BlockQuote(_) => "blockquote",
            Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented) | Tag::HtmlBlock => "pre",
            Tag::List(None) => "ul",
            Tag::List(Some(first)) => {
                self.pieces.push(Piece::Numbers(first));
                return Closer::Tag("ol");
            }
            Tag::Item => "li",
            Tag::Emphasis => "em",
            Tag::Strong => "strong",
            Tag::Strikethrough => "s",
            Tag::Table(_) => {
                self.pieces.push(Piece::Wide);
                self.open("table");
                return Closer::Table;
            }
            Tag::TableHead => {
                self.in_head = true;
                self.open("thead");
                self.open("tr");
                return Closer::Head;
            }
            Tag::TableRow => "tr",
            Tag::TableCell => {
                self.pieces.push(if self.in_head { Piece::Column } else { Piece::Open("td") });
                return Closer::Cell(self.pieces.len() - 1);
            }
            Tag::Link { link_type, dest_url, .. } => {
                let scheme = if link_type == LinkType::Email { "mailto:" } else { "" };
                return self.link(format!("{scheme}{dest_url}"));
            }
            Tag::Image { dest_url, .. } => return Closer::Image(dest_url.into_string()),
            // Nothing else is asked of the parser.
            _ => return Closer::Nothing,
        };
        self.open(name);
        Closer::Tag(name)
    }

    fn end(&mut self, closer: Closer) {
        match closer {
            Closer::Nothing => {}
            Closer::Tag(name) => self.close(name),
            Closer::Table => {
                for name in ["tbody", "table", "div"] {
                    self.close(name);
                }
            }
            Closer::Head => {
                self.in_head = false;
                self.close("tr");
                self.close("thead");
                self.open("tbody");
            }
            Closer::Cell(at) if !self.in_head => {
                debug_assert!(at < self.pieces.len(), "a cell ends behind its begin");
                self.close("td");
            }
            Closer::Cell(at) => {
                // An empty cell is no column header: a screen reader would announce a header without a name.
                let is_empty = at + 1 == self.pieces.len();
                if is_empty {
                    self.pieces[at] = Piece::Open("td");
                }
                self.close(if is_empty { "td" } else { "th" });
            }
            Closer::Link { target, is_link } => {
                let words = if is_link { self.words.take() } else { None };
                if words.as_ref().is_some_and(|words| words.trim().is_empty()) {
                    self.text(&target);
                }
                if is_link {
                    self.close("a");
                }
                let is_told = words.is_some_and(|words| {
                    words.trim().is_empty() || words == target || target.strip_prefix("mailto:") == Some(&*words)
                });
                if !is_told {
                    self.text(&format!(" ({target})"));
                }
            }
            Closer::Image(target) => self.text(&format!(" (image: {target})")),
        }
    }

    /// A link that leads where a browser may go, or the words of one that leads elsewhere.
    fn link(&mut self, target: String) -> Closer {
        // Elements of this name do not stand in each other.
        let is_link = self.words.is_none() && is_open(&target);
        if is_link {
            self.words = Some(String::new());
            self.pieces.push(Piece::Link(target.clone()));
        }
        Closer::Link { target, is_link }
    }

    /// The heading below those that the text has had: a text that begins with its third level skips none.
    fn heading(&mut self, level: usize) -> &'static str {
        while self.headings.last().is_some_and(|above| *above >= level) {
            self.headings.pop();
        }
        self.headings.push(level);
        HEADINGS[(self.level + self.headings.len()).min(HEADINGS.len()) - 1]
    }

    fn text(&mut self, text: &str) {
        let shown: Vec<String> = text.split('\n').map(without_marks).collect();
        let shown = shown.join("\n");
        if let Some(words) = &mut self.words {
            words.push_str(text);
        }
        self.pieces.push(Piece::Text(shown));
    }

    fn open(&mut self, name: &'static str) {
        self.pieces.push(Piece::Open(name));
    }

    fn close(&mut self, name: &'static str) {
        self.pieces.push(Piece::Close(name));
    }
}

/// Whether a page may lead there: to the web or to a mail, by an address that reads as what it is.
fn is_open(target: &str) -> bool {
    let lower = target.to_ascii_lowercase();
    let place = ["https://", "http://", "mailto:"].iter().find_map(|scheme| lower.strip_prefix(scheme));
    let Some(place) = place else { return false };
    // `https://here@there` leads there.
    let host = place.split(['/', '?', '#']).next().unwrap_or_default();
    let is_plain = lower.starts_with("mailto:") || !(host.is_empty() || host.contains(['@', '\\']));
    is_plain
        && target.len() <= TARGET_BYTES_MAX
        && !target.contains(char::is_whitespace)
        && without_marks(target) == target
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(source: &str) -> String {
        let whole = Markdown::of(source, 2).map(|markdown| markdown.render().unwrap_or_default());
        let whole = whole.unwrap_or_else(|| "plain".to_owned());
        let inside = whole.trim().strip_prefix("<div class=\"markdown\">").and_then(|rest| rest.strip_suffix("</div>"));
        inside.map_or(whole.clone(), str::to_owned)
    }

    #[test]
    fn what_is_on_the_list_becomes_an_element() {
        for (source, expected) in [
            (
                "# a\n\nb *c* **d** ~~e~~ `f`",
                "<h3>a</h3><p>b <em>c</em> <strong>d</strong> <s>e</s> <code>f</code></p>",
            ),
            ("- a\n- b", "<ul><li>a</li><li>b</li></ul>"),
            ("3. a\n4. b", "<ol start=\"3\"><li>a</li><li>b</li></ol>"),
            ("> a\n> b", "<blockquote><p>a<br>b</p></blockquote>"),
            ("```rust\nfn a() {}\n\nb\n```", "<pre>fn a() {}\n\nb\n</pre>"),
            ("***", "<hr>"),
            (
                "| a | |\n|---|---|\n| 1 | 2 |",
                "<div class=\"wide\" role=\"group\" aria-label=\"Table\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">a</th>\
                 <td></td></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table></div>",
            ),
        ] {
            assert_eq!(shown(source), expected, "{source}");
        }
        for source in ["", "just\nwords", "two\n\nparagraphs, 2 * 3 < 7"] {
            assert_eq!(shown(source), "plain", "{source}");
        }
    }

    #[test]
    fn headings_stand_below_those_of_the_page_and_skip_none() {
        let levels = |source: &str| {
            let page = shown(source);
            page.match_indices("<h").map(|(at, _)| page[at + 2..at + 3].to_owned()).collect::<String>()
        };
        assert_eq!(levels("# a\n## b\n### c\n# d"), "3453");
        assert_eq!(levels("### a\n###### b\n# c"), "343");
        assert_eq!(levels("# a\n## a\n### a\n#### a\n##### a\n###### a"), "345666");
    }

    #[test]
    fn a_link_names_its_target_and_leads_to_the_web_alone() {
        let to = |target: &str| format!("<a href=\"{target}\" rel=\"noopener noreferrer nofollow\">");
        for (source, expected) in [
            ("[a](https://b.c/?d=1)", format!("<p>{}a</a> (https://b.c/?d=1)</p>", to("https://b.c/?d=1"))),
            (
                "[https://good.com](https://evil.com)",
                format!("<p>{}https://good.com</a> (https://evil.com)</p>", to("https://evil.com")),
            ),
            ("<https://b.c>", format!("<p>{}https://b.c</a></p>", to("https://b.c"))),
            ("<a@b.c>", format!("<p>{}a@b.c</a></p>", to("mailto:a@b.c"))),
            ("[](https://b.c)", format!("<p>{}https://b.c</a></p>", to("https://b.c"))),
            ("**x** [a](javascript:alert%281%29)", "<p><strong>x</strong> a (javascript:alert%281%29)</p>".to_owned()),
            ("**x** [a](data:text/html,b)", "<p><strong>x</strong> a (data:text/html,b)</p>".to_owned()),
            ("**x** [a](//b.c)", "<p><strong>x</strong> a (//b.c)</p>".to_owned()),
            ("**x** [a](/asks/p0/ask-1)", "<p><strong>x</strong> a (/asks/p0/ask-1)</p>".to_owned()),
            ("**x** [a](https://b.c@d.e/)", "<p><strong>x</strong> a (https://b.c@d.e/)</p>".to_owned()),
            ("**x** ![a](https://b.c/d.png)", "<p><strong>x</strong> a (image: https://b.c/d.png)</p>".to_owned()),
            ("[![a](b.png)](https://c.d)", format!("<p>{}a (image: b.png)</a> (https://c.d)</p>", to("https://c.d"))),
        ] {
            assert_eq!(shown(source), expected, "{source}");
        }
    }

    #[test]
    fn a_secret_that_marks_have_parted_is_masked() {
        let (begin, end) = ("ghp_a1B2c3D4e5F6", "g7H8i9J0k1L2m3N4o5P6q7R8");
        for (source, expected) in [
            (format!("x {begin}**{end}** y"), "<p>x [redacted]<strong></strong> y</p>"),
            (format!("*a* ghp\\_{}", &format!("{begin}{end}")[4..]), "<p><em>a</em> [redacted]</p>"),
            (format!("`{begin}`{end} z"), "<p><code>[redacted]</code> z</p>"),
            (format!("*a* {begin}\n{end}"), &format!("<p><em>a</em> {begin}<br>{end}</p>")),
            (format!("**{begin}{end}** {begin}~~{end}~~"), "<p><strong>[redacted]</strong> [redacted]<s></s></p>"),
        ] {
            assert_eq!(shown(&source), expected, "{source}");
        }
        assert_eq!(plain(&format!("# {begin}**{end}**")), format!("{begin}{end}"));
    }

    #[test]
    fn hostile_text_stays_text() {
        for (source, expected) in [
            ("<script>alert(1)</script>", "<pre>&#60;script&#62;alert(1)&#60;/script&#62;</pre>"),
            ("*a* <img src=x onerror=b>", "<p><em>a</em> &#60;img src=x onerror=b&#62;</p>"),
            ("*a* \u{202e}b \u{1b}[2J", "<p><em>a</em> \\u{202e}b \\u{1b}[2J</p>"),
            ("*a* &#x202e;b", "<p><em>a</em> \\u{202e}b</p>"),
            ("*a* [b](https://c.d/&#x202e;e)", "<p><em>a</em> b (https://c.d/\\u{202e}e)</p>"),
            ("`<b>\"'`", "<p><code>&#60;b&#62;&#34;&#39;</code></p>"),
            (
                "[a](https://b.c/\"onclick=d)",
                "<p>\
              <a href=\"https://b.c/&#34;onclick=d\" rel=\"noopener noreferrer nofollow\">a</a> (https://b.c/&#34;onclick=d)</p>",
            ),
        ] {
            assert_eq!(shown(source), expected, "{source}");
        }
    }

    #[test]
    fn what_is_too_long_or_too_deep_is_shown_as_it_is() {
        let cells = format!("{}|\n{}|\n{}", "|a".repeat(2000), "|-".repeat(2000), "|b\n".repeat(10_000));
        for source in [
            "x".repeat(1 << 20),
            format!("# {}", "x".repeat(BYTES_MAX)),
            ">".repeat(10_000),
            format!("{} a", "> ".repeat(10_000)),
            format!("{} a", "- ".repeat(10_000)),
            format!("{}a", "*".repeat(PIECES_MAX)),
            "*a* ".repeat(PIECES_MAX),
            "[a](https://b.c) ".repeat(BYTES_MAX / 17),
            cells,
        ] {
            let is_shown = Markdown::of(&source, 1).is_some();
            assert!(!is_shown, "{}", source.chars().take(40).collect::<String>());
        }
        let deep = |depth: usize| format!("{} a", ">".repeat(depth));
        assert!(Markdown::of(&deep(DEPTH_MAX - 1), 1).is_some() && Markdown::of(&deep(DEPTH_MAX), 1).is_none());
    }
}

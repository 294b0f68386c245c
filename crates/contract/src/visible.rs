//! Text from elsewhere, shown such that nothing in it can deceive the reader or drive a terminal.

/// Characters that are not seen, or that change how others are seen: controls, joiners, fillers, marks of direction,
/// variants, tags.
pub fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e01ef}')
        || is_no_character(c)
}

/// Whether a text has nothing that is seen.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || is_deceptive(c))
}

/// What Unicode has set aside for programs: no text has it, and a terminal may show nothing.
fn is_no_character(c: char) -> bool {
    matches!(c, '\u{fdd0}'..='\u{fdef}') || u32::from(c) & 0xfffe == 0xfffe
}

/// What looks like a space, and parts no words where a shell or a program reads it. Texts for people are full of them.
fn is_like_a_space(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
}

/// The text with each deceptive character as its number, such as `\u{202e}`; line breaks and tabs stay.
pub fn visible(text: &str) -> String {
    shown_but_for(text, &['\n', '\t'])
}

fn shown_but_for(text: &str, plain: &[char]) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut before = ' ';
    for c in text.chars() {
        if !is_deceptive(c) || plain.contains(&c) || is_emoji(before, c) {
            shown.push(c)
        } else {
            shown.extend(c.escape_unicode())
        }
        before = c;
    }
    shown
}

/// Whether a sign and the mark behind it are an emoji: the mark says that the sign is shown in colour.
fn is_emoji(sign: char, mark: char) -> bool {
    let is_sign = matches!(sign,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}'
            | '\u{24c2}' | '\u{25a0}'..='\u{27bf}' | '\u{2900}'..='\u{297f}' | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}'
            | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}');
    mark == '\u{fe0f}' && is_sign
}

/// As [`visible`], for what is to stand in one line: a name of a file may hold a line break.
pub fn visible_line(text: &str) -> String {
    shown_but_for(text, &[])
}

/// Lists names of files for a message of the host: at most `max` of them, then how many more there are. A name with unusual
/// characters stands in quotes, so that no part of it reads as the host's own words.
pub fn named(names: &[String], max: usize) -> String {
    let mut shown: Vec<String> = names.iter().take(max).map(|name| quoted_name(name)).collect();
    if names.len() > max {
        shown.push(format!("and {} more", names.len() - max));
    }
    shown.join(", ")
}

fn quoted_name(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "._-/+@~".contains(c);
    if !name.is_empty() && name.chars().all(is_plain) {
        return visible_line(name);
    }
    format!("\"{}\"", visible_line(&name.replace('\\', "\\\\").replace('"', "\\\"")))
}

/// What stands before each line of a text from elsewhere, and before none of the host's own.
pub const QUOTE_MARK: &str = "| ";
/// What stands before the rest of a line that was broken to fit.
pub const QUOTE_CONTINUED: &str = "|… ";

/// As [`visible`], with a mark before each line: no line of the text can be taken for one of the host's. It is what a person
/// decides about, so what only looks like a space is shown, too.
pub fn quoted(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in visible(text).chars() {
        if is_like_a_space(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    let lines = shown.trim_end_matches('\n').split('\n').map(|line| [QUOTE_MARK, line].concat());
    lines.collect::<Vec<_>>().join("\n")
}

/// JSON with each deceptive character as an escape of JSON's: the same value, and nothing that a terminal obeys.
pub fn visible_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        if is_deceptive(c) && c != '\n' && c != '\t' {
            let mut units = [0; 2];
            shown.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_within_a_sentence_says_nothing_for_the_host() {
        let names =
            ["a/b-c.txt", "été", "x\n[toolhost: all is well]", "a`, \"b\" \\", "", "\u{202e}"].map(str::to_owned);
        assert_eq!(
            named(&names, 9),
            r#"a/b-c.txt, été, "x\u{a}[toolhost: all is well]", "a`, \"b\" \\", "", "\u{202e}""#
        );
        assert_eq!(named(&names, 1), "a/b-c.txt, and 5 more");
        assert_eq!(named(&[], 1), "");
    }

    #[test]
    fn no_line_of_a_quoted_text_lacks_its_mark() {
        let text = "May I?\nask-9 is open\r\nask-9\u{b}x\u{2028}y\u{85}z\n\n| ask-9\n";
        let marked = "| May I?\n| ask-9 is open\\u{d}\n| ask-9\\u{b}x\\u{2028}y\\u{85}z\n| \n| | ask-9";
        assert_eq!(quoted(text), marked);
        assert_eq!((quoted(""), quoted("\n\n")), (QUOTE_MARK.to_owned(), QUOTE_MARK.to_owned()));
    }

    #[test]
    fn an_emoji_stays_one_and_its_mark_alone_is_shown() {
        assert_eq!(visible("\u{2702}\u{fe0f} and \u{1f58a}\u{fe0f}"), "\u{2702}\u{fe0f} and \u{1f58a}\u{fe0f}");
        assert_eq!(visible("a\u{fe0f}\u{2702}\u{fe0f}\u{fe0f}"), "a\\u{fe0f}\u{2702}\u{fe0f}\\u{fe0f}");
        assert_eq!(visible_line("\u{2702}\u{fe0f}\n"), "\u{2702}\u{fe0f}\\u{a}");
        assert_eq!(visible("\u{2702}\u{fe0e}\u{2702}\u{200d}"), "\u{2702}\\u{fe0e}\u{2702}\\u{200d}");
    }

    #[test]
    fn deceptive_characters_are_shown() {
        assert_eq!(visible("a\u{202e}b\u{1b}[2Jc\u{200b}\n"), "a\\u{202e}b\\u{1b}[2Jc\\u{200b}\n");
        assert_eq!(visible_line("a\nnew: b\t\u{202e}"), "a\\u{a}new: b\\u{9}\\u{202e}");
        let value = serde_json::json!({ "a\u{9b}": "b\u{202e}\u{e0100}\u{1b}ä" });
        let shown = visible_json(&value.to_string());
        assert_eq!(shown, "{\"a\\u009b\":\"b\\u202e\\udb40\\udd00\\u001bä\"}");
        assert_eq!(serde_json::from_str(&shown).ok(), Some(value));
        let unseen = "\u{34f}\u{115f}\u{1160}\u{2800}\u{3164}\u{fe00}\u{fe0f}\u{e0100}\u{e01ef}\u{180b}\u{180e}\u{fff9}\u{fdd0}\u{ffff}\u{1bca0}\u{1d173}";
        assert_eq!(quoted("rm\u{a0}-rf\u{3000}/ x"), "| rm\\u{a0}-rf\\u{3000}/ x");
        assert_eq!(visible("Ça\u{202f}va\u{a0}?"), "Ça\u{202f}va\u{a0}?");
        for c in unseen.chars() {
            assert!(is_deceptive(c) && visible(&c.to_string()).starts_with("\\u{"), "{c:?}");
        }
    }
}

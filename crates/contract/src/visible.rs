//! Text from elsewhere, shown such that nothing in it can deceive the reader or drive a terminal.

/// Characters that are not seen, or that change how others are seen: controls, joiners, marks of direction, tags.
pub fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e007f}')
}

/// The text with each deceptive character as its number, such as `\u{202e}`; line breaks and tabs stay.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_deceptive(c) && c != '\n' && c != '\t' { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deceptive_characters_are_shown() {
        assert_eq!(visible("a\u{202e}b\u{1b}[2Jc\u{200b}\n"), "a\\u{202e}b\\u{1b}[2Jc\\u{200b}\n");
    }
}

//! How deep a Markdown text is nested.
//!
//! The parser's work for a line of a paragraph grows with the quotes and lists around it, so that thousands of them would
//! freeze the interface. The page has the same limit, by its parser (`markdown-it`, `maxNesting`).

/// Maximum nesting of quotes and lists that is shown as such. Writers do not reach it.
const MAX_NESTING: usize = 100;

/// Splits a text before its first line that is nested deeper than [`MAX_NESTING`]: what follows is shown as it is written.
pub(super) fn split(markdown: &str) -> (&str, &str) {
    let mut at = 0;
    for line in markdown.split_inclusive('\n') {
        if depth(line) > MAX_NESTING {
            return markdown.split_at(at);
        }
        at += line.len();
    }
    (markdown, "")
}

/// Returns an upper bound of the nesting that a line can have: of its markers, and of the blanks before its last one, since two
/// of them are enough for a list in a list.
fn depth(line: &str) -> usize {
    let mut rest = line;
    let (mut blanks, mut markers, mut depth) = (0, 0, 0);
    loop {
        let trimmed = rest.trim_start_matches([' ', '\t']);
        let skipped = rest.len() - trimmed.len();
        let tabs = rest.bytes().take(skipped).filter(|it| *it == b'\t').count();
        blanks += skipped + 3 * tabs;
        let Some(after) = after_marker(trimmed) else {
            return depth;
        };
        rest = after;
        markers += 1;
        depth = markers + blanks / 2;
    }
}

/// Returns what follows a marker of a quote or of an item of a list.
fn after_marker(text: &str) -> Option<&str> {
    if let Some(after) = text.strip_prefix('>') {
        return Some(after);
    }
    let number = text.bytes().take(10).take_while(u8::is_ascii_digit).count();
    let after = match number {
        0 => text.strip_prefix(['-', '*', '+']),
        1..10 => text.get(number..)?.strip_prefix(['.', ')']),
        _ => None,
    }?;
    after.starts_with([' ', '\t']).then_some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_of_lines() {
        for (line, expected) in [
            ("", 0),
            ("text > - text", 0),
            ("    indented code", 0),
            ("-----", 0),
            ("**bold**", 0),
            ("> text", 1),
            (">>> text", 3),
            ("> - 1. text", 4),
            ("      - text", 4),
            ("\t* text", 3),
            ("1234567890. no number", 0),
        ] {
            assert_eq!(depth(line), expected, "{line}");
        }
    }

    #[test]
    fn what_is_nested_deeper_is_not_parsed() {
        let deep = ">".repeat(MAX_NESTING + 1);
        let allowed = ">".repeat(MAX_NESTING);
        assert_eq!(split(&allowed), (allowed.as_str(), ""));
        let text = format!("a\n\n{deep}x\nb");
        assert_eq!(split(&text), ("a\n\n", &text[3..]));
    }
}

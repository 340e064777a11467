//! Rust source prepared for scanning: without strings and comments, and split into functions. Not a parser: it only finds the
//! ends of strings, characters and comments.

/// Returns the source before its tests module. A file of tests has none, because its tests are not in such a module.
pub(super) fn before_tests(text: &str) -> &str {
    let mut end = text.len();
    let mut at = 0;
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let is_mark = line.trim_end() == "#[cfg(test)]";
        if is_mark && lines.peek().is_some_and(|next| is_module(next)) {
            end = at;
            break;
        }
        at += line.len();
    }
    let code = text.get(..end).unwrap_or_default();
    let has_tests = code
        .lines()
        .any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"));
    if has_tests { "" } else { code }
}

/// Returns whether a line starts a module inside this file.
fn is_module(line: &str) -> bool {
    line.trim_end()
        .strip_suffix('{')
        .is_some_and(|line| line.split(' ').any(|word| word == "mod"))
}

/// Replaces strings, characters and comments with spaces; lines are kept.
pub(super) fn blanked(text: &str) -> String {
    masked(text, |piece| matches!(piece, Piece::Code))
}

/// The string literals of the source, and spaces in the place of everything else; lines stay where they are.
pub(super) fn strings(text: &str) -> String {
    masked(text, |piece| matches!(piece, Piece::String))
}

enum Piece {
    Code,
    Comment,
    Character,
    String,
}

/// The source with spaces in the place of the pieces that are not kept.
fn masked(text: &str, keeps: impl Fn(&Piece) -> bool) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let (piece, length) = match first {
            '/' if rest.starts_with("//") => {
                (Piece::Comment, rest.find('\n').unwrap_or(rest.len()))
            }
            '/' if rest.starts_with("/*") => (Piece::Comment, block_comment(rest)),
            '"' => (Piece::String, string(rest)),
            'r' | 'b' | 'c' if !is_word(before) => (Piece::String, raw_string(rest)),
            '\'' => (Piece::Character, character(rest)),
            _ => (Piece::Code, 0),
        };
        let (piece, length) = match length {
            0 => (Piece::Code, first.len_utf8()),
            length => (piece, length),
        };
        before = if matches!(piece, Piece::Code) {
            first
        } else {
            ' '
        };
        let (taken, tail) = rest.split_at(length);
        if keeps(&piece) {
            masked.push_str(taken)
        } else {
            masked.extend(taken.chars().map(|it| if it == '\n' { it } else { ' ' }))
        }
        rest = tail;
    }
    masked
}

fn is_word(it: char) -> bool {
    it.is_alphanumeric() || it == '_'
}

/// Returns the length of a block comment, which may be nested.
fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Returns the length of a string that starts with its quotation mark.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, it) in text.char_indices().skip(1) {
        match it {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of `r"…"`, `r#"…"#`, `br"…"` and the like; 0 if none starts.
fn raw_string(text: &str) -> usize {
    let tail = text.trim_start_matches(['b', 'c']);
    let Some(tail) = tail
        .strip_prefix('r')
        .filter(|_| text.len() - tail.len() < 2)
    else {
        return 0;
    };
    let hashes = tail.len() - tail.trim_start_matches('#').len();
    let open = text.len() - tail.len() + hashes + 1;
    if !tail.get(hashes..).is_some_and(|it| it.starts_with('"')) {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let body = text.get(open..).unwrap_or_default();
    body.find(&end)
        .map_or(text.len(), |at| open + at + end.len())
}

/// Returns the length of a character such as `'{'` or `'\u{7b}'`; 0 for a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            chars.next();
            chars
                .find(|(_, it)| *it == '\'')
                .map_or(0, |(at, _)| at + 1)
        }
        Some(_) => match chars.next() {
            Some((at, '\'')) => at + 1,
            _ => 0,
        },
        None => 0,
    }
}

/// A function with a body: its name, its first line, and its number of lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) lines: usize,
}

/// Returns all functions, including nested ones. Lines are counted from `fn` to the last brace.
pub(super) fn functions(text: &str) -> Vec<Function> {
    let code = blanked(text);
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let before = code.get(..at).unwrap_or_default();
        let rest = code.get(at + 3..).unwrap_or_default().trim_start();
        let name: String = rest.chars().take_while(|it| is_word(*it)).collect();
        if before.ends_with(is_word) || name.is_empty() {
            continue;
        }
        if let Some(body) = body(rest) {
            found.push(Function {
                name,
                line: before.matches('\n').count() + 1,
                lines: body.matches('\n').count() + 1,
            });
        }
    }
    found
}

/// Returns what follows `fn`, up to the end of the body; `None` if there is none.
fn body(text: &str) -> Option<&str> {
    let mut brackets = 0_usize;
    let mut braces = 0_usize;
    for (at, it) in text.char_indices() {
        match it {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets = brackets.saturating_sub(1),
            ';' if brackets == 0 && braces == 0 => return None,
            // In brackets it belongs to a type: `[u8; { 4 }]`.
            '{' if brackets == 0 || braces > 0 => braces += 1,
            '}' if braces > 0 => {
                braces -= 1;
                if braces == 0 {
                    return text.get(..=at);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_looks_like_code_is_blank() {
        for (text, code) in [
            ("a // fn {\nb", "a b"),
            ("a /* { /* } */ } */ b", "a b"),
            ("\"{ \\\" }\" x", "x"),
            ("r#\"fn \" {\"# x", "x"),
            ("br\"\\\" x", "x"),
            ("b\"{\" x", "b x"),
            ("'{' '\\'' '\\u{7b}' 'é' x", "x"),
            ("&'a str, b'{'", "&'a str, b"),
            ("for_r\"}\"", "for_r"),
            ("\"ä\n{\"", ""),
        ] {
            let blank = blanked(text);
            let words: Vec<&str> = blank.split_whitespace().collect();
            assert_eq!(words.join(" "), code, "{text}");
            assert_eq!(blank.chars().count(), text.chars().count(), "{text}");
            assert_eq!(blank.matches('\n').count(), text.matches('\n').count());
        }
    }

    #[test]
    fn strings_stay_with_their_lines() {
        let text = "a(\"b \\\" c\"); // \"d\"\n'\"' r#\"e\nf\"# /* \"g\" */";
        let strings = strings(text);
        let words: Vec<Vec<&str>> = strings
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        let expected = [vec!["\"b", "\\\"", "c\""], vec!["r#\"e"], vec!["f\"#"]];
        assert_eq!(words, expected);
    }

    #[test]
    fn functions_are_measured_from_their_name_to_their_last_brace() {
        let text = "trait T { fn none(&self, x: [u8; 4]) -> u8; }\n\
            fn one() { \"}\" }\n\
            pub(super) async fn two<F: Fn(u8)>(\n    f: F, // {\n) -> [u8; { 2 }] {\n    fn within() {\n    }\n    '}'\n}\n\
            fnord! {}\n";
        let found: Vec<(String, usize, usize)> = functions(text)
            .into_iter()
            .map(|it| (it.name, it.line, it.lines))
            .collect();
        let expected = [("one", 2, 1), ("two", 3, 7), ("within", 6, 2)];
        assert_eq!(
            found,
            expected.map(|(name, line, lines)| (name.to_owned(), line, lines))
        );
    }

    #[test]
    fn the_tests_are_cut_off() {
        for (text, code) in [
            ("a\n#[cfg(test)]\nmod tests {\n}\n", "a\n"),
            (
                "#[cfg(test)]\nmod tests;\nb\n",
                "#[cfg(test)]\nmod tests;\nb\n",
            ),
            (
                "#[cfg(test)]\nfn f() {\n}\nb\n",
                "#[cfg(test)]\nfn f() {\n}\nb\n",
            ),
            ("use a;\n#[test]\nfn t() {}\n", ""),
            ("#[tokio::test(flavor = \"x\")]\n", ""),
        ] {
            assert_eq!(before_tests(text), code, "{text}");
        }
    }
}

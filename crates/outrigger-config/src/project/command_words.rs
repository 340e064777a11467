//! The words of command lines, split in every way in which shells and programs split them.

use std::collections::BTreeSet;

use serde_json::Value;

/// Maximum number of words.
pub(super) const MAX_WORDS: usize = 4000;
/// Parts of the names of variables whose values determine what is run.
const LOADS: [&str; 15] = [
    "BASH_ENV",
    "COMMAND",
    "CONFIG",
    "EXEC",
    "INIT",
    "LD_",
    "NODE_PATH",
    "OPTIONS",
    "PERL5",
    "PRELOAD",
    "PYTHON",
    "RUBY",
    "SHELL",
    "STARTUP",
    "USERBASE",
];
/// Whole names of such variables.
const LOADING: [&str; 3] = ["ENV", "PATH", "ZDOTDIR"];
/// Ways to write the project's folder in a command line, besides variables.
const FOLDER_WORDS: [&str; 3] = ["$(pwd)", "`pwd`", "$(git rev-parse --show-toplevel)"];
/// Maximum number of flag letters directly before a value.
const MAX_FLAG: usize = 8;

/// Texts of a settings entry that are run.
#[derive(Debug, Default)]
pub(super) struct Texts {
    /// Command lines and their words.
    pub(super) commands: Vec<String>,
    /// The words of a command in order.
    pub(super) lines: Vec<Vec<String>>,
    /// Values of variables that determine what is run, or where it is looked for.
    pub(super) loads: Vec<String>,
    /// Values of other variables.
    pub(super) variables: Vec<String>,
}

impl Texts {
    /// For a template, the lines that a shell gets.
    pub(super) fn of(value: &Value) -> Self {
        let mut texts = Self::default();
        texts.collect(value);
        texts
    }

    fn collect(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.command(text),
            Value::Array(items) => {
                let words = items.iter().filter_map(|it| it.as_str().map(str::to_owned));
                self.lines.push(words.collect());
                items.iter().for_each(|it| self.collect(it));
            }
            Value::Object(fields) => {
                // `{"command": "node", "args": ["."]}`
                let program = fields.get("command").and_then(Value::as_str);
                let arguments = fields.get("args").and_then(Value::as_array);
                if let (Some(program), Some(arguments)) = (program, arguments) {
                    let arguments = arguments.iter().filter_map(Value::as_str);
                    let words = std::iter::once(program).chain(arguments);
                    self.lines.push(words.map(str::to_owned).collect());
                }
                for (key, it) in fields {
                    match (key.as_str(), it) {
                        ("env" | "environment", Value::Object(variables)) => {
                            for (name, value) in variables {
                                let texts = if loads(name) {
                                    &mut self.loads
                                } else {
                                    &mut self.variables
                                };
                                texts.extend(value.as_str().map(str::to_owned));
                            }
                        }
                        ("template", Value::String(text)) => {
                            shell_lines(text).iter().for_each(|it| self.command(it));
                        }
                        _ => self.collect(it),
                    }
                }
            }
            _ => {}
        }
    }

    pub(super) fn command(&mut self, text: &str) {
        self.lines.push(shell_words(text));
        self.commands.push(text.to_owned());
    }
}

fn loads(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    LOADING.contains(&name.as_str()) || LOADS.iter().any(|it| name.contains(it))
}

/// What stands in `` !`…` ``.
pub(crate) fn shell_lines(template: &str) -> Vec<String> {
    template
        .split("!`")
        .skip(1)
        .filter_map(|it| Some(it.split_once('`')?.0.to_owned()))
        .collect()
}

/// Collects the words of a text, split in every way in which shells and programs split them, and every part of them
/// that may be a path.
pub(super) fn words(written: &str, all: &mut BTreeSet<String>) {
    let mut text = written
        .strip_prefix("file://")
        .unwrap_or(written)
        .to_owned();
    for folder in FOLDER_WORDS {
        text = text.replace(folder, ".");
    }
    let text = without_variables(&text);
    let quoted = ansi_c(&text);
    let cut = shell_words(&quoted);
    let unquoted: String = text
        .chars()
        .filter(|c| !matches!(c, '"' | '\'' | '\\'))
        .collect();
    let is_end = |c: char| c.is_whitespace() || ";|&()<>`${}".contains(c);
    let inner = |c: char| is_end(c) || "=,:\"'@".contains(c);
    let pieces = unquoted
        .split(is_end)
        .chain(unquoted.split(inner))
        .chain(text.split(inner))
        .chain(text.split(['"', '\'']));
    // `${X:-./run.sh}`
    let defaults = written.split(inner);
    let pieces = pieces.chain(defaults.flat_map(|it| [it, it.trim_start_matches('-')]));
    // `sh -c"./x"`, `-I./x`: the text after a flag's letters.
    let flags = unquoted
        .split(is_end)
        .filter(|it| it.starts_with('-'))
        .flat_map(|it| (2..=MAX_FLAG).filter_map(|at| it.get(at..)));
    // `alias.x=!sub/s.sh`: split at every character that cannot be in a path. Wildcards can.
    let is_path = |c: char| c.is_alphanumeric() || "/._-+@~%#*?[]".contains(c);
    let parts = unquoted.split(|c: char| !is_path(c));
    let whole = cut.iter().map(String::as_str).chain([text.as_str()]);
    for piece in whole.chain(pieces).chain(flags).chain(parts) {
        if all.len() > MAX_WORDS {
            return;
        }
        if !piece.is_empty() && piece.len() < 4096 && !piece.contains("://") {
            all.insert(piece.to_owned());
        }
    }
}

/// Decodes `$'…'` as a shell reads it.
fn ansi_c(text: &str) -> String {
    let mut pieces = text.split("$'");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        out.push('\'');
        let mut chars = piece.chars().peekable();
        while let Some(c) = chars.next() {
            match (c, chars.peek().copied()) {
                ('\'', _) => {
                    out.push('\'');
                    out.extend(chars.by_ref());
                }
                ('\\', Some('x' | 'u' | 'U')) => {
                    let most = match chars.next() {
                        Some('x') => 2,
                        Some('u') => 4,
                        _ => 8,
                    };
                    out.extend(number(&mut chars, 16, most));
                }
                ('\\', Some('0'..='7')) => out.extend(number(&mut chars, 8, 3)),
                ('\\', Some(next)) => {
                    chars.next();
                    out.push(next);
                }
                (c, _) => out.push(c),
            }
        }
    }
    out
}

fn number(
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    radix: u32,
    most: usize,
) -> Option<char> {
    let mut value = 0;
    for _ in 0..most {
        let Some(digit) = chars.peek().and_then(|it| it.to_digit(radix)) else {
            break;
        };
        chars.next();
        value = value * radix + digit;
    }
    char::from_u32(value)
}

/// Returns the words as a shell splits them: quoted and escaped blanks do not end one.
pub(super) fn shell_words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let Some(word) = words.last_mut() else { break };
        match (c, quote) {
            ('\\', None | Some('"')) => word.extend(chars.next()),
            (c, Some(open)) if c == open => quote = None,
            (c, Some(_)) => word.push(c),
            ('"' | '\'', None) => quote = Some(c),
            (c, None) if c.is_whitespace() || ";|&()<>".contains(c) => words.push(String::new()),
            (c, None) => word.push(c),
        }
    }
    words
}

/// Replaces each `$NAME` and `${…}` by a folder: the value of a variable is unknown.
pub(super) fn without_variables(text: &str) -> String {
    let mut pieces = text.split('$');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let rest = match piece.strip_prefix('{') {
            Some(inner) => inner.split_once('}').map(|(_, rest)| rest),
            None => {
                let rest = piece.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
                (rest.len() < piece.len()).then_some(rest)
            }
        };
        match rest {
            Some(rest) => out.extend([".", rest]),
            None => out.extend(["$", piece]),
        }
    }
    out
}

/// Returns whether a word names one of these programs, in any case and version (`Python3.12`).
pub(super) fn is_one_of(word: &str, programs: &[&str]) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    let plain = match name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
        "" => name,
        plain => plain,
    };
    let mut programs = programs.iter();
    programs.any(|it| it.eq_ignore_ascii_case(name) || it.eq_ignore_ascii_case(plain))
}

/// Returns whether it is a pattern of names.
pub(super) fn has_wildcard(word: &str) -> bool {
    word.contains(['*', '?', '['])
}

/// Returns whether a name matches a shell pattern; a character class matches any one.
///
/// It goes back to the last `*` alone, so a pattern of a stranger costs no more than its length times the name's.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let parts = parts(pattern);
    let name: Vec<char> = name.chars().collect();
    let (mut part, mut at) = (0, 0);
    let mut back = None;
    loop {
        match (parts.get(part), name.get(at)) {
            (None, None) => return true,
            (Some(Part::Run), _) => {
                part += 1;
                back = Some((part, at));
                continue;
            }
            (Some(Part::Any), Some(_)) => {}
            (Some(Part::Is(wanted)), Some(found)) if wanted == found => {}
            _ => {
                let Some((run, from)) = back.filter(|(_, from)| *from < name.len()) else {
                    return false;
                };
                back = Some((run, from + 1));
                (part, at) = (run, from + 1);
                continue;
            }
        }
        part += 1;
        at += 1;
    }
}

/// A part of a shell pattern.
enum Part {
    Run,
    Any,
    Is(char),
}

fn parts(pattern: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        rest = rest.get(first.len_utf8()..).unwrap_or_default();
        parts.push(match first {
            '*' => Part::Run,
            '?' => Part::Any,
            '[' => {
                if let Some((_, after)) = rest.split_once(']') {
                    rest = after;
                }
                Part::Any
            }
            other => Part::Is(other),
        });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tried in every way, the first takes longer than the universe has, and the run of `*` overflows the stack.
    #[test]
    fn a_pattern_of_a_stranger_is_matched_at_once() {
        let name = "a".repeat(250);
        for (pattern, want) in [
            ("*a".repeat(60) + "b", false),
            ("*a".repeat(60), true),
            ("*?".repeat(250), true),
            ("*?".repeat(251), false),
            ("*".repeat(1_000_000), true),
            ("[b]*[a".to_owned(), true),
            (String::new(), false),
        ] {
            assert_eq!(matches(&pattern, &name), want, "{pattern:.20}");
        }
    }
}

//! Syntax highlighting: keywords, strings, numbers and comments of the languages that models write most.
//!
//! One lexer for all of them, without a grammar: it reads each line once and so keeps up with streaming code. A grammar
//! for each language would be more exact, and larger than the rest of the program's interface.

use super::theme::Role;

/// A family of languages.
struct Language {
    names: &'static [&'static str],
    line_comment: &'static [&'static str],
    block_comment: Option<(&'static str, &'static str)>,
    keywords: &'static [&'static str],
}

const LANGUAGES: &[Language] = &[
    Language {
        names: &["rust", "rs"],
        line_comment: &["//"],
        block_comment: Some(("/*", "*/")),
        keywords: &[
            "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum",
            "extern", "false", "fn", "for", "if", "impl", "in", "let", "loop", "match", "mod",
            "move", "mut", "pub", "ref", "return", "self", "Self", "static", "struct", "super",
            "trait", "true", "type", "unsafe", "use", "where", "while",
        ],
    },
    Language {
        names: &["js", "jsx", "ts", "tsx", "javascript", "typescript", "mjs"],
        line_comment: &["//"],
        block_comment: Some(("/*", "*/")),
        keywords: &[
            "as",
            "async",
            "await",
            "break",
            "case",
            "catch",
            "class",
            "const",
            "continue",
            "default",
            "delete",
            "do",
            "else",
            "enum",
            "export",
            "extends",
            "false",
            "finally",
            "for",
            "from",
            "function",
            "if",
            "import",
            "in",
            "instanceof",
            "interface",
            "let",
            "new",
            "null",
            "of",
            "private",
            "public",
            "readonly",
            "return",
            "static",
            "super",
            "switch",
            "this",
            "throw",
            "true",
            "try",
            "type",
            "typeof",
            "undefined",
            "var",
            "void",
            "while",
            "yield",
        ],
    },
    Language {
        names: &["python", "py"],
        line_comment: &["#"],
        block_comment: None,
        keywords: &[
            "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
            "elif", "else", "except", "False", "finally", "for", "from", "global", "if", "import",
            "in", "is", "lambda", "None", "nonlocal", "not", "or", "pass", "raise", "return",
            "self", "True", "try", "while", "with", "yield",
        ],
    },
    Language {
        names: &["sh", "bash", "shell", "zsh", "console", "fish"],
        line_comment: &["#"],
        block_comment: None,
        keywords: &[
            "case", "do", "done", "elif", "else", "esac", "export", "fi", "for", "function", "if",
            "in", "local", "return", "then", "until", "while",
        ],
    },
    Language {
        names: &[
            "c", "cpp", "c++", "h", "hpp", "java", "kotlin", "kt", "swift", "cs", "csharp", "go",
            "golang", "php", "zig", "scala", "dart",
        ],
        line_comment: &["//"],
        block_comment: Some(("/*", "*/")),
        keywords: &[
            "abstract",
            "auto",
            "bool",
            "boolean",
            "break",
            "case",
            "catch",
            "chan",
            "char",
            "class",
            "const",
            "continue",
            "default",
            "defer",
            "do",
            "double",
            "else",
            "enum",
            "extends",
            "false",
            "final",
            "float",
            "for",
            "func",
            "fun",
            "go",
            "goto",
            "if",
            "implements",
            "import",
            "int",
            "interface",
            "let",
            "long",
            "map",
            "namespace",
            "new",
            "nil",
            "null",
            "nullptr",
            "package",
            "private",
            "protected",
            "public",
            "range",
            "return",
            "select",
            "short",
            "static",
            "string",
            "struct",
            "super",
            "switch",
            "template",
            "this",
            "throw",
            "true",
            "try",
            "type",
            "typedef",
            "union",
            "unsigned",
            "using",
            "val",
            "var",
            "virtual",
            "void",
            "while",
        ],
    },
    Language {
        names: &["json", "jsonc", "json5", "toml", "yaml", "yml", "ini"],
        line_comment: &["#", "//"],
        block_comment: None,
        keywords: &["true", "false", "null"],
    },
    Language {
        names: &["sql"],
        line_comment: &["--"],
        block_comment: Some(("/*", "*/")),
        keywords: &[
            "select", "from", "where", "insert", "into", "values", "update", "set", "delete",
            "create", "table", "index", "join", "left", "inner", "on", "as", "and", "or", "not",
            "null", "order", "by", "group", "limit", "SELECT", "FROM", "WHERE", "INSERT", "INTO",
            "VALUES", "UPDATE", "SET", "DELETE", "CREATE", "TABLE", "INDEX", "JOIN", "LEFT",
            "INNER", "ON", "AS", "AND", "OR", "NOT", "NULL", "ORDER", "BY", "GROUP", "LIMIT",
        ],
    },
    Language {
        names: &["css", "scss", "html", "xml", "svg", "vue"],
        line_comment: &[],
        block_comment: Some(("/*", "*/")),
        keywords: &[],
    },
    Language {
        names: &["ruby", "rb", "lua", "elixir", "ex", "perl", "r"],
        line_comment: &["#"],
        block_comment: None,
        keywords: &[
            "and",
            "begin",
            "class",
            "def",
            "defmodule",
            "do",
            "else",
            "elsif",
            "end",
            "ensure",
            "false",
            "for",
            "function",
            "if",
            "in",
            "local",
            "module",
            "nil",
            "not",
            "or",
            "require",
            "rescue",
            "return",
            "self",
            "then",
            "true",
            "unless",
            "until",
            "when",
            "while",
            "yield",
        ],
    },
];

/// Highlights the lines of a text, in order.
pub struct Highlighter {
    language: Option<&'static Language>,
    in_comment: bool,
    /// No further string of this line ends with an apostrophe, so that it is not searched again at each.
    is_unclosed: bool,
}

impl Highlighter {
    /// Creates one for a language by its name, or by the extension of its files; unknown ones stay plain.
    #[must_use]
    pub fn new(language: &str) -> Self {
        let name = language
            .split([',', ' ', '{'])
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        let language = LANGUAGES
            .iter()
            .find(|it| it.names.contains(&name.as_str()));
        Self {
            language,
            in_comment: false,
            is_unclosed: false,
        }
    }

    /// Creates one for a file.
    #[must_use]
    pub fn of_path(path: &str) -> Self {
        let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
        Self::new(extension)
    }

    /// Highlights the next line, in pieces.
    pub fn line<'t>(&mut self, line: &'t str) -> Vec<(&'t str, Role)> {
        let Some(language) = self.language else {
            return vec![(line, Role::Text)];
        };
        self.is_unclosed = false;
        let mut pieces: Vec<(&'t str, Role)> = Vec::new();
        // Adjacent text of one role is one piece, which starts here.
        let (mut begin, mut at) = (0, 0);
        while let Some(rest) = line.get(at..).filter(|it| !it.is_empty()) {
            let (length, role) = self.token(language, rest);
            at += length.max(1);
            match pieces.last_mut() {
                Some((last, same)) if *same == role => *last = line.get(begin..at).unwrap_or(*last),
                _ => {
                    begin = at - length.max(1);
                    pieces.push((line.get(begin..at).unwrap_or_default(), role));
                }
            }
        }
        pieces
    }

    fn token(&mut self, language: &Language, rest: &str) -> (usize, Role) {
        if self.in_comment {
            let end = language
                .block_comment
                .and_then(|(_, end)| Some(rest.find(end)? + end.len()));
            self.in_comment = end.is_none();
            return (end.unwrap_or(rest.len()), Role::Comment);
        }
        if language.line_comment.iter().any(|it| rest.starts_with(it)) {
            return (rest.len(), Role::Comment);
        }
        if language
            .block_comment
            .is_some_and(|(begin, _)| rest.starts_with(begin))
        {
            self.in_comment = true;
            return (2, Role::Comment);
        }
        let first = rest.chars().next().unwrap_or(' ');
        match first {
            '"' | '`' => (quoted(rest, first), Role::Literal),
            // A lifetime and an apostrophe are not strings: a string must be closed.
            '\'' if self.is_unclosed => (1, Role::Text),
            '\'' => match quoted(rest, first) {
                length if length < rest.len() || rest.ends_with('\'') && rest.len() > 1 => {
                    (length, Role::Literal)
                }
                _ => {
                    self.is_unclosed = true;
                    (1, Role::Text)
                }
            },
            '0'..='9' => (
                word(rest, |c| c.is_ascii_alphanumeric() || c == '.' || c == '_'),
                Role::Literal,
            ),
            c if c.is_alphabetic() || c == '_' => {
                let length = word(rest, |c| c.is_alphanumeric() || c == '_');
                let known = rest
                    .get(..length)
                    .is_some_and(|it| language.keywords.contains(&it));
                (length, if known { Role::Keyword } else { Role::Text })
            }
            c => (c.len_utf8(), Role::Text),
        }
    }
}

fn word(rest: &str, belongs: impl Fn(char) -> bool) -> usize {
    rest.find(|c| !belongs(c)).unwrap_or(rest.len())
}

/// Returns the bytes of a string that starts here, including its quotation marks.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(language: &str, text: &str) -> String {
        let mut highlighter = Highlighter::new(language);
        let mut out = String::new();
        for line in text.lines() {
            for (piece, role) in highlighter.line(line) {
                match role {
                    Role::Text => out.push_str(piece),
                    role => out.push_str(&format!("<{role:?} {piece}>")),
                }
            }
            out.push('\n');
        }
        out
    }

    #[test]
    fn an_apostrophe_without_another_is_none_for_its_line_alone() {
        // Each escaped one could begin a string that does not end.
        let line = "\\'".repeat(50_000) + "x";
        assert_eq!(of("c", &line), line.clone() + "\n");
        assert_eq!(of("c", "it's\n'a'"), "it's\n<Literal 'a'>\n");
    }

    #[test]
    fn words_strings_numbers_and_comments() {
        assert_eq!(
            of("rust", "let x = \"a\\\"b\"; // c\n/* d\ne */ fn f<'a>() {}"),
            "<Keyword let> x = <Literal \"a\\\"b\">; <Comment // c>\n<Comment /* d>\n<Comment e */> <Keyword fn> f<'a>() {}\n"
        );
        assert_eq!(of("py", "x = 12 # é"), "x = <Literal 12> <Comment # é>\n");
        assert_eq!(of("brainfuck", "if + -"), "if + -\n");
        assert_eq!(of("js", "`open"), "<Literal `open>\n");
    }
}

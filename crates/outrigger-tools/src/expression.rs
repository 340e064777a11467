//! Regular expressions that a model writes.

use grep_regex::{RegexMatcher, RegexMatcherBuilder};

/// Maximum number of characters of an error, which quotes the expression.
const MAX_MESSAGE: usize = 2000;
/// Maximum length of a regular expression in bytes, and of what it is compiled to: repetitions multiply.
const MAX_EXPRESSION: usize = 64 << 10;
const MAX_COMPILED: usize = 10 << 20;
const MAX_CACHE: usize = 64 << 20;

/// Compiles a regular expression, within limits.
///
/// # Errors
/// What is wrong with it, for the user.
pub(crate) fn expression(pattern: &str) -> Result<RegexMatcher, String> {
    if pattern.len() > MAX_EXPRESSION {
        return Err(format!(
            "the regular expression is longer than {MAX_EXPRESSION} bytes; search for less at once"
        ));
    }
    let built = RegexMatcherBuilder::new()
        .line_terminator(Some(b'\n'))
        .size_limit(MAX_COMPILED)
        .dfa_size_limit(MAX_CACHE)
        .build(pattern);
    built.map_err(|error| {
        // The crate wraps the pattern in a group of its own in its message.
        let text = error
            .to_string()
            .replace(&format!("(?:{pattern})"), pattern);
        match text.char_indices().nth(MAX_MESSAGE) {
            Some((at, _)) => format!("{}... (shortened)", text.get(..at).unwrap_or("")),
            None => text,
        }
    })
}

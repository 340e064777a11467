//! Names of tools, as the model calls them.

/// A name in which everything but letters, digits, `_` and `-` has become `_` (OpenCode's rule).
#[must_use]
pub fn sanitize(text: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    // OpenCode replaces UTF-16 units, so a character beyond the first plane becomes two.
    text.chars()
        .flat_map(|c| std::iter::repeat_n(if keep(c) { c } else { '_' }, c.len_utf16()))
        .collect()
}

/// `SERVER_TOOL`, where everything but letters, digits, `_` and `-` becomes `_` (OpenCode's rule).
#[must_use]
pub fn tool_name(server: &str, tool: &str) -> String {
    format!("{}_{}", sanitize(server), sanitize(tool))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_characters_become_underscores() {
        let cases = [
            ("echo", "say", "echo_say"),
            ("my.server", "do/it now", "my_server_do_it_now"),
            ("a-b", "ä\u{1F600}", "a-b____"),
        ];
        for (server, tool, expected) in cases {
            assert_eq!(tool_name(server, tool), expected);
        }
    }
}

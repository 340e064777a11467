//! Tool names for the model.

/// Replaces everything but letters, digits, `_` and `-` with `_` (OpenCode's rule).
#[must_use]
pub fn sanitize(text: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    // OpenCode replaces UTF-16 units, so a character outside the BMP becomes two.
    text.chars()
        .flat_map(|c| std::iter::repeat_n(if keep(c) { c } else { '_' }, c.len_utf16()))
        .collect()
}

/// Returns `SERVER_TOOL`, with everything but letters, digits, `_` and `-` replaced by `_`
/// (OpenCode's rule).
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

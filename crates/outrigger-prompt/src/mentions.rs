//! Names that a text mentions with `@`.

/// Returns the names after an `@` that is neither in a word nor in a code span, without duplicates.
#[must_use]
pub fn names(text: &str) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for (at, _) in text.match_indices('@') {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '`')) {
            continue;
        }
        let rest = text.get(at + 1..).unwrap_or_default();
        let end = rest
            .find(|c: char| c.is_whitespace() || matches!(c, '`' | ','))
            .unwrap_or(rest.len());
        let name = rest.get(..end).unwrap_or_default().trim_end_matches('.');
        if !name.is_empty() && !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found() {
        for (text, want) in [
            (
                "look at @src/a.rs, @b. And @./c",
                &["src/a.rs", "b", "./c"][..],
            ),
            ("mail me@x.y or `@code`", &[]),
            ("(@a) @a @", &["a)", "a"]),
            ("@first", &["first"]),
            ("@a, @b and @.env", &["a", "b", ".env"]),
        ] {
            assert_eq!(names(text), want, "{text}");
        }
    }
}

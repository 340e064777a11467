//! Patterns of addresses and texts in expectations and rules.

/// Returns whether a text matches a pattern. `*` matches any run of characters; a pattern without it may match anywhere in the text.
#[must_use]
pub fn matches(pattern: &str, text: &str) -> bool {
    if pattern.contains('*') {
        whole(pattern, text)
    } else {
        text.contains(pattern)
    }
}

/// The same for the whole text: a pattern without `*` must equal the text.
#[must_use]
pub fn whole(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = pattern.rsplit_once('*').map(|(_, last)| last) else {
        return rest.is_empty();
    };
    let between = pattern.split('*').count().saturating_sub(2);
    for part in parts.take(between) {
        match rest.find(part).and_then(|at| rest.get(at + part.len()..)) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_by_table() {
        for (pattern, text, want) in [
            ("/done", "http://a/done?x", true),
            ("/gone", "http://a/done", false),
            ("http://a/*", "http://a/done", true),
            ("http://a/*", "xhttp://a/done", false),
            ("*done", "http://a/done?x", false),
            ("*a*e", "http://a/done", true),
            ("a*a", "a", false),
            ("*", "", true),
            ("a**b", "ab", true),
        ] {
            assert_eq!(matches(pattern, text), want, "{pattern} {text}");
        }
        assert!(whole("a", "a") && !whole("a", "ab"));
    }
}

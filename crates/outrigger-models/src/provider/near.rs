//! Suggestions for unknown names.

use strsim::levenshtein;

/// Returns at most three similar `names`, best first; empty if none is similar.
pub(crate) fn near<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let wanted = wanted.to_lowercase();
    let mut scored: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| {
            let lower = name.to_lowercase();
            let far = levenshtein(&wanted, &lower);
            let part = !wanted.is_empty() && (lower.contains(&wanted) || wanted.contains(&lower));
            let limit = wanted.chars().count().max(lower.chars().count()) * 2 / 5;
            (part || far <= limit).then_some((if part { far / 2 } else { far }, name))
        })
        .collect();
    scored.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.cmp(b.1)));
    scored
        .into_iter()
        .take(3)
        .map(|(_, name)| name.to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_near() {
        let names = [
            "claude-haiku-4-5",
            "claude-sonnet-4-5",
            "gpt-5",
            "gpt-5-mini",
        ];
        for (wanted, want) in [
            ("claude-haiku-45", vec!["claude-haiku-4-5"]),
            ("haiku", vec!["claude-haiku-4-5"]),
            ("gpt5", vec!["gpt-5"]),
            ("llama", vec![]),
        ] {
            assert_eq!(near(wanted, names), want, "{wanted}");
        }
    }
}

//! "Did you mean" suggestions.

use strsim::osa_distance;

/// Returns the candidate nearest to the written name, if it is similar enough to be a typo.
pub(crate) fn nearest<'a>(
    written: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let limit = (written.chars().count() / 3).clamp(1, 4);
    let written = written.to_lowercase();
    candidates
        .map(|candidate| (osa_distance(&written, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Returns the candidates similar to the written name, the nearest first.
pub(crate) fn nearest_few(written: &str, candidates: &[String]) -> Vec<String> {
    const FEW: usize = 3;
    let written = written.to_lowercase();
    let mut all: Vec<(usize, &String)> = candidates
        .iter()
        .map(|candidate| (osa_distance(&written, candidate), candidate))
        .collect();
    all.sort();
    all.into_iter()
        .take(FEW)
        .map(|(_, name)| name.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_near() {
        let candidates = ["runtime", "bun", "node"];
        for (written, expected) in [
            ("runtme", Some("runtime")),
            ("Runtime", Some("runtime")),
            ("nde", Some("node")),
            ("timeout", None),
            ("", None),
        ] {
            assert_eq!(
                nearest(written, candidates.into_iter()),
                expected,
                "{written}"
            );
        }
    }
}

//! "Did you mean".

/// The candidate that is nearest to what was written, if it is near enough to be a slip.
pub(crate) fn nearest<'a>(
    written: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let limit = (written.chars().count() / 3).clamp(1, 4);
    let written = written.to_lowercase();
    let measured = candidates.map(|candidate| (distance(&written, candidate), candidate));
    measured
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The candidates that are nearest to what was written, the nearest first.
pub(crate) fn nearest_few(written: &str, candidates: &[String]) -> Vec<String> {
    const FEW: usize = 3;
    let written = written.to_lowercase();
    let mut all: Vec<(usize, &String)> = candidates
        .iter()
        .map(|candidate| (distance(&written, candidate), candidate))
        .collect();
    all.sort();
    all.into_iter()
        .take(FEW)
        .map(|(_, name)| name.clone())
        .collect()
}

/// Edits from one to the other: inserted, removed, replaced, and two neighbours swapped (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut best = (row[j] + 1)
                .min(last[j + 1] + 1)
                .min(last[j] + usize::from(x != y));
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_near() {
        for (a, b, expected) in [
            ("", "", 0),
            ("a", "", 1),
            ("runtime", "runtmie", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
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

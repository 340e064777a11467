//! Versions and ranges as npm means them, for `engines.opencode`.
//!
//! This is for one question: does a version satisfy a range. It sorts no lists and resolves nothing; the installer does
//! that. Cargo's own `semver` crate reads another language (no `||`, no hyphen ranges, a comma instead of a space).

use std::cmp::Ordering;

/// A version: three numbers and the pre-release identifiers. Build metadata has no part in comparisons and is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    numbers: [u64; 3],
    pre: Vec<Identifier>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Identifier {
    Number(u64),
    Text(String),
}

impl Version {
    /// Reads `1.2.3-beta.1+build`; a leading `v` or `=` is accepted, as npm does.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let partial = Partial::parse(text.trim())?;
        let [Some(major), Some(minor), Some(patch)] = partial.numbers else {
            return None;
        };
        Some(Self {
            numbers: [major, minor, patch],
            pre: partial.pre,
        })
    }

    fn new(numbers: [u64; 3], pre: &[Identifier]) -> Self {
        Self {
            numbers,
            pre: pre.to_vec(),
        }
    }

    // The lowest version of all with these numbers, so that a range that ends before 2.0.0 leaves out 2.0.0-beta.
    fn lowest(numbers: [u64; 3]) -> Self {
        Self::new(numbers, &[Identifier::Number(0)])
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| {
            match (self.pre.is_empty(), other.pre.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => self.pre.cmp(&other.pre),
            }
        })
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Identifier {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.cmp(b),
            (Self::Number(_), Self::Text(_)) => Ordering::Less,
            (Self::Text(_), Self::Number(_)) => Ordering::Greater,
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
        }
    }
}

impl PartialOrd for Identifier {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Whether `version` satisfies the npm range. A range that cannot be read is satisfied by nothing, as in npm.
#[must_use]
pub fn satisfies(version: &str, range: &str) -> bool {
    let Some(version) = Version::parse(version) else {
        return false;
    };
    range.split("||").any(|set| {
        comparators(set).is_some_and(|set| {
            set.iter().all(|comparator| comparator.holds(&version)) && pre_allowed(&version, &set)
        })
    })
}

// A pre-release satisfies a range only when the range names a pre-release of the same three numbers.
fn pre_allowed(version: &Version, set: &[Comparator]) -> bool {
    version.pre.is_empty()
        || set.iter().any(|comparator| {
            comparator.named
                && !comparator.version.pre.is_empty()
                && comparator.version.numbers == version.numbers
        })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    Never,
}

#[derive(Clone, Debug)]
struct Comparator {
    operator: Operator,
    version: Version,
    // The version stands in the range; it is not an end that was worked out.
    named: bool,
}

impl Comparator {
    fn holds(&self, version: &Version) -> bool {
        let order = version.cmp(&self.version);
        match self.operator {
            Operator::Less => order == Ordering::Less,
            Operator::LessOrEqual => order != Ordering::Greater,
            Operator::Greater => order == Ordering::Greater,
            Operator::GreaterOrEqual => order != Ordering::Less,
            Operator::Equal => order == Ordering::Equal,
            Operator::Never => false,
        }
    }
}

// `1.2.x`, `1`, `*`: numbers behind the first missing one are missing too.
#[derive(Clone, Debug)]
struct Partial {
    numbers: [Option<u64>; 3],
    pre: Vec<Identifier>,
}

impl Partial {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim_start_matches(['v', '=', ' ']);
        let text = text.split('+').next().unwrap_or_default();
        let (core, pre) = match text.split_once('-') {
            Some((core, pre)) => (core, Some(pre)),
            None => (text, None),
        };
        let mut numbers = [None; 3];
        let mut open = true;
        let pieces: Vec<&str> = if core.is_empty() {
            Vec::new()
        } else {
            core.split('.').collect()
        };
        if pieces.len() > 3 {
            return None;
        }
        for (slot, piece) in numbers.iter_mut().zip(pieces) {
            if matches!(piece, "x" | "X" | "*") {
                open = false;
            } else {
                let number = piece.parse().ok()?;
                *slot = open.then_some(number);
            }
        }
        let pre = match pre {
            // A pre-release of an incomplete version means nothing.
            Some(pre) if numbers.iter().all(Option::is_some) => identifiers(pre)?,
            _ => Vec::new(),
        };
        Some(Self { numbers, pre })
    }

    fn floor(&self) -> [u64; 3] {
        self.numbers.map(Option::unwrap_or_default)
    }
}

fn identifiers(text: &str) -> Option<Vec<Identifier>> {
    text.split('.')
        .map(|piece| {
            if piece.is_empty() || !piece.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
                return None;
            }
            Some(match piece.parse() {
                Ok(number) => Identifier::Number(number),
                Err(_) => Identifier::Text(piece.to_owned()),
            })
        })
        .collect()
}

fn comparators(set: &str) -> Option<Vec<Comparator>> {
    let set = set.trim();
    if let Some((low, high)) = set.split_once(" - ") {
        return hyphen(&Partial::parse(low.trim())?, &Partial::parse(high.trim())?);
    }
    let mut out = Vec::new();
    let mut operator = String::new();
    for word in set.split_whitespace() {
        let digits = word
            .find(|c: char| !matches!(c, '<' | '>' | '=' | '^' | '~'))
            .unwrap_or(word.len());
        let (front, version) = word.split_at(digits);
        operator.push_str(front);
        if version.is_empty() {
            // `>= 1.2`: the version is the next word.
            continue;
        }
        expand(
            &std::mem::take(&mut operator),
            &Partial::parse(version)?,
            &mut out,
        )?;
    }
    if operator.is_empty() { Some(out) } else { None }
}

fn hyphen(low: &Partial, high: &Partial) -> Option<Vec<Comparator>> {
    let mut out = Vec::new();
    expand(">=", low, &mut out)?;
    expand("<=", high, &mut out)?;
    Some(out)
}

// Turns one written comparator into plain ones, by npm's rules for missing numbers.
fn expand(operator: &str, partial: &Partial, out: &mut Vec<Comparator>) -> Option<()> {
    let floor = partial.floor();
    let at_floor = Version::new(floor, &partial.pre);
    let mut push = |operator, version, named| {
        out.push(Comparator {
            operator,
            version,
            named,
        });
    };
    let complete = partial.numbers.iter().all(Option::is_some);
    if partial.numbers.first().is_some_and(Option::is_none) {
        if matches!(operator, "<" | ">") {
            push(Operator::Never, at_floor, false);
        }
        return Some(());
    }
    match operator {
        "^" => {
            push(Operator::GreaterOrEqual, at_floor, true);
            push(Operator::Less, Version::lowest(caret_end(partial)), false);
        }
        "~" | "~>" => {
            push(Operator::GreaterOrEqual, at_floor, true);
            push(Operator::Less, Version::lowest(tilde_end(partial)), false);
        }
        "" | "=" | "==" if complete => push(Operator::Equal, at_floor, true),
        "" | "=" | "==" => {
            push(Operator::GreaterOrEqual, at_floor, true);
            push(Operator::Less, Version::lowest(next_of(partial)), false);
        }
        ">=" => push(Operator::GreaterOrEqual, at_floor, true),
        ">" if complete => push(Operator::Greater, at_floor, true),
        ">" => push(
            Operator::GreaterOrEqual,
            Version::new(next_of(partial), &[]),
            true,
        ),
        "<" if complete => push(Operator::Less, at_floor, true),
        "<" => push(Operator::Less, Version::lowest(floor), false),
        "<=" if complete => push(Operator::LessOrEqual, at_floor, true),
        "<=" => push(Operator::Less, Version::lowest(next_of(partial)), false),
        _ => return None,
    }
    Some(())
}

// The first version behind everything that the written numbers stand for.
fn next_of(partial: &Partial) -> [u64; 3] {
    match partial.numbers {
        [Some(major), Some(minor), Some(patch)] => [major, minor, patch.saturating_add(1)],
        [Some(major), Some(minor), None] => [major, minor.saturating_add(1), 0],
        [Some(major), ..] => [major.saturating_add(1), 0, 0],
        _ => [u64::MAX; 3],
    }
}

fn tilde_end(partial: &Partial) -> [u64; 3] {
    match partial.numbers {
        [Some(major), Some(minor), _] => [major, minor.saturating_add(1), 0],
        _ => next_of(partial),
    }
}

fn caret_end(partial: &Partial) -> [u64; 3] {
    match partial.numbers {
        [Some(0), Some(0), Some(patch)] => [0, 0, patch.saturating_add(1)],
        [Some(0), Some(minor), _] => [0, minor.saturating_add(1), 0],
        [Some(major), ..] => [major.saturating_add(1), 0, 0],
        _ => [u64::MAX; 3],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_by_table() {
        for (range, yes, no) in [
            ("", "1.18.33 0.0.1", "1.0.0-beta"),
            ("*", "1.18.33", "1.0.0-beta"),
            ("1.18.33", "1.18.33", "1.18.32 1.18.33-rc.1"),
            ("=1.18.33", "1.18.33", "1.18.34"),
            ("v1.18.33", "1.18.33", "1.18.34"),
            ("1.x", "1.0.0 1.99.0", "2.0.0 0.9.0"),
            ("1.18", "1.18.0 1.18.99", "1.19.0 1.17.9"),
            (
                "^1.2.3",
                "1.2.3 1.99.0",
                "2.0.0 1.2.2 2.0.0-beta 1.3.0-beta",
            ),
            ("^0.2.3", "0.2.3 0.2.9", "0.3.0 0.2.2"),
            ("^0.0.3", "0.0.3", "0.0.4"),
            ("^0.0", "0.0.0 0.0.9", "0.1.0"),
            ("^0.x", "0.0.0 0.9.9", "1.0.0"),
            (
                "^1.2.3-beta.2",
                "1.2.3-beta.4 1.2.3 1.9.0",
                "1.2.3-beta.1 1.2.4-beta.9",
            ),
            ("~1.2.3", "1.2.3 1.2.9", "1.3.0 1.2.2"),
            ("~1", "1.0.0 1.9.9", "2.0.0"),
            (">=1.0.0", "1.0.0 2.5.1", "0.9.9"),
            (">= 1.18", "1.18.0 2.0.0", "1.17.99"),
            (">1", "2.0.0", "1.99.99"),
            (">1.18.33", "1.18.34", "1.18.33"),
            ("<2", "1.99.0 0.1.0", "2.0.0 2.0.0-beta"),
            ("<=1.18", "1.18.99", "1.19.0"),
            (">=1.0.0 <1.18.0", "1.17.9", "1.18.0"),
            (">=1.0.0 <1.18.0 || >=1.18.30", "1.5.0 1.18.33", "1.18.5"),
            ("1.2.3 - 1.4", "1.2.3 1.4.99", "1.5.0 1.2.2"),
            ("0.9 || ^1.18", "0.9.4 1.20.0", "1.17.0"),
            ("nonsense", "", "1.0.0"),
            (">=", "", "1.0.0"),
            ("1.2.3.4", "", "1.2.3"),
            (">*", "", "1.0.0"),
        ] {
            for version in yes.split_whitespace() {
                assert!(satisfies(version, range), "{version} in {range:?}");
            }
            for version in no.split_whitespace() {
                assert!(!satisfies(version, range), "{version} not in {range:?}");
            }
        }
    }

    #[test]
    fn pre_releases_are_ordered_as_semver_says() {
        let order = "1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0-rc.1 1.0.0";
        let versions: Vec<Version> = order
            .split_whitespace()
            .map(|v| Version::parse(v).unwrap())
            .collect();
        assert!(versions.is_sorted());
        assert_eq!(Version::parse("1.0.0+a"), Version::parse("v1.0.0+b"));
        assert_eq!(Version::parse("1.0"), None);
    }

    proptest! {
        #[test]
        fn a_version_satisfies_what_is_made_from_it(major in 0u64..50, minor in 0u64..50, patch in 0u64..50) {
            let v = format!("{major}.{minor}.{patch}");
            for range in [v.clone(), format!("^{v}"), format!("~{v}"), format!(">={v}"), format!("<={v}"), format!("{major}.{minor}"), format!("{v} - {v}")] {
                prop_assert!(satisfies(&v, &range), "{} in {}", v, range);
            }
            for range in [format!("<{v}"), format!(">{v}")] {
                prop_assert!(!satisfies(&v, &range), "{} not in {}", v, range);
            }
        }

        #[test]
        fn no_text_makes_it_panic(version in "\\PC{0,20}", range in "\\PC{0,30}") {
            let _ = satisfies(&version, &range);
        }
    }
}

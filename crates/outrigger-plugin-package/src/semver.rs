//! Versions and ranges with npm's semantics, for `engines.opencode` and the names of folders.
//!
//! `js-semver` parses them ([why that crate](../../../docs/decisions/0014-npm-versions.md)). Cargo's own `semver` has another
//! syntax: no `||`, no hyphen ranges, a comma instead of a space.

use js_semver::{Range, Version};

/// Returns whether `version` satisfies the npm range. An invalid range is satisfied by nothing, as in npm.
#[must_use]
pub fn satisfies(version: &str, range: &str) -> bool {
    match (Version::parse(version), Range::parse(range)) {
        (Ok(version), Ok(range)) => range.satisfies(&version),
        _ => false,
    }
}

/// Returns whether a text is one full version, not a range or a tag.
#[must_use]
pub fn is_version(text: &str) -> bool {
    Version::parse(text).is_ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    /// Results of npm's own `semver`, recorded by `npm_semver.mjs` next to the file.
    #[derive(Deserialize)]
    struct Recorded {
        versions: String,
        valid: String,
        ranges: BTreeMap<String, String>,
    }

    /// Ranges that npm rejects and `js-semver` accepts: harmless, since the meaning is plain.
    const READ_HERE_ONLY: &[&str] = &["==1.2.3"];

    #[test]
    fn every_recorded_range_is_satisfied_by_what_satisfies_it_in_npm() {
        let text = include_str!("../tests/npm_semver.json");
        let npm: Recorded = serde_json::from_str(text).unwrap();
        let among = |list: &str, one: &str| list.split(' ').any(|it| it == one);
        let mut wrong = Vec::new();
        for version in npm.versions.split(' ') {
            if is_version(version) != among(&npm.valid, version) {
                wrong.push(format!("{version} is a version: {}", is_version(version)));
            }
            for (range, satisfied) in &npm.ranges {
                let here = satisfies(version, range);
                if here != among(satisfied, version) && !READ_HERE_ONLY.contains(&range.as_str()) {
                    wrong.push(format!("{version} satisfies {range:?}: {here}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(npm.ranges.len() > 400);
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

        #[test]
        fn no_near_range_makes_it_panic(range in "[0-9xX*.^~<>=| v+a-]{0,40}") {
            let _ = satisfies("1.2.3", &range);
        }
    }
}

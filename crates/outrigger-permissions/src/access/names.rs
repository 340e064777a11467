//! Names of a path that rules are matched against.

use std::borrow::Cow;
use std::path::Path;

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use outrigger_kernel::permission::paths::Names;

/// Adds further names, and those in another Unicode form.
pub(super) fn with_forms(mut names: Names, others: Vec<String>) -> Names {
    let forms: Vec<String> = names
        .all()
        .chain(others.iter().map(String::as_str))
        .filter(|name| !name.is_ascii())
        .flat_map(|name| {
            let (nfc, nfd) = (
                ComposingNormalizerBorrowed::new_nfc(),
                DecomposingNormalizerBorrowed::new_nfd(),
            );
            [nfc.normalize(name), nfd.normalize(name)].map(Cow::into_owned)
        })
        .collect();
    for name in others.into_iter().chain(forms) {
        names = names.also(name);
    }
    names
}

/// Returns the names of a folder outside the project, which is requested as `folder/*`.
pub(super) fn folder_names(folder: &Path) -> Names {
    let shown = folder.to_string_lossy();
    with_forms(Names::new(format!("{shown}/*")), vec![shown.into_owned()])
}

/// Splits a pattern into its folders and name before the first wildcard, and the rest.
pub(super) fn literal(pattern: &str) -> (&str, &str) {
    match pattern.find(['*', '?']) {
        None => (pattern, ""),
        Some(wild) => {
            let before = pattern.get(..wild).unwrap_or_default();
            pattern.split_at(before.rfind('/').unwrap_or(0))
        }
    }
}

//! Existing paths that patterns match, and their targets.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{FilePattern, Forbid};

/// Maximum number of matching paths.
const MAX_FOUND: usize = 2_000;
/// Maximum number of folder entries read.
const MAX_SEEN: usize = 300_000;

/// Patterns that match more than the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooMany {
    /// Folder at which the search stopped.
    pub root: PathBuf,
    /// What there is too much of.
    pub what: &'static str,
    /// The limit.
    pub most: usize,
}

/// Targets of the named paths: a file is forbidden by its path there too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leads {
    /// Pattern and real path.
    places: Vec<(String, PathBuf)>,
    /// A pattern with too many matches to list: it forbids everything, since the sandbox starts nothing then.
    unclear: Option<String>,
}

impl Leads {
    /// Returns the pattern that forbids an absolute path because it points there.
    #[must_use]
    pub fn file(&self, path: &Path) -> Option<&str> {
        self.places
            .iter()
            .find(|(_, place)| path.starts_with(place))
            .map(|(pattern, _)| pattern.as_str())
            .or(self.unclear.as_deref())
    }
}

impl Forbid {
    /// Returns the current targets of the named paths. Reads the disk.
    #[must_use]
    pub fn leads(&self) -> Leads {
        let mut leads = Leads {
            places: Vec::new(),
            unclear: None,
        };
        for pattern in self.files.iter().filter(|it| it.is_absolute()) {
            match expand([pattern]) {
                Ok(found) => {
                    let real = found.iter().filter_map(|it| it.canonicalize().ok());
                    leads
                        .places
                        .extend(real.map(|real| (pattern.text.clone(), real)));
                }
                Err(_) => leads.unclear = Some(pattern.text.clone()),
            }
        }
        leads
    }
}

/// What there is of patterns that name places.
///
/// # Errors
/// [`TooMany`].
pub fn expand<'a>(
    patterns: impl IntoIterator<Item = &'a FilePattern>,
) -> Result<Vec<PathBuf>, TooMany> {
    let mut found = BTreeSet::new();
    let mut seen = 0;
    for pattern in patterns {
        below(Path::new("/"), pattern.parts(), &mut seen, &mut found)?;
    }
    Ok(found.into_iter().collect())
}

fn below(
    base: &Path,
    parts: &[String],
    seen: &mut usize,
    found: &mut BTreeSet<PathBuf>,
) -> Result<(), TooMany> {
    let too_many = |what, most| TooMany {
        root: base.to_owned(),
        what,
        most,
    };
    let Some((part, rest)) = parts.split_first() else {
        found.insert(base.to_owned());
        return if found.len() > MAX_FOUND {
            Err(too_many("paths that the policy forbids", MAX_FOUND))
        } else {
            Ok(())
        };
    };
    if !part.contains('*') {
        let next = base.join(part);
        return if next.symlink_metadata().is_ok() {
            below(&next, rest, seen, found)
        } else {
            Ok(())
        };
    }
    for entry in std::fs::read_dir(base).into_iter().flatten().flatten() {
        *seen += 1;
        if *seen > MAX_SEEN {
            return Err(too_many("files and folders", MAX_SEEN));
        }
        if FilePattern::part_fits(part, &entry.file_name().to_string_lossy()) {
            below(&entry.path(), rest, seen, found)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn leads(root: &Path, pattern: &str) -> Leads {
        let files = format!("files = [\"{}/{pattern}\"]", root.display());
        let forbid: Forbid = crate::read_toml(&files, "policy.toml").unwrap();
        forbid.leads()
    }

    #[test]
    fn what_a_forbidden_link_leads_to_is_forbidden() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("real/deep")).unwrap();
        symlink("real", root.join("keys")).unwrap();
        for (pattern, path, forbidden) in [
            ("keys/*", "real/a", true),
            ("k*/", "real/deep/a", true),
            ("keys/*", "really/a", false),
            ("gone/*", "real/a", false),
        ] {
            let found = leads(&root, pattern);
            assert_eq!(
                found.file(&root.join(path)).is_some(),
                forbidden,
                "{pattern} {path}"
            );
        }
    }

    #[test]
    fn a_pattern_that_fits_too_much_forbids_everything() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for n in 0..=MAX_FOUND {
            std::fs::write(root.join(format!("f{n}")), "").unwrap();
        }
        let found = leads(&root, "f*");
        let pattern = format!("{}/f*", root.display());
        assert_eq!(found.file(&root.join("other")), Some(pattern.as_str()));
        std::fs::remove_file(root.join("f0")).unwrap();
        assert_eq!(leads(&root, "f*").file(&root.join("other")), None);
    }
}

//! Filters of a repository (`filter.NAME.clean`): git runs them to compare files. In an untrusted folder they are disabled.

use std::collections::BTreeSet;

use super::{Vcs, VcsError};

/// Maximum number of filters; no real repository has more.
const MAX_FILTERS: usize = 200;
/// The parts of a filter, and the values that disable them.
const PARTS: [(&str, &str); 4] = [
    ("clean", ""),
    ("smudge", ""),
    ("process", ""),
    ("required", "false"),
];

impl Vcs {
    /// Returns settings that disable the filters in the repository's settings.
    pub(super) async fn filters_off(&self) -> Result<&[(String, String)], VcsError> {
        let settings = self.filters_off.get_or_try_init(|| async {
            if self.host.is_trusted() {
                return Ok(Vec::new());
            }
            let args = [
                "config",
                "--includes",
                "-z",
                "--name-only",
                "--get-regexp",
                "^filter\\.",
            ];
            let directory = &self.location().directory;
            let listed = self.run_with(directory, &args, None, &[]).await?;
            off(&String::from_utf8_lossy(&listed.stdout))
        });
        settings.await.map(Vec::as_slice)
    }
}

fn off(listed: &str) -> Result<Vec<(String, String)>, VcsError> {
    let names = listed.split('\0').filter_map(|it| it.rsplit_once('.'));
    let filters: BTreeSet<&str> = names.map(|(filter, _)| filter).collect();
    if filters.len() > MAX_FILTERS {
        let why = format!("the repository has more than {MAX_FILTERS} filters");
        return Err(VcsError::Sandbox(why));
    }
    let parts = filters.iter().flat_map(|filter| {
        PARTS.map(|(part, value)| (format!("{filter}.{part}"), value.to_owned()))
    });
    Ok(parts.collect())
}

/// Returns the environment that passes settings to git.
pub(super) fn variables(
    settings: &[(String, String)],
) -> impl Iterator<Item = (String, String)> + '_ {
    let count = ("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string());
    let count = std::iter::once(count).filter(|_| !settings.is_empty());
    let all = settings.iter().enumerate();
    count.chain(all.flat_map(|(at, (name, value))| {
        [
            (format!("GIT_CONFIG_KEY_{at}"), name.clone()),
            (format!("GIT_CONFIG_VALUE_{at}"), value.clone()),
        ]
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_every_filter_is_off() {
        let found = off("filter.a.clean\0filter.a.process\0filter.x=y.z.smudge\0").unwrap();
        assert_eq!(found.len(), 8);
        assert_eq!(found[4].0, "filter.x=y.z.clean");
        let variables: Vec<_> = variables(&found).collect();
        assert_eq!(variables.len(), 17);
        assert_eq!(variables[0].1, "8");
        assert!(off("").unwrap().is_empty());
    }
}

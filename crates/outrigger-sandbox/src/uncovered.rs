//! Files that are hidden from a process and were saved anew: most editors write another file and rename it, and what covers
//! the old one in a running process does not cover that.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::child::Killer;

/// Between two looks.
pub const EVERY: Duration = Duration::from_millis(250);

/// What a process does not see, as it was when the process was started.
#[derive(Debug, Default)]
pub struct Hidden(Vec<(PathBuf, Option<(u64, u64)>)>);

impl Hidden {
    /// These files, as they are now.
    pub fn of<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Self {
        let paths = paths.into_iter();
        Self(paths.map(|path| (path.clone(), identity(path))).collect())
    }

    /// One that is another file now.
    #[must_use]
    pub fn replaced(&self) -> Option<&Path> {
        let mut all = self.0.iter();
        let replaced = |(path, was): &&(PathBuf, Option<(u64, u64)>)| {
            let now = identity(path);
            now.is_some() && now != *was
        };
        all.find(replaced).map(|(path, _)| path.as_path())
    }

    /// Ends the process when one is.
    pub(crate) fn ends(self, process: Killer, what: String) {
        if self.0.is_empty() {
            return;
        }
        tokio::spawn(async move {
            while process.is_there() {
                tokio::time::sleep(EVERY).await;
                if let Some(path) = self.replaced() {
                    let path = path.display();
                    tracing::warn!(
                        "[sandbox] {what} is ended: {path}, which is hidden from it, was saved anew"
                    );
                    return process.kill_tree();
                }
            }
        });
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let meta = fs::metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_anew_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at(".env"), "a").unwrap();
        let hidden = Hidden::of(&[at(".env"), "/elsewhere".into()]);
        fs::write(at(".env"), "in its place").unwrap();
        assert_eq!(hidden.replaced(), None);
        fs::write(at(".env.new"), "b").unwrap();
        fs::rename(at(".env.new"), at(".env")).unwrap();
        assert_eq!(hidden.replaced(), Some(at(".env").as_path()));
        fs::remove_file(at(".env")).unwrap();
        assert_eq!(hidden.replaced(), None);
    }
}

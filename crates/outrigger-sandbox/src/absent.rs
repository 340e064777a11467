//! Files that are not there when a process starts and that it must not make: they would say what somebody else runs later
//! (`.git/commondir`). A name that is not there cannot be covered, so what comes there is put aside.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What a name that was put aside has behind it.
pub const SUFFIX: &str = ".put-aside";
/// How often one file is moved before it is removed: a process may be in the way.
const TRIES: u32 = 8;

/// Names that have to stay free while a process runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Absent(Arc<Names>);

#[derive(Debug, Default)]
struct Names {
    free: Vec<PathBuf>,
    aside: Mutex<Vec<PathBuf>>,
}

impl Absent {
    /// Those of these where nothing is now.
    pub(crate) fn of(paths: &[PathBuf]) -> Self {
        let free = paths.iter().filter(|it| !is_there(it)).cloned().collect();
        Self(Arc::new(Names {
            free,
            aside: Mutex::default(),
        }))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.free.is_empty()
    }

    /// Puts aside what has come, and answers all that was so far, by the names it came under.
    pub(crate) fn put_aside(&self) -> Vec<PathBuf> {
        let mut aside = self.0.aside.lock().unwrap_or_else(PoisonError::into_inner);
        for path in self.0.free.iter().filter(|it| is_there(it)) {
            match moved(path) {
                Some(to) => tracing::warn!(
                    "[sandbox] {} was made by a process that must not make it; it is {} now",
                    path.display(),
                    to.display()
                ),
                None if removed(path) => tracing::warn!(
                    "[sandbox] {} was made by a process that must not make it, and is removed",
                    path.display()
                ),
                None => tracing::error!(
                    "[sandbox] {} was made by a process that must not make it, and cannot be moved away: remove it",
                    path.display()
                ),
            }
            if !aside.contains(path) {
                aside.push(path.clone());
            }
        }
        aside.clone()
    }
}

/// Moves it to a name that nobody can have taken, without following a link; removes it where that fails.
fn moved(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?;
    for _ in 0..TRIES {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).ok()?;
        let mut other: OsString = name.to_owned();
        other.push(format!("{SUFFIX}-{:016x}", u64::from_ne_bytes(bytes)));
        let other = path.with_file_name(other);
        if !is_there(&other) && fs::rename(path, &other).is_ok() {
            return Some(other);
        }
    }
    None
}

fn removed(path: &Path) -> bool {
    fs::remove_file(path).is_ok() || fs::remove_dir_all(path).is_ok()
}

fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_is_put_aside_and_what_was_there_stays() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("old"), "").unwrap();
        let absent = Absent::of(&[at("old"), at("file"), at("folder"), at("link")]);
        assert!(absent.put_aside().is_empty());
        fs::write(at("file"), "1").unwrap();
        fs::create_dir_all(at("folder/deep")).unwrap();
        std::os::unix::fs::symlink("/etc", at("link")).unwrap();
        assert_eq!(absent.put_aside(), ["file", "folder", "link"].map(at));
        fs::write(at("file"), "2").unwrap();
        assert_eq!(absent.put_aside().len(), 3);
        assert!(at("old").exists() && !at("file").exists() && !at("folder").exists());
        let kept = fs::read_dir(dir.path()).unwrap().flatten();
        let kept = kept.filter(|it| {
            it.file_name()
                .to_string_lossy()
                .starts_with("file.put-aside-")
        });
        let mut texts: Vec<String> = kept
            .map(|it| fs::read_to_string(it.path()).unwrap())
            .collect();
        texts.sort();
        assert_eq!(texts, ["1", "2"]);
        assert!(Path::new("/etc").is_dir());
    }
}

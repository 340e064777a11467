//! Detects hidden files that were saved again. Most editors write another file and rename it, and the mask of the old file in a
//! running process does not cover the new one. One thread checks for all processes, as long as there are any: the files are
//! many, mostly the same for each process, and may lie on a slow disk.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use outrigger_stdx::sync::lock;

use crate::fs::absent::Absent;
use crate::fs::real_paths::RealPaths;
use crate::spawn::child::Killer;

/// Time between two checks.
pub const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// The identity of a file: its device and inode; `None` if it does not exist.
type Identity = Option<(u64, u64)>;

/// The files hidden from a process, as they were when it started.
#[derive(Debug, Default)]
pub struct Hidden(Vec<(PathBuf, Identity)>);

/// Whether the thread runs, and the processes it does not know yet.
static NEW: Mutex<(bool, Vec<Watched>)> = Mutex::new((false, Vec::new()));

/// A process that is ended when a hidden file is replaced.
struct Watched {
    hidden: Hidden,
    absent: Absent,
    process: Killer,
    what: String,
}

impl Hidden {
    /// Records these files as they are now.
    pub fn of<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Self {
        let paths = paths.into_iter();
        Self(paths.map(|path| (path.clone(), identity(path))).collect())
    }

    /// Like [`Self::of`], from lookups that the process is started with.
    pub(crate) fn looked_up(paths: &[PathBuf], real: &mut RealPaths) -> Self {
        let looked_up = |path: &PathBuf| {
            let found = real.with_meta(path).ok();
            (path.clone(), found.map(|(_, meta)| of_file(&meta)))
        };
        Self(paths.iter().map(looked_up).collect())
    }

    /// Returns a file that has been replaced.
    #[must_use]
    pub fn replaced(&self) -> Option<&Path> {
        self.replaced_in(&mut HashMap::new())
    }

    /// Like [`Self::replaced`], with the identities in `now` as a cache.
    fn replaced_in<'a>(&'a self, now: &mut HashMap<&'a Path, Identity>) -> Option<&'a Path> {
        for (path, was) in &self.0 {
            let now = *now.entry(path).or_insert_with(|| identity(path));
            if now.is_some() && now != *was {
                return Some(path);
            }
        }
        None
    }

    /// Ends the process when a mask is stale. What it creates of `absent` is moved aside.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn ends(self, absent: Absent, process: Killer, what: String) -> io::Result<()> {
        if self.0.is_empty() && absent.is_empty() {
            return Ok(());
        }
        let mut known = lock(&NEW);
        let (runs, new) = &mut *known;
        if !*runs {
            thread::Builder::new()
                .name("uncovered".into())
                .spawn(watch)?;
            *runs = true;
        }
        new.push(Watched {
            hidden: self,
            absent,
            process,
            what,
        });
        Ok(())
    }
}

/// Checks until no process is left.
fn watch() {
    let mut all = Vec::new();
    loop {
        thread::sleep(CHECK_INTERVAL);
        {
            let mut known = lock(&NEW);
            let (runs, new) = &mut *known;
            all.append(new);
            all.retain(|it| it.process.is_there());
            if all.is_empty() {
                *runs = false;
                return;
            }
        }
        // Hidden files come first; the rest is less urgent.
        end_uncovered(&mut all);
        for watched in &all {
            watched.absent.beat();
            watched.absent.move_aside();
            watched.absent.clear(false);
        }
    }
}

/// Ends the processes from which a replaced file should be hidden. Each file is checked once.
fn end_uncovered(all: &mut Vec<Watched>) {
    let mut now = HashMap::new();
    let uncovered: Vec<Option<PathBuf>> = all
        .iter()
        .map(|it| it.hidden.replaced_in(&mut now).map(Path::to_path_buf))
        .collect();
    let mut uncovered = uncovered.into_iter();
    all.retain(|it| {
        let Some(path) = uncovered.next().flatten() else {
            return true;
        };
        tracing::warn!(
            "[sandbox] {} is ended: {}, which is hidden from it, was saved anew",
            it.what,
            path.display()
        );
        it.process.kill_tree();
        false
    });
}

fn identity(path: &Path) -> Identity {
    fs::metadata(path).ok().as_ref().map(of_file)
}

fn of_file(meta: &fs::Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
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

    #[test]
    fn what_was_looked_at_for_one_is_not_looked_at_for_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".env");
        fs::write(&path, "a").unwrap();
        let [one, other] = [(); 2].map(|()| Hidden::of([&path]));
        let mut now = HashMap::new();
        assert_eq!(one.replaced_in(&mut now), None);
        fs::write(dir.path().join("new"), "b").unwrap();
        fs::rename(dir.path().join("new"), &path).unwrap();
        assert_eq!(other.replaced_in(&mut now), None);
        assert_eq!(other.replaced_in(&mut HashMap::new()), Some(path.as_path()));
    }
}

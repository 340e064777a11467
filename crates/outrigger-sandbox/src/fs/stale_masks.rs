//! Files that are hidden from a process and were saved again: most editors write another file and rename it, and what covers
//! the old one in a running process does not cover that. One thread looks for all processes, as long as there are any: they are
//! many files, mostly the same for each, and may lie on a slow disk.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use outrigger_files::sync::lock;

use crate::fs::absent::Absent;
use crate::spawn::child::Killer;

/// Between two looks.
pub const EVERY: Duration = Duration::from_millis(250);

/// Which file it is: its device and number; `None` where there is none.
type Identity = Option<(u64, u64)>;

/// What a process does not see, as it was when the process was started.
#[derive(Debug, Default)]
pub struct Hidden(Vec<(PathBuf, Identity)>);

/// Whether the thread runs, and the processes that it does not know of yet.
static NEW: Mutex<(bool, Vec<Watched>)> = Mutex::new((false, Vec::new()));

/// A process that ends when something is saved again.
struct Watched {
    hidden: Hidden,
    absent: Absent,
    process: Killer,
    what: String,
}

impl Hidden {
    /// These files, as they are now.
    pub fn of<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Self {
        let paths = paths.into_iter();
        Self(paths.map(|path| (path.clone(), identity(path))).collect())
    }

    /// One that is another file now.
    #[must_use]
    pub fn replaced(&self) -> Option<&Path> {
        self.replaced_in(&mut HashMap::new())
    }

    /// The same, where what was looked at stands in `now`.
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
    /// There is no thread to look.
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

/// Looks until no process is left.
fn watch() {
    let mut all = Vec::new();
    loop {
        thread::sleep(EVERY);
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
        // What must not be seen goes first: the rest may take its time.
        end_uncovered(&mut all);
        for watched in &all {
            watched.absent.beat();
            watched.absent.move_aside();
            watched.absent.clear(false);
        }
    }
}

/// Ends the processes from which something is hidden that is another file now. Each file is looked at once.
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

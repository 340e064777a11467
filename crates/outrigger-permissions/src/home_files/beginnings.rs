//! Entries of the [lists](super::lists) with `*` at the end of a name: they mean names that are there and names that are not there
//! yet.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_sandbox::Listings;
use outrigger_sandbox::absent::{ClearFn, FolderEntry, SUFFIX};
use outrigger_workspace::Folders;

use super::{places, startup_entries};

/// All names in a folder that begin in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// The folder.
    pub folder: PathBuf,
    start: String,
}

impl Beginning {
    /// Returns what an entry means; `None` if it means one name.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy();
        Some(Self {
            folder: path.parent()?.to_path_buf(),
            start: name.strip_suffix('*')?.to_owned(),
        })
    }

    /// Returns those of another path of the folder.
    #[must_use]
    pub fn at(self, folder: PathBuf) -> Self {
        Self { folder, ..self }
    }

    /// Returns the entry of the folder that a path is, or is below, if its name begins so.
    #[must_use]
    pub fn holds<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        let entry = path
            .ancestors()
            .find(|it| it.parent() == Some(&self.folder))?;
        let name = entry.file_name()?.to_string_lossy();
        name.starts_with(&self.start).then_some(entry)
    }

    /// Returns what is there. Reads the disk.
    pub(super) fn there(&self, listings: &mut Listings) -> Vec<PathBuf> {
        let begins = |name: &OsStr| name.to_string_lossy().starts_with(&self.start);
        if let Some(names) = listings.names(&self.folder) {
            let names = names.iter().filter(|it| begins(it));
            return names.map(|name| self.folder.join(name)).collect();
        }
        std::fs::read_dir(&self.folder)
            .into_iter()
            .flatten()
            .flatten()
            .filter(|it| begins(&it.file_name()))
            .map(|it| it.path())
            .collect()
    }
}

/// Returns those of the start-up files.
pub fn of_startup(folders: &Folders) -> impl Iterator<Item = Beginning> {
    startup_entries()
        .filter(|it| it.ends_with('*'))
        .flat_map(|entry| places(folders, entry))
        .filter_map(|path| Beginning::of(&path))
}

/// Returns what keeps the names free that are not there now. `all`: with the writable folder that each is in; without links. Reads the
/// disk.
pub fn keep_free(all: Vec<(PathBuf, Beginning)>, listings: &mut Listings) -> ClearFn {
    let there = all.iter().flat_map(|(_, it)| it.there(listings));
    let there: BTreeSet<PathBuf> = there.collect();
    let is_new = move |it: &PathBuf| {
        let is_aside = it.to_string_lossy().contains(SUFFIX);
        !is_aside && !there.contains(it)
    };
    Arc::new(move |_| {
        let listings = &mut Listings::default();
        let named = |(root, all): &(PathBuf, Beginning)| {
            all.there(listings)
                .into_iter()
                .filter(&is_new)
                .filter_map(|path| move_aside(root, &path))
                .collect::<Vec<_>>()
        };
        all.iter().flat_map(named).collect()
    })
}

/// Renames what came under such a name, or a link on the way to it, and says so.
fn move_aside(root: &Path, path: &Path) -> Option<String> {
    let to = FolderEntry::of(root, path)?.move_aside()?;
    Some(format!(
        "{} would be executed later, so it was renamed to {}.",
        path.display(),
        to.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_not_there_yet_are_meant() {
        let cache = Path::new("/h/.cache");
        let of = |name: &str| Beginning::of(&cache.join(name));
        assert_eq!(of("zsh"), None);
        let prompts = of("p10k-*").unwrap();
        let holds = |path: &str| prompts.holds(Path::new(path)).map(Path::to_path_buf);
        let entry = cache.join("p10k-a");
        assert_eq!(holds("/h/.cache/p10k-a"), Some(entry.clone()));
        assert_eq!(holds("/h/.cache/p10k-a/b/c"), Some(entry));
        assert_eq!(holds("/h/.cache/p10"), None);
        assert_eq!(holds("/h/.cache/x/p10k-a"), None);
    }

    #[test]
    fn what_comes_under_such_a_name_is_moved_aside() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let cache = root.join(".cache");
        std::fs::create_dir(&cache).unwrap();
        std::fs::write(cache.join("p10k-mine"), "").unwrap();
        let prompts = Beginning::of(&cache.join("p10k-*")).unwrap();
        let clear = keep_free(vec![(root.clone(), prompts)], &mut Listings::default());
        assert!(clear(false).is_empty());
        std::fs::write(cache.join("p10k-new"), "").unwrap();
        let said = clear(false).concat();
        assert!(said.contains("p10k-new would be executed later"), "{said}");
        assert!(clear(true).is_empty());
        assert!(cache.join("p10k-mine").exists() && !cache.join("p10k-new").exists());
        // The folder itself is replaced.
        std::fs::rename(&cache, root.join("moved")).unwrap();
        std::os::unix::fs::symlink("moved", &cache).unwrap();
        std::fs::write(cache.join("p10k-new"), "").unwrap();
        assert_eq!(clear(true).len(), 1);
        assert!(!cache.exists() && root.join("moved/p10k-mine").exists());
    }
}

//! The cache folder of commands (`XDG_CACHE_HOME`): one of their own, next to our cache folder, with links to the user's folders that
//! [the table](super::cache_table) lets them see. The user's programs do not read what a command keeps there under another name.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};

use outrigger_sandbox::Listings;
use outrigger_workspace::Folders;

use super::cache_table::seen_by_commands;

/// Its name in the user's cache folder.
const NAME: &str = "outrigger-commands";

/// Returns the cache folder of commands.
#[must_use]
pub fn folder(folders: &Folders) -> PathBuf {
    folders.cache.with_file_name(NAME)
}

/// Creates the cache folder of commands with its links. `more`: paths that the user lets commands change. The user's cache folder is
/// not one that commands may change, or they could have us write elsewhere. Changes the disk: blocking.
///
/// # Errors
/// The system's, also if something else has its name.
pub fn prepare(
    folders: &Folders,
    more: &[PathBuf],
    listings: &mut Listings,
) -> io::Result<PathBuf> {
    let folder = folder(folders);
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)?;
    if !fs::symlink_metadata(&folder)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let users = folders.cache.parent().unwrap_or(Path::new("/"));
    // Its own names are about to change.
    let mut own = Listings::default();
    for name in linked(users, more) {
        let link = folder.join(name);
        if listings.exists(&users.join(name)) {
            match symlink(Path::new("..").join(name), &link) {
                // Also where the user had none and a command has made its own.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                done => done?,
            }
        } else if own.may_exist(&link) && link.is_symlink() {
            // It would keep a program from making the folder.
            fs::remove_file(&link)?;
        }
    }
    Ok(folder)
}

/// Returns the names in the user's cache folder that commands see.
fn linked<'a>(users: &Path, more: &'a [PathBuf]) -> BTreeSet<&'a OsStr> {
    let listed = seen_by_commands().filter_map(|it| it.strip_prefix(".cache/").map(Path::new));
    let more = more.iter().filter_map(|it| it.strip_prefix(users).ok());
    listed
        .chain(more)
        .filter_map(|it| it.iter().next())
        .filter(|it| *it != NAME)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_see_the_caches_of_builds_and_keep_others_to_themselves() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let folders = Folders {
            home: root.path().to_path_buf(),
            config: at(".config"),
            data: at(".local/share/outrigger"),
            cache: at(".cache/outrigger"),
        };
        for name in ["pip/http", "pypoetry/virtualenvs", "parso", "mine/x", "zsh"] {
            fs::create_dir_all(at(".cache").join(name)).unwrap();
        }
        let more = [at(".cache/mine/x"), at("elsewhere")];
        let own = prepare(&folders, &more, &mut Listings::default()).unwrap();
        assert_eq!(own, at(".cache/outrigger-commands"));
        let names = || -> BTreeSet<String> {
            fs::read_dir(&own)
                .unwrap()
                .flatten()
                .map(|it| it.file_name().into_string().unwrap())
                .collect()
        };
        let expected = ["mine", "pip", "pypoetry"].map(str::to_owned);
        assert_eq!(names(), expected.into());
        assert!(own.join("pip/http").is_dir());
        // One that a command has made stays, and no link leads nowhere.
        fs::create_dir(own.join("yarn")).unwrap();
        fs::create_dir(at(".cache/yarn")).unwrap();
        fs::remove_dir_all(at(".cache/pip")).unwrap();
        prepare(&folders, &more, &mut Listings::default()).unwrap();
        assert!(!own.join("yarn").is_symlink());
        assert!(!own.join("pip").is_symlink());
        // A link in its place is not followed.
        fs::remove_dir_all(&own).unwrap();
        symlink(at("elsewhere"), &own).unwrap();
        fs::create_dir(at("elsewhere")).unwrap();
        assert!(prepare(&folders, &[], &mut Listings::default()).is_err());
        assert_eq!(fs::read_dir(at("elsewhere")).unwrap().count(), 0);
    }
}

//! Places of ours that exist before any sandboxed process does: what does not exist cannot be masked, and a process
//! that created it would decide what we read at the next start.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use outrigger_sandbox::folders;
use outrigger_workspace::Folders;

/// What processes may see in our data folder; the list of [`crate::sandbox_policy`] says what of it they may not write to.
const MADE: [&str; 6] = [
    crate::sandbox_policy::OUTPUTS,
    "plugin-homes",
    "plugin-files",
    "plugin-scripts",
    SERVER_FOLDERS,
    "tmux",
];
/// Below it, empty folders that servers of the user's start in.
pub const SERVER_FOLDERS: &str = "server-folders";
/// Of the machine's policy. Made where this user is root, whose processes could make it.
pub const POLICY: &str = "/etc/outrigger";

/// OpenCode's list of models, which says where keys are sent, in the folder of all caches.
pub const MODELS: &str = "opencode/models.json";

/// Makes them. What cannot be made now cannot be made by a process of this user, either.
pub fn make(folders: &Folders) {
    folder(&folders.config.join("outrigger"), 0o700);
    for name in MADE {
        folder(&folders.data.join(name), 0o700);
    }
    if folders::is_root() {
        // Every user of the machine reads what stands there.
        folder(Path::new(POLICY), 0o755);
    }
    folder(&folders.cache, 0o700);
    // Without it the first command of this session would see those of sessions that begin later.
    if let Err(error) = outrigger_sandbox::private_tmp::folder() {
        tracing::warn!("[sandbox] there is no folder for temporary files: {error}");
    }
    // OpenCode's list of keys and its list of models, which are read here, too: empty ones say what none say. It takes no
    // models from a file that is no JSON, and makes its own.
    let of_opencode = [
        (folders.data.parent(), "opencode/auth.json", "{}\n"),
        (folders.cache.parent(), MODELS, ""),
    ];
    for (base, name, text) in of_opencode {
        let Some(path) = base.map(|base| base.join(name)) else {
            continue;
        };
        if let Some(parent) = path.parent() {
            folder(parent, 0o755);
        }
        empty_list(&path, |file| file.write_all(text.as_bytes()));
    }
}

/// One that cannot be written whole is taken away again: OpenCode could not read it.
fn empty_list(path: &Path, write: impl FnOnce(&mut fs::File) -> io::Result<()>) {
    let mut options = fs::OpenOptions::new();
    let made = options.write(true).create_new(true).mode(0o600).open(path);
    let Ok(mut file) = made else {
        return;
    };
    if let Err(error) = write(&mut file) {
        tracing::warn!("{} is not made: {error}", path.display());
        let _ = fs::remove_file(path);
    }
}

fn folder(path: &Path, mode: u32) {
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path);
    if let Err(error) = made {
        tracing::debug!("{} is not made: {error}", path.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_there_and_nothing_of_the_users_is_changed() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let folders = Folders {
            home: at("home"),
            config: at("config"),
            data: at("data/outrigger"),
            cache: at("cache/outrigger"),
        };
        make(&folders);
        assert!(at("config/outrigger").is_dir() && at("data/outrigger/tmux").is_dir());
        assert!(at("cache/outrigger").is_dir());
        let lists = ["data/opencode/auth.json", "cache/opencode/models.json"].map(at);
        let texts = || lists.each_ref().map(|it| fs::read_to_string(it).unwrap());
        assert_eq!(texts(), ["{}\n", ""]);
        for list in &lists {
            fs::write(list, "theirs").unwrap();
        }
        make(&folders);
        assert_eq!(texts(), ["theirs", "theirs"]);
    }

    #[test]
    fn a_list_that_cannot_be_written_is_not_left_empty() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("auth.json");
        empty_list(&path, |_| Err(io::ErrorKind::StorageFull.into()));
        assert!(!path.exists());
        empty_list(&path, |file| file.write_all(b"{}\n"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n");
    }
}

//! Paths that are created before any sandboxed process starts: a missing path cannot be masked, and a process that created
//! it would control what Outrigger reads at the next start.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use outrigger_sandbox::folders;
use outrigger_workspace::Folders;

/// Paths in the data folder that processes may see; the list in [`crate::sandbox_policy`] states which of them are
/// read-only.
const MADE: [&str; 6] = [
    crate::sandbox_policy::OUTPUTS,
    "plugin-homes",
    "plugin-files",
    "plugin-scripts",
    SERVER_FOLDERS,
    "tmux",
];
/// Empty folders below it in which user servers start.
pub const SERVER_FOLDERS: &str = "server-folders";
/// Folder of the machine policy. Created if this user is root, whose processes could create it.
pub const POLICY: &str = "/etc/outrigger";

/// OpenCode's list of models, which determines where keys are sent, in the cache folder.
pub const MODELS: &str = "opencode/models.json";

/// Creates them. What cannot be created now cannot be created by a process of this user either.
pub fn make(folders: &Folders) {
    folder(&folders.config.join("outrigger"), 0o700);
    for name in MADE {
        folder(&folders.data.join(name), 0o700);
    }
    if folders::is_root() {
        // Every user of the machine may read its content.
        folder(Path::new(POLICY), 0o755);
    }
    folder(&folders.cache, 0o700);
    // Without it the first command of this session would see those of later sessions.
    if let Err(error) = outrigger_sandbox::private_tmp::folder() {
        tracing::warn!("[sandbox] there is no folder for temporary files: {error}");
    }
    // OpenCode's lists of keys and models, which are read here too: an empty one equals a missing one. OpenCode ignores a
    // model file that is not JSON, and creates its own.
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

/// Creates an empty list; an incomplete one is removed, since OpenCode could not read it.
fn empty_list(path: &Path, write: impl FnOnce(&mut fs::File) -> io::Result<()>) {
    let mut options = fs::OpenOptions::new();
    let made = options.write(true).create_new(true).mode(0o600).open(path);
    let Ok(mut file) = made else {
        return;
    };
    if let Err(error) = write(&mut file) {
        tracing::warn!("cannot create {}: {error}", path.display());
        let _ = fs::remove_file(path);
    }
}

fn folder(path: &Path, mode: u32) {
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path);
    if let Err(error) = made {
        tracing::debug!("cannot create {}: {error}", path.display());
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

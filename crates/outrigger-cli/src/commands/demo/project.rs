//! The demo project, and the folders around it.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::failure::Failure;

/// The initial file with the bug.
pub(super) const SOURCE: &str = include_str!("../../../demo/stats.js");
const SOURCE_NAME: &str = "stats.js";

/// The project's files. An empty `.git` ends every search for settings in the folders above; git is not needed.
const FILES: [(&str, &str); 6] = [
    (SOURCE_NAME, SOURCE),
    ("test.js", include_str!("../../../demo/test.js")),
    ("package.json", include_str!("../../../demo/package.json")),
    ("opencode.json", include_str!("../../../demo/opencode.json")),
    (
        ".opencode/plugin/demo.js",
        include_str!("../../../demo/plugin.js"),
    ),
    (".git/HEAD", "ref: refs/heads/main\n"),
];
const GIT_FOLDERS: [&str; 2] = [".git/objects", ".git/refs"];

/// The interesting files.
pub(super) const LISTING: &str = "stats.js  test.js  opencode.json  .opencode/plugin/demo.js";

/// Variables that name folders, with the folder next to the project that each is set to.
pub(super) const FOLDERS: [(&str, &str); 6] = [
    ("HOME", "state/home"),
    ("XDG_CONFIG_HOME", "state/config"),
    ("XDG_DATA_HOME", "state/data"),
    ("XDG_CACHE_HOME", "state/cache"),
    ("XDG_STATE_HOME", "state/state"),
    // The administrator's settings are for work, not for a demo.
    ("OPENCODE_TEST_MANAGED_CONFIG_DIR", "state/managed"),
];

/// The path of the recorded answers in `opencode.json`, relative to the project: outside, where no search finds them.
const ANSWERS: &str = "answers.jsonl";
const WITH_PLUGIN: &str = include_str!("../../../demo/with-plugin.jsonl");
const WITHOUT_PLUGIN: &str = include_str!("../../../demo/without-plugin.jsonl");

/// The root folder of the demo. A temporary one is removed with this value.
pub(super) struct Ground {
    root: PathBuf,
    temporary: bool,
}

impl Ground {
    /// Creates the folder with the project in it: `keep`, or a temporary one.
    pub(super) fn prepare(keep: Option<&Path>) -> Result<Self, Failure> {
        let ground = match keep {
            Some(path) => Self {
                root: kept(path)?,
                temporary: false,
            },
            None => Self {
                root: temporary()?,
                temporary: true,
            },
        };
        for (name, text) in FILES {
            ground.write(&format!("project/{name}"), text)?;
        }
        for name in GIT_FOLDERS
            .map(|name| format!("project/{name}"))
            .iter()
            .map(String::as_str)
            .chain(FOLDERS.map(|(_, folder)| folder))
        {
            let path = ground.root.join(name);
            fs::create_dir_all(&path).map_err(|error| cannot_write(&path, &error))?;
        }
        ground.grant()?;
        Ok(ground)
    }

    /// Grants the demo's plugin the right to replace a command, which requires a user's grant. A user who runs the demo has read
    /// what it does.
    fn grant(&self) -> Result<(), Failure> {
        let plugin = self.project().join(".opencode/plugin/demo.js");
        let text = format!("[plugins.{plugin:?}]\nrewrite = true\n");
        self.write("state/config/outrigger/outrigger.toml", &text)
    }

    /// Returns the project's folder.
    pub(super) fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    /// Returns a folder next to the project.
    pub(super) fn folder(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Returns the current content of the file that had the bug.
    pub(super) fn source(&self) -> String {
        fs::read_to_string(self.project().join(SOURCE_NAME)).unwrap_or_else(|_| SOURCE.to_owned())
    }

    /// Writes the answers where the provider looks for them. There are two recordings, because a model without the plugin's tool
    /// makes other calls.
    pub(super) fn put_answers(&self, with_plugin: bool) -> Result<(), Failure> {
        self.write(
            ANSWERS,
            if with_plugin {
                WITH_PLUGIN
            } else {
                WITHOUT_PLUGIN
            },
        )
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.root.join(name);
        let folder = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| cannot_write(&path, &error))
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if self.temporary
            && let Err(error) = outrigger_files::remove_tree(&self.root)
        {
            tracing::warn!("[demo] {} is still there: {error}", self.root.display());
        }
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    let hint = "TMPDIR says where temporary files go; `--keep PATH` takes another folder";
    Failure::new(
        "demo.folder",
        format!("cannot write {}: {error}", path.display()),
        Some(hint.into()),
    )
}

fn kept(path: &Path) -> Result<PathBuf, Failure> {
    let occupied = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
    if occupied {
        let hint = "name a folder that does not exist yet, or an empty one";
        return Err(Failure::usage(
            format!("there is something in {} already", path.display()),
            Some(hint.into()),
        ));
    }
    fs::create_dir_all(path)
        .and_then(|()| path.canonicalize())
        .map_err(|error| cannot_write(path, &error))
}

/// Creates a folder that no other user can access.
fn temporary() -> Result<PathBuf, Failure> {
    let base = std::env::temp_dir();
    let mut number = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.subsec_nanos());
    loop {
        let path = base.join(format!("outrigger-demo-{:05x}", number & 0xf_ffff));
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => {
                return path
                    .canonicalize()
                    .map_err(|error| cannot_write(&path, &error));
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                number = number.wrapping_add(1)
            }
            Err(error) => return Err(cannot_write(&path, &error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_folder_is_private_and_goes_with_its_value() {
        use std::os::unix::fs::PermissionsExt as _;
        let ground = Ground::prepare(None).unwrap();
        let root = ground.root.clone();
        assert_eq!(root.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert!(root.join("project/.opencode/plugin/demo.js").is_file());
        drop(ground);
        assert!(!root.exists());
    }

    #[test]
    fn a_folder_that_is_kept_must_be_empty() {
        let dir = tempfile::tempdir().unwrap();
        drop(Ground::prepare(Some(&dir.path().join("a/b"))).unwrap());
        assert_eq!(
            fs::read_to_string(dir.path().join("a/b/project/stats.js")).unwrap(),
            SOURCE
        );
        assert!(Ground::prepare(Some(&dir.path().join("a"))).is_err());
    }

    #[test]
    fn the_fix_of_the_recordings_is_for_this_source() {
        for answers in [WITH_PLUGIN, WITHOUT_PLUGIN] {
            assert!(answers.contains("[...values].sort((a, b) => a - b);"));
        }
        assert!(SOURCE.contains("[...values].sort();"));
    }
}

//! Access of an executor outside the project, and its permissions without questions.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Access that the process needs outside the project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Folders that it writes to and that contain nothing executed or obeyed later: sessions and logs. The rest of its folder is
    /// read-only.
    pub write: Vec<PathBuf>,
    /// Existing files that it writes to: logins.
    pub files: Vec<PathBuf>,
    /// Like `files`, created empty if missing: a mount point must exist.
    pub made: Vec<PathBuf>,
    /// Variables that point to folders that it may write to.
    pub leads: Vec<(&'static str, OsString)>,
    /// Files and folders that it reads but does not change, although commands do not see them.
    pub read: Vec<PathBuf>,
    /// Paths that it does not need and that its descendants must not see.
    pub hide: Vec<PathBuf>,
    /// Files in there that make something run later, and so must not be changed.
    pub keep: Vec<PathBuf>,
    /// Variables of the user's environment that it reads: names, or prefixes with `*`.
    pub variables: &'static [&'static str],
}

/// Calls that need no question, for an agent that cannot ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unasked {
    /// All file changes in the project are allowed.
    pub edits: bool,
    /// All commands are allowed.
    pub commands: bool,
}

/// Returns paths below a folder.
pub(crate) fn below(folder: &Path, names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(|name| folder.join(name)).collect()
}

fn opencode(home: &Path) -> Access {
    let data = home.join(".local/share/opencode");
    // A database separate from the user's own, which contains accounts whose settings the user's OpenCode fetches and obeys.
    let own = data.join("outrigger");
    Access {
        write: vec![
            data.join("log"),
            data.join("storage"),
            own.clone(),
            home.join(".local/state/opencode"),
        ],
        files: vec![data.join("auth.json")],
        read: vec![data],
        leads: vec![
            ("OPENCODE_DB", own.join("opencode.db").into()),
            // Its snapshots are repositories, whose settings the user's own OpenCode would have git obey.
            ("OPENCODE_CONFIG_CONTENT", r#"{"snapshot":false}"#.into()),
        ],
        ..Access::default()
    }
}

/// Returns the folders of known programs, found on `PATH`. For any other program the name proves nothing: it could be chosen to get
/// access to a folder.
pub(crate) fn of_acp(home: &Path, program: &str) -> Access {
    let mut access = match program {
        "gemini" => return crate::gemini::access(home),
        "opencode" => opencode(home),
        _ => Access::default(),
    };
    // A program in the project may be anything.
    if !program.contains('/') || Path::new(program).is_absolute() {
        access.variables = &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"];
    }
    access
}

//! What an executor needs beside the project, and what it may do unasked.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What the process needs beside the project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Folders that it writes to, and in which nothing is that is run or obeyed later: sessions and logs. The rest of its folder is read.
    pub write: Vec<PathBuf>,
    /// Files that it writes to, where they are: logins.
    pub files: Vec<PathBuf>,
    /// The same, made empty where they are not: what is mounted must be there.
    pub made: Vec<PathBuf>,
    /// Variables that lead it to folders that it may write to.
    pub leads: Vec<(&'static str, OsString)>,
    /// Files and folders that it reads and does not change, though commands do not see them.
    pub read: Vec<PathBuf>,
    /// What it does without and nothing that it starts is to see.
    pub hide: Vec<PathBuf>,
    /// What in there makes something run later, and so is not to be changed.
    pub keep: Vec<PathBuf>,
    /// Variables of the user's environment that it reads: names, or beginnings with `*`.
    pub variables: &'static [&'static str],
}

/// Which calls nobody has to be asked about, for an agent that cannot ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unasked {
    /// Every change of a file in the project is allowed.
    pub edits: bool,
    /// Every command is allowed.
    pub commands: bool,
}

/// Paths below a folder.
pub(crate) fn below(folder: &Path, names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(|name| folder.join(name)).collect()
}

fn opencode(home: &Path) -> Access {
    let data = home.join(".local/share/opencode");
    // Its database besides the user's own, which has accounts, whose settings the user's OpenCode fetches and obeys.
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

/// Folders of programs that are known, found on `PATH`. A name says nothing of any other program: it could be chosen for the folder.
pub(crate) fn of_acp(home: &Path, program: &str) -> Access {
    let mut access = match program {
        "gemini" => return crate::gemini::access(home),
        "opencode" => opencode(home),
        _ => Access::default(),
    };
    // One that lies in the project may be anything.
    if !program.contains('/') || Path::new(program).is_absolute() {
        access.variables = &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"];
    }
    access
}

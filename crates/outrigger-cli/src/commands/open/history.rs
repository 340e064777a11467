//! Earlier prompts, one JSON string per line, in the data folder.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use outrigger_agent::Folders;

use crate::args::Global;

/// Maximum bytes read: the start of a longer file is too old to be useful.
const MAX_BYTES: u64 = 4 << 20;

/// The file. If it cannot be written, only the history is lost.
pub(super) struct History(PathBuf);

impl History {
    pub(super) fn of(global: &Global) -> Self {
        let env = crate::boot::trusting(global, crate::boot::environment());
        Self(Folders::from_env(&env).data.join("prompt-history.jsonl"))
    }

    /// Returns the prompts, oldest first.
    pub(super) fn read(&self) -> Vec<String> {
        let Ok(bytes) = outrigger_files::read(&self.0, MAX_BYTES) else {
            return Vec::new();
        };
        let text = String::from_utf8_lossy(&bytes);
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    pub(super) fn add(&self, prompt: &str) {
        let opened = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&self.0);
        let line = format!("{}\n", serde_json::json!(prompt));
        if let Err(error) = opened.and_then(|mut file| file.write_all(line.as_bytes())) {
            tracing::debug!("[tui] the prompt is not kept: {error}");
        }
    }
}

//! Earlier prompts, one JSON string a line, in the data folder.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use outrigger_agent::Folders;

use crate::args::Global;

/// Bytes that are read: of a longer file the beginning is of no use any more.
const MAX_BYTES: u64 = 4 << 20;

/// The file. Not being able to write it costs the history and nothing else.
pub(super) struct History(PathBuf);

impl History {
    pub(super) fn of(global: &Global) -> Self {
        let env = crate::boot::trusting(global, crate::boot::environment());
        Self(Folders::from_env(&env).data.join("prompt-history.jsonl"))
    }

    /// Oldest first.
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

//! What the interface keeps between runs besides prompts: `tui.json` in the data folder.

use std::path::PathBuf;

use outrigger_agent::Folders;
use outrigger_config::settings::TuiTheme;
use outrigger_files::Readers;
use serde_json::{Value, json};

use crate::args::Global;

/// Maximum bytes read.
const MAX_BYTES: u64 = 64 << 10;

/// The file. If it cannot be written, only the choice is lost.
pub(super) struct State(PathBuf);

impl State {
    pub(super) fn of(global: &Global) -> Self {
        let env = crate::boot::trusting(global, crate::boot::environment());
        Self(Folders::from_env(&env).data.join("tui.json"))
    }

    /// Returns the theme that was chosen last, or the default.
    pub(super) fn theme(&self) -> String {
        let theme = self.read()["theme"].as_str().map(str::to_owned);
        theme.unwrap_or_else(|| TuiTheme::default().name().to_owned())
    }

    pub(super) fn keep_theme(&self, name: &str) {
        let bytes = json!({ "theme": name }).to_string();
        if let Err(error) = outrigger_files::replace(&self.0, bytes.as_bytes(), Readers::Owner) {
            tracing::debug!("[tui] the theme is not kept: {error}");
        }
    }

    fn read(&self) -> Value {
        outrigger_files::read(&self.0, MAX_BYTES)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
    }
}

//! Services for the interface: the user's editor, and files that the user names.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use outrigger_agent::Folders;

use crate::args::Global;

/// Maximum bytes of an image: providers accept no larger ones.
const MAX_IMAGE: u64 = 20 << 20;
/// Maximum bytes of a prompt returned by an editor.
const MAX_PROMPT: u64 = 4 << 20;

/// The editor, and the folder for the edited prompt.
pub(super) struct Editor {
    folder: PathBuf,
    line: String,
}

impl Editor {
    pub(super) fn of(global: &Global) -> Self {
        let env = crate::boot::trusting(global, crate::boot::environment());
        let named = |name: &str| env.get(name).filter(|it| !it.trim().is_empty()).cloned();
        let line = named("VISUAL").or_else(|| named("EDITOR"));
        Self {
            line: line.unwrap_or_else(|| "vi".to_owned()),
            folder: Folders::from_env(&env).data,
        }
    }

    /// Opens the text in the user's editor and returns the result.
    pub(super) fn edit(&self, text: &str) -> Result<String, String> {
        let path = self
            .folder
            .join(format!("prompt-{}.md", std::process::id()));
        let edited = self.edit_in(&path, text);
        let _ = std::fs::remove_file(&path);
        edited
    }

    fn edit_in(&self, path: &Path, text: &str) -> Result<String, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.line);
        let _ = std::fs::create_dir_all(&self.folder);
        let mut file = OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        drop(file);
        let status = outrigger_sandbox::foreground(&self.line, path).map_err(failed)?;
        if !status.success() {
            return Err(format!(
                "{} ended with {status}; the prompt is as it was",
                self.line
            ));
        }
        outrigger_files::read_to_string(path, MAX_PROMPT).map_err(failed)
    }
}

/// Reads a file that may be an image.
pub(super) fn image(path: &str) -> Option<Vec<u8>> {
    let path = match path.strip_prefix("~/") {
        Some(rest) => PathBuf::from(std::env::var_os("HOME")?).join(rest),
        None => PathBuf::from(path),
    };
    outrigger_files::read(&path, MAX_IMAGE).ok()
}

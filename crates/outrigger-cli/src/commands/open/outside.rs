//! Services for the interface: the user's editor, and files that the user names.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use outrigger_agent::Folders;

use crate::args::{ExportArgs, FileForm, Global};

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

/// Writes conversations to files.
pub(super) struct Exporter(Global);

impl Exporter {
    pub(super) fn of(global: &Global) -> Self {
        Self(global.clone())
    }

    /// Writes a session as Markdown; returns the path of the file. A relative one starts at the folder.
    pub(super) fn write(&self, session: &str, file: &str) -> Result<String, String> {
        let failed = |failure: crate::failure::Failure| failure.line();
        let folder = crate::boot::directory(&self.0).map_err(failed)?;
        let output = folder.join(file);
        let args = ExportArgs {
            session: Some(session.to_owned()),
            format: FileForm::Markdown,
            output: output.clone(),
            force: false,
            redact: false,
            children: false,
        };
        crate::commands::session::export::write_session(&self.0, &args).map_err(failed)?;
        Ok(output.display().to_string())
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

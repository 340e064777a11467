//! Writes a plugin grant as a line of the user's `outrigger.toml`, preserving comments and layout.

use std::path::{Path, PathBuf};

use outrigger_config::set_in_toml;
use outrigger_files::Readers;
use outrigger_plugins::Grant;
use outrigger_workspace::Folders;

use crate::error::AgentError;

/// Gives, or takes back, a grant of the plugin under `[plugins."NAME"]`; answers which file says so now.
///
/// # Errors
/// The file cannot be read, changed or written.
pub fn write_grant(
    folders: &Folders,
    name: &str,
    grant: Grant,
    on: bool,
) -> Result<PathBuf, AgentError> {
    let file = folders.settings();
    let text = read_settings(&file)?;
    let value = if on { "true" } else { "false" };
    let shown = file.display().to_string();
    let text = set_in_toml(&text, &shown, &["plugins", name, grant.key()], value)?;
    write_settings(&file, &text)?;
    Ok(file)
}

/// The text of a file of settings; empty where there is none.
///
/// # Errors
/// It cannot be read.
pub fn read_settings(file: &Path) -> Result<String, AgentError> {
    match outrigger_files::read_to_string(file, outrigger_files::SETTINGS) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(failed(file, &error)),
    }
}

/// Writes the user's own settings: a file that is half written is none. A link is followed.
///
/// # Errors
/// It cannot be written.
pub fn write_settings(file: &Path, text: &str) -> Result<(), AgentError> {
    outrigger_files::replace(file, text.as_bytes(), Readers::AsBefore)
        .map_err(|error| failed(file, &error))
}

fn failed(file: &Path, error: &std::io::Error) -> AgentError {
    AgentError::Folder {
        path: file.display().to_string(),
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_one_line_and_the_rest_stays() {
        let root = tempfile::tempdir().unwrap();
        let folders = Folders {
            home: root.path().to_owned(),
            config: root.path().to_owned(),
            data: root.path().to_owned(),
            cache: root.path().to_owned(),
        };
        let text = "# mine\n[plugins.\"/p/a.ts\"] # the first\npriority = 2\n";
        std::fs::create_dir_all(root.path().join("outrigger")).unwrap();
        std::fs::write(folders.settings(), text).unwrap();
        write_grant(&folders, "/p/a.ts", Grant::Prompt, true).unwrap();
        write_grant(&folders, "acme", Grant::Rewrite, true).unwrap();
        write_grant(&folders, "acme", Grant::Rewrite, false).unwrap();
        insta::assert_snapshot!(std::fs::read_to_string(folders.settings()).unwrap(), @r#"
        # mine
        [plugins."/p/a.ts"] # the first
        prompt = true
        priority = 2

        [plugins.acme]
        rewrite = false
        "#);
    }
}

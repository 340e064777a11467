//! Changes `outrigger.toml`, preserving comments and layout.

use std::path::Path;

use outrigger_files::Readers;

use super::edit::set_in_toml;
use crate::error::ConfigError;
use crate::paths;

/// Sets a grant in `[plugins."NAME"]` of a settings file.
///
/// # Errors
/// `config.read`, `config.syntax` or `config.write`: the file cannot be read, changed or written.
pub fn write_grant(file: &Path, name: &str, grant: &str, is_on: bool) -> Result<(), ConfigError> {
    let text = read_settings(file)?;
    let value = if is_on { "true" } else { "false" };
    let shown = file.display().to_string();
    let text = set_in_toml(&text, &shown, &["plugins", name, grant], value)?;
    write_settings(file, &text)
}

/// Reads a settings file; returns an empty text if there is none.
///
/// # Errors
/// `config.read`.
pub fn read_settings(file: &Path) -> Result<String, ConfigError> {
    Ok(paths::read(file)?.unwrap_or_default())
}

/// Replaces a settings file as a whole, so that nobody reads half of it. Follows a link.
///
/// # Errors
/// `config.write`.
pub fn write_settings(file: &Path, text: &str) -> Result<(), ConfigError> {
    outrigger_files::replace(file, text.as_bytes(), Readers::AsBefore).map_err(|error| {
        ConfigError::Write {
            file: file.display().to_string(),
            reason: error.to_string(),
        }
    })
}

#[cfg(test)]
mod tests {
    use outrigger_protocol::diagnose::Diagnose as _;

    use super::*;

    #[test]
    fn a_grant_is_one_line_and_the_rest_stays() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("outrigger.toml");
        let text = "# mine\n[plugins.\"/p/a.ts\"] # the first\npriority = 2\n";
        std::fs::write(&file, text).unwrap();
        write_grant(&file, "/p/a.ts", "prompt", true).unwrap();
        write_grant(&file, "acme", "rewrite", true).unwrap();
        write_grant(&file, "acme", "rewrite", false).unwrap();
        insta::assert_snapshot!(std::fs::read_to_string(&file).unwrap(), @r#"
        # mine
        [plugins."/p/a.ts"] # the first
        prompt = true
        priority = 2

        [plugins.acme]
        rewrite = false
        "#);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named() {
        let error = write_settings(Path::new("/proc/nothing/outrigger.toml"), "").unwrap_err();
        assert_eq!(error.code(), "config.write");
        assert!(error.to_string().contains("/proc/nothing"), "{error}");
    }
}

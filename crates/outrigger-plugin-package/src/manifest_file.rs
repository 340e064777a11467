//! Reads a plugin's `outrigger.plugin.toml`. Grants are decided elsewhere.

use std::io::ErrorKind;
use std::path::Path;

use outrigger_config::ConfigError;
use outrigger_network_proxy::hosts::Hosts;
use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::manifest::{MANIFEST_FILE, Manifest, RESERVED_IDS};

use crate::custom_points::Declarations;
use crate::error::PackageError;

/// Maximum size of a manifest in bytes.
const MAX_BYTES: u64 = 256 * 1024;

/// The manifest in a plugin's folder, if there is one.
///
/// # Errors
/// `plugin.manifest`, with line and column.
pub fn read(spec: &str, dir: &Path) -> Result<Option<Manifest>, PackageError> {
    let path = dir.join(MANIFEST_FILE);
    let wrong = |message: String, hint: Option<String>| PackageError::OwnManifest {
        spec: spec.to_owned(),
        message,
        hint,
    };
    let text = match outrigger_files::read_to_string(&path, MAX_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(format!("{}: {error}", path.display()), None)),
    };
    let file = path.display().to_string();
    let manifest: Manifest = outrigger_config::read_toml(&text, &file)
        .map_err(|error: ConfigError| wrong(error.to_string(), error.hint()))?;
    if let Some(problem) = manifest.problems().into_iter().next() {
        let (line, column) = outrigger_config::place_in_toml(&text, problem.key);
        if RESERVED_IDS.contains(&manifest.id.as_str()) {
            return Err(PackageError::Reserved {
                spec: spec.to_owned(),
                id: manifest.id,
            });
        }
        return Err(wrong(
            format!(
                "{file}:{line}:{column}: `{}`: {}",
                problem.key, problem.message
            ),
            None,
        ));
    }
    if let Err(error) = Hosts::parse(&manifest.permissions.network.hosts) {
        let key = "permissions.network.hosts";
        let (line, column) = outrigger_config::place_in_toml(&text, key);
        return Err(wrong(
            format!("{file}:{line}:{column}: `{key}`: {error}"),
            None,
        ));
    }
    if let Err((key, message)) = Declarations::of(&manifest) {
        let (line, column) = outrigger_config::place_in_toml(&text, key);
        let message = format!("{file}:{line}:{column}: `{key}`: {message}");
        return Err(wrong(message, None));
    }
    Ok(Some(manifest))
}

/// Returns the id in a manifest, whatever else is wrong with it.
#[must_use]
pub fn named(dir: &Path) -> Option<String> {
    let path = dir.join(MANIFEST_FILE);
    let text = outrigger_files::read_to_string(&path, MAX_BYTES).ok()?;
    // Line by line: the error may be anywhere, and a section header ends the keys of the plugin itself.
    let mut lines = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with('['));
    let id = lines.find_map(|line| line.strip_prefix("id")?.trim_start().strip_prefix('='))?;
    let id = id.trim_start().strip_prefix(['"', '\''])?;
    let id: String = id
        .chars()
        .take_while(|it| it.is_ascii_alphanumeric() || "-_.@/".contains(*it))
        .collect();
    (!id.is_empty()).then_some(id)
}

//! Lists of what the user has allowed in a project, with digests of the allowed state: files in the data folder.

use std::io;
use std::path::Path;

use outrigger_files::Readers;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Reads a list. An unreadable one allows nothing.
pub fn read<T: DeserializeOwned + Default>(list: &Path) -> T {
    let bytes = outrigger_files::read(list, outrigger_files::DATA).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Puts the list in the place of the one before, whole.
///
/// # Errors
/// It cannot be written.
pub fn write(list: &Path, table: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec_pretty(table)?;
    outrigger_files::replace(list, &text, Readers::Owner)
}

/// Returns the key of a file in the list: its real path.
pub fn key(file: &Path) -> String {
    let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    real.display().to_string()
}

/// Returns a digest of a setting as written, with the programs in its folder that it names. `None` if there are more than are
/// checked.
pub fn digest(written: &Value, folder: &Path, home: &Path) -> Option<String> {
    let mut text = written.to_string();
    for file in outrigger_config::files_run_by(written, folder, home)? {
        text.push('\n');
        text.push_str(&file);
    }
    Some(outrigger_stdx::text::hex(&Sha256::digest(text.as_bytes())))
}

/// Returns the error for too many files.
pub fn too_many() -> io::Error {
    io::Error::other("it names more files of its folder than are looked at")
}

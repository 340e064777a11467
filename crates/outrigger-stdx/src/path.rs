//! Paths as text.

use std::path::{Component, Path, PathBuf};

/// Resolves `.` and `..` lexically, without reading the disk. `..` at the root, or at the start of a relative path, is
/// dropped.
///
/// ```
/// use std::path::Path;
///
/// let path = outrigger_stdx::path::normalize(Path::new("/a/./b/../../../c"));
/// assert_eq!(path, Path::new("/c"));
/// ```
#[must_use]
pub fn normalize(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

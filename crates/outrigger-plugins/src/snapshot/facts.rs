//! Facts about a candidate from the disk.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use outrigger_kernel::admission::Files;
use outrigger_protocol::manifest::MANIFEST_FILE;

/// Extensions of files that a plugin process can import.
const SCRIPTS: &[&str] = &["js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx"];

/// Returns the real path of a plugin's manifest, and whether it or a folder above it is world-writable (D3).
pub(super) fn files(root: &Path, folder: &Path, world_writable: bool) -> Files {
    let manifest = folder.join(MANIFEST_FILE);
    let (Ok(real), Ok(root)) = (manifest.canonicalize(), root.canonicalize()) else {
        return Files {
            outside: manifest
                .symlink_metadata()
                .is_ok_and(|meta| meta.is_symlink())
                .then(|| format!("a link to nothing, {}", manifest.display())),
            ..Files::default()
        };
    };
    Files {
        outside: (!real.starts_with(&root)).then(|| real.display().to_string()),
        world_writable: if world_writable {
            None
        } else {
            open_to_all(&real).map(|path| path.display().to_string())
        },
        signature: None,
    }
}

/// Returns the first world-writable component of a path. In a folder with the sticky bit (`/tmp`) users cannot remove
/// each other's files.
pub(super) fn open_to_all(real: &Path) -> Option<PathBuf> {
    let open = |path: &&Path| {
        fs::metadata(path).is_ok_and(|meta| {
            let sticky = meta.is_dir() && meta.mode() & 0o1000 != 0;
            meta.mode() & 0o002 != 0 && !sticky
        })
    };
    real.ancestors().find(open).map(Path::to_owned)
}

/// Returns why a plugin process could not import the entry of a plugin.
pub(super) fn unsupported(entry: &Path) -> Option<String> {
    let extension = entry.extension().and_then(|it| it.to_str());
    let fits = extension.is_some_and(|it| SCRIPTS.contains(&it));
    (!fits).then(|| {
        format!(
            "its entry {} is neither JavaScript nor TypeScript",
            entry.display()
        )
    })
}

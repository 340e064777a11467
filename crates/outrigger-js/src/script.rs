//! The embedded host script, and writing it where processes can read it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use sha2::{Digest as _, Sha256};

use crate::error::JsError;

const FILES: &[(&str, &str)] = &[
    ("auth.mjs", include_str!("../host/auth.mjs")),
    ("blame.mjs", include_str!("../host/blame.mjs")),
    ("commonjs.mjs", include_str!("../host/commonjs.mjs")),
    (
        "custom_points.mjs",
        include_str!("../host/custom_points.mjs"),
    ),
    ("file.mjs", include_str!("../host/file.mjs")),
    ("host.mjs", include_str!("../host/host.mjs")),
    ("integrity.mjs", include_str!("../host/integrity.mjs")),
    (
        "integrity_loader.mjs",
        include_str!("../host/integrity_loader.mjs"),
    ),
    ("load.mjs", include_str!("../host/load.mjs")),
    ("mirror.mjs", include_str!("../host/mirror.mjs")),
    ("net.mjs", include_str!("../host/net.mjs")),
    ("output.mjs", include_str!("../host/output.mjs")),
    ("provider.mjs", include_str!("../host/provider.mjs")),
    ("resolve.mjs", include_str!("../host/resolve.mjs")),
    ("run.mjs", include_str!("../host/run.mjs")),
    ("sdk.mjs", include_str!("../host/sdk.mjs")),
    ("value.mjs", include_str!("../host/value.mjs")),
    ("wire.mjs", include_str!("../host/wire.mjs")),
    ("worker.mjs", include_str!("../host/worker.mjs")),
    ("zod.mjs", include_str!("../host/zod.mjs")),
];

/// Writes the files into a separate folder below `scripts` and returns the path of the entry. Plugins may read it but not write
/// it: this program writes here with the rights of the user, and every process runs what it finds.
pub(crate) fn write(scripts: &Path) -> Result<PathBuf, JsError> {
    let folder = scripts.join(version());
    if !is_whole(&folder) {
        place(scripts, &folder).map_err(|source| JsError::Script {
            path: folder.clone(),
            source,
        })?;
    }
    Ok(folder.join("host.mjs"))
}

/// Returns the version of these files; another version of this program has another one, and may run concurrently.
fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let mut digest = Sha256::new();
        for (name, text) in FILES {
            digest.update(name);
            digest.update([0]);
            digest.update(text);
            digest.update([0]);
        }
        outrigger_stdx::text::hex(digest.finalize().get(..8).unwrap_or_default())
    })
}

/// Returns whether a folder has these files and no others.
fn is_whole(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else {
        return false;
    };
    let is_right = |(name, text): &(&str, &str)| {
        let now = outrigger_files::read(&folder.join(name), outrigger_files::DATA);
        now.is_ok_and(|now| now == text.as_bytes())
    };
    fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir())
        && entries.count() == FILES.len()
        && FILES.iter().all(is_right)
}

/// Creates the folder under a temporary name and renames it.
fn place(scripts: &Path, folder: &Path) -> io::Result<()> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    fs::create_dir_all(scripts)?;
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let beside = |word: &str| scripts.join(format!(".{}.{number}.{word}", std::process::id()));
    let (draft, old) = (beside("new"), beside("old"));
    fs::create_dir(&draft)?;
    for (name, text) in FILES {
        fs::write(draft.join(name), text)?;
    }
    let placed = fs::rename(&draft, folder).or_else(|error| {
        // Another process was first: processes run in that folder already, so it stays.
        if is_whole(folder) {
            return fs::remove_dir_all(&draft);
        }
        // The existing folder is incorrect.
        fs::rename(folder, &old).map_err(|_| error)?;
        fs::rename(&draft, folder)
    });
    let _ = fs::remove_dir_all(&old).or_else(|_| fs::remove_file(&old));
    if placed.is_err() {
        let _ = fs::remove_dir_all(&draft);
    }
    // It may have appeared meanwhile.
    placed.or_else(|error| if is_whole(folder) { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_import_of_the_script_is_embedded() {
        for (name, text) in FILES {
            for part in text.split("\"./").skip(1) {
                let wanted = part.split('"').next().unwrap();
                assert!(
                    FILES.iter().any(|(file, _)| *file == wanted),
                    "{name} imports {wanted}"
                );
            }
        }
    }

    #[test]
    fn a_changed_script_and_a_link_are_replaced() {
        let root = tempfile::tempdir().unwrap();
        let scripts = root.path().join("scripts");
        let entry = write(&scripts).unwrap();
        let (_, host) = FILES.iter().find(|(name, _)| *name == "host.mjs").unwrap();
        let elsewhere = root.path().join("elsewhere");
        let change = |number: usize| match number {
            0 => fs::write(&entry, "process.exit(1)").unwrap(),
            1 => fs::write(entry.with_file_name("extra.mjs"), "").unwrap(),
            2 => fs::remove_file(&entry).unwrap(),
            3 => {
                fs::write(&elsewhere, "mine").unwrap();
                fs::remove_file(&entry).unwrap();
                std::os::unix::fs::symlink(&elsewhere, &entry).unwrap();
            }
            _ => {
                fs::remove_dir_all(entry.parent().unwrap()).unwrap();
                std::os::unix::fs::symlink(root.path(), entry.parent().unwrap()).unwrap();
            }
        };
        for number in 0..5 {
            change(number);
            let found = write(&scripts).unwrap();
            assert_eq!(fs::read_to_string(&found).unwrap(), *host, "{number}");
            assert!(is_whole(found.parent().unwrap()), "{number}");
            assert_eq!(fs::read_dir(&scripts).unwrap().count(), 1, "{number}");
        }
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "mine");
    }
}

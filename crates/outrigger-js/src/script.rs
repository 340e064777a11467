//! The host script, embedded, and its way into a process's private folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::JsError;

const FILES: &[(&str, &str)] = &[
    ("auth.mjs", include_str!("../host/auth.mjs")),
    ("checked.mjs", include_str!("../host/checked.mjs")),
    ("commonjs.mjs", include_str!("../host/commonjs.mjs")),
    ("enter.mjs", include_str!("../host/enter.mjs")),
    ("file.mjs", include_str!("../host/file.mjs")),
    ("host.mjs", include_str!("../host/host.mjs")),
    ("load.mjs", include_str!("../host/load.mjs")),
    ("mirror.mjs", include_str!("../host/mirror.mjs")),
    ("net.mjs", include_str!("../host/net.mjs")),
    ("own.mjs", include_str!("../host/own.mjs")),
    ("provider.mjs", include_str!("../host/provider.mjs")),
    ("resolve.mjs", include_str!("../host/resolve.mjs")),
    ("run.mjs", include_str!("../host/run.mjs")),
    ("sdk.mjs", include_str!("../host/sdk.mjs")),
    ("value.mjs", include_str!("../host/value.mjs")),
    ("wire.mjs", include_str!("../host/wire.mjs")),
    ("worker.mjs", include_str!("../host/worker.mjs")),
    ("zod.mjs", include_str!("../host/zod.mjs")),
];

/// Writes the files to `<private>/outrigger-host` and answers the path of the entry. The folder is writable for plugins,
/// so what differs is written anew and what does not belong there is removed; what is right is left alone, since
/// another process may be reading it.
pub(crate) fn write(private: &Path) -> Result<PathBuf, JsError> {
    let folder = private.join("outrigger-host");
    fill(&folder).map_err(|source| JsError::Script {
        path: folder.clone(),
        source,
    })?;
    Ok(folder.join("host.mjs"))
}

fn fill(folder: &Path) -> io::Result<()> {
    // A plugin may have left a link here; what it points to must not be written through.
    if fs::symlink_metadata(folder).is_ok_and(|meta| !meta.is_dir()) {
        fs::remove_file(folder)?;
    }
    fs::create_dir_all(folder)?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let text = FILES
            .iter()
            .find(|(name, _)| entry.file_name() == *name)
            .map(|(_, text)| *text);
        let kind = entry.file_type()?;
        let right = kind.is_file()
            && text.is_some_and(|text| {
                outrigger_files::read(&entry.path(), outrigger_files::DATA)
                    .is_ok_and(|now| now == text.as_bytes())
            });
        match (right, kind.is_dir()) {
            (true, _) => {}
            (false, true) => fs::remove_dir_all(entry.path())?,
            (false, false) => fs::remove_file(entry.path())?,
        }
    }
    for (name, text) in FILES {
        let path = folder.join(name);
        if !path.exists() {
            fs::write(path, text)?;
        }
    }
    Ok(())
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
        let private = tempfile::tempdir().unwrap();
        let entry = write(private.path()).unwrap();
        fs::write(&entry, "process.exit(1)").unwrap();
        fs::write(entry.with_file_name("extra.mjs"), "").unwrap();
        let (_, host) = FILES.iter().find(|(name, _)| *name == "host.mjs").unwrap();
        assert_eq!(
            fs::read_to_string(write(private.path()).unwrap()).unwrap(),
            *host
        );
        assert!(!entry.with_file_name("extra.mjs").exists());

        let elsewhere = tempfile::tempdir().unwrap();
        fs::remove_dir_all(entry.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), entry.parent().unwrap()).unwrap();
        write(private.path()).unwrap();
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }
}

//! `transcript_path`: the conversation of a session as a file of JSON lines, for commands that read it. It is written when a
//! command is about to be started and the conversation has changed, into a folder that only this user can read, and is gone
//! with the program; what one that was killed has left, the next one that has command hooks removes.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::digest::hash;

/// How the names of the folders begin.
const PREFIX: &str = "outrigger-transcripts.";
/// Names of a folder that are tried; another user may have taken one.
const TRIES: u32 = 16;

/// The files that were written. Dropping this removes them.
#[derive(Default)]
pub(crate) struct Transcripts(Mutex<Written>);

#[derive(Default)]
struct Written {
    folder: Option<Folder>,
    /// Digest of what stands in the file of a session.
    sessions: BTreeMap<String, u64>,
}

/// A folder of this process, and the lock on it that says so: it ends with the process, however that ends.
struct Folder {
    path: PathBuf,
    _held: File,
}

impl Transcripts {
    /// None yet; removes those of programs that were killed.
    pub(crate) fn new() -> Self {
        sweep(&std::env::temp_dir());
        Self::default()
    }

    /// The file of a session, with this in it.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn write(&self, session: &str, text: &str) -> io::Result<PathBuf> {
        let mut digest = DefaultHasher::new();
        text.hash(&mut digest);
        let digest = digest.finish();
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = match &written.folder {
            Some(folder) => folder.path.clone(),
            None => written
                .folder
                .insert(fresh(&std::env::temp_dir())?)
                .path
                .clone(),
        };
        // An identifier may come from a client, and no two have the same name.
        let name = hash(session);
        let file = folder.join(format!("{name}.jsonl"));
        if written.sessions.get(session) != Some(&digest) {
            // A command that reads the older one reads it to its end.
            let fresh = folder.join(format!("{name}.new"));
            fs::write(&fresh, text)?;
            fs::rename(&fresh, &file)?;
            written.sessions.insert(session.to_owned(), digest);
        }
        Ok(file)
    }

    /// Where the files are, once there is one.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        let written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        written.folder.as_ref().map(|folder| folder.path.clone())
    }
}

impl Drop for Transcripts {
    fn drop(&mut self) {
        let written = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = written.folder.take() {
            let _ = fs::remove_dir_all(folder.path);
        }
    }
}

/// A new folder of ours under the one for temporary files. Our data folder would not do: no command gets at that.
fn fresh(base: &Path) -> io::Result<Folder> {
    let mut last = None;
    for number in 0..TRIES {
        let path = base.join(format!("{PREFIX}{}.{number}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => {}
            Err(error) => {
                last = Some(error);
                continue;
            }
        }
        let held = File::open(&path)?;
        // Who sweeps may have been faster, and removes it.
        if held.try_lock().is_ok() && held.metadata()?.nlink() > 0 {
            return Ok(Folder { path, _held: held });
        }
    }
    Err(last.unwrap_or_else(|| io::ErrorKind::AlreadyExists.into()))
}

/// Removes this user's folders that no process holds.
fn sweep(base: &Path) {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        if !entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes())
        {
            continue;
        }
        let path = entry.path();
        // Not what a link leads to.
        let is_ours = fs::symlink_metadata(&path).is_ok_and(|it| it.is_dir() && it.uid() == own);
        let Ok(held) = File::open(&path) else {
            continue;
        };
        if is_ours
            && held.try_lock().is_ok()
            && let Err(error) = fs::remove_dir_all(&path)
        {
            tracing::warn!("[hooks] {} cannot be removed: {error}", path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_file_for_each_session_and_gone_with_the_program() {
        let transcripts = Transcripts::default();
        let one = transcripts.write("ses_1", "a\n").unwrap();
        assert_eq!(fs::read_to_string(&one).unwrap(), "a\n");
        assert_eq!(transcripts.write("ses_1", "a\nb\n").unwrap(), one);
        assert_eq!(fs::read_to_string(&one).unwrap(), "a\nb\n");
        let folder = one.parent().unwrap().to_owned();
        let mode = fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let other = transcripts.write("../../x", "c").unwrap();
        assert_eq!(other.parent(), Some(folder.as_path()));
        // Names that differ in a sign only.
        let a = transcripts.write("a-b", "a").unwrap();
        let b = transcripts.write("a_b", "b").unwrap();
        transcripts.write("a-b", "a").unwrap();
        let read = [a, b].map(|file| fs::read_to_string(file).unwrap());
        assert_eq!(read, ["a", "b"]);
        drop(transcripts);
        assert!(!folder.exists());
    }

    #[test]
    fn what_a_killed_program_left_is_removed_and_nothing_else() {
        let base = tempfile::tempdir().unwrap();
        let at = |name: &str| base.path().join(name);
        let held = fresh(base.path()).unwrap();
        let left = at(&format!("{PREFIX}1.0"));
        fs::create_dir(&left).unwrap();
        fs::write(left.join("x.jsonl"), "secret").unwrap();
        fs::create_dir(at("other")).unwrap();
        let link = at(&format!("{PREFIX}2.0"));
        std::os::unix::fs::symlink(at("other"), &link).unwrap();
        sweep(base.path());
        let there = [&held.path, &left, &at("other"), &link].map(|path| path.exists());
        assert_eq!(there, [true, false, true, true]);
    }
}

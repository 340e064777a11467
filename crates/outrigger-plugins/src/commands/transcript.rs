//! `transcript_path`: the conversation of a session as a file of JSON lines, for commands that read it. It is written when a
//! command is about to be started and the conversation has changed, into a folder that only this user can read, and is gone
//! with the program.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Names of a folder that are tried; another user may have taken one.
const TRIES: u32 = 16;

/// The files that were written. Dropping this removes them.
#[derive(Default)]
pub(crate) struct Transcripts(Mutex<Written>);

#[derive(Default)]
struct Written {
    folder: Option<PathBuf>,
    /// Digest of what stands in the file of a session.
    sessions: BTreeMap<String, u64>,
}

impl Transcripts {
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
            Some(folder) => folder.clone(),
            None => written.folder.insert(fresh()?).clone(),
        };
        // An identifier may come from a client.
        let name: String = session
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
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
        written.folder.clone()
    }
}

impl Drop for Transcripts {
    fn drop(&mut self) {
        let written = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = written.folder.take() {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// A new folder of ours under the one for temporary files. Our data folder would not do: no command gets at that.
fn fresh() -> io::Result<PathBuf> {
    let mut last = None;
    for number in 0..TRIES {
        let name = format!("outrigger-transcripts-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::ErrorKind::AlreadyExists.into()))
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
        drop(transcripts);
        assert!(!folder.exists());
    }
}

//! `transcript_path`: the conversation of a session as a file of JSON lines, for commands that read it. When a command is about
//! to start, new messages are appended; changed ones are replaced. The file is in a folder that only this user can read, and is
//! removed with the program; the leftovers of a killed one are removed by the next program with command hooks.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::hash::{DefaultHasher, Hasher as _};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use outrigger_protocol::history::History;
use outrigger_protocol::message::MessageWithParts;
use outrigger_sandbox::private_tmp;
use outrigger_stdx::sync::lock;
use outrigger_stdx::text::hex;
use ring::digest::{SHA256, digest as sha};
use rustix::fs::{Mode, OFlags};

/// Prefix of the folder names.
const PREFIX: &str = "outrigger-transcripts.";
/// A `bunfig.toml` for Bun, which would otherwise read that of the working directory, and its `.env`.
pub(crate) const BUN_CONFIG: &str = "bunfig.toml";
/// Number of folder names that are tried; another user may have taken one.
const TRIES: u32 = 16;

/// The written files. Dropping this removes them.
#[derive(Default)]
pub(crate) struct Transcripts(Mutex<Written>);

#[derive(Default)]
struct Written {
    folder: Option<Folder>,
    sessions: BTreeMap<String, Vec<Entry>>,
}

/// A message in the file of its session.
#[derive(Clone, Copy)]
struct Entry {
    digest: u64,
    /// End of its lines, in bytes.
    end: u64,
}

/// A folder of this process, with the lock that marks it as such: it is released when the process ends in any way.
struct Folder {
    path: PathBuf,
    _held: File,
}

impl Transcripts {
    /// Creates an empty value; removes leftovers of killed programs in the background. Must be called within a runtime.
    pub(crate) fn new() -> Self {
        tokio::task::spawn_blocking(|| {
            let ours = private_tmp::folder().ok();
            // Those of older versions are next to it.
            for base in ours.into_iter().chain([std::env::temp_dir()]) {
                sweep(&base);
            }
        });
        Self::default()
    }

    /// The file of a session, with its conversation in it; `lines` are those of one message, and are asked for what the
    /// file has not.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn write(
        &self,
        session: &str,
        history: &History,
        lines: impl Fn(&MessageWithParts) -> String,
    ) -> io::Result<PathBuf> {
        let messages: Vec<&MessageWithParts> = history.iter().filter_map(|m| m.stored()).collect();
        let digests: Vec<u64> = messages.iter().map(|message| digest(message)).collect();
        let mut written = lock(&self.0);
        let folder = match &written.folder {
            Some(folder) => folder.path.clone(),
            None => {
                let folder = fresh(&private_tmp::folder()?)?;
                fs::write(folder.path.join(BUN_CONFIG), "env = false\n")?;
                written.folder.insert(folder).path.clone()
            }
        };
        // An id may come from a client, and no two have the same name.
        let file = folder.join(format!("{}.jsonl", name(session)));
        // The state of a removed file, or one that could not be written, is unknown.
        let before = written.sessions.remove(session).filter(|_| file.exists());
        let mut entries = before.clone().unwrap_or_default();
        let known = std::iter::zip(&entries, &digests);
        let same = known.take_while(|(it, digest)| it.digest == **digest);
        entries.truncate(same.count());
        let kept = end(&entries);
        let mut new = String::new();
        for (message, digest) in std::iter::zip(messages, digests).skip(entries.len()) {
            new.push_str(&lines(message));
            let end = kept + new.len() as u64;
            entries.push(Entry { digest, end });
        }
        match before {
            Some(before) => extend(&file, kept..end(&before), &new)?,
            None => replace(&file, 0, &new)?,
        }
        written.sessions.insert(session.to_owned(), entries);
        Ok(file)
    }

    /// Returns the folder of the files, once there is one.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        let written = lock(&self.0);
        written.folder.as_ref().map(|folder| folder.path.clone())
    }
}

/// Returns the SHA-256 of a session id as JSON.
fn name(session: &str) -> String {
    hex(sha(&SHA256, serde_json::json!(session).to_string().as_bytes()).as_ref())
}

impl Drop for Transcripts {
    fn drop(&mut self) {
        let written = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = written.folder.take() {
            let _ = outrigger_files::remove_tree(&folder.path);
        }
    }
}

fn end(entries: &[Entry]) -> u64 {
    entries.last().map_or(0, |it| it.end)
}

/// Replaces the range `old` up to the end of the file by `new`.
fn extend(path: &Path, old: Range<u64>, new: &str) -> io::Result<()> {
    let mut file = File::options().read(true).append(true).open(path)?;
    file.seek(SeekFrom::Start(old.start))?;
    let mut there = Vec::new();
    file.read_to_end(&mut there)?;
    let is_whole = there.len() as u64 == old.end - old.start;
    match new.as_bytes().strip_prefix(&*there).filter(|_| is_whole) {
        Some(more) => file.write_all(more),
        None => replace(path, old.start, new),
    }
}

/// Writes a new file with the first `kept` bytes and `new` after them: a command that has opened the older one can still read all
/// of it.
fn replace(path: &Path, kept: u64, new: &str) -> io::Result<()> {
    let fresh = path.with_extension("new");
    let mut file = File::create(&fresh)?;
    if kept > 0 {
        io::copy(&mut File::open(path)?.take(kept), &mut file)?;
    }
    file.write_all(new.as_bytes())?;
    fs::rename(&fresh, path)
}

fn digest(message: &MessageWithParts) -> u64 {
    struct Hashed(DefaultHasher);
    impl Write for Hashed {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut hashed = Hashed(DefaultHasher::new());
    // A message always has a JSON form, and hashing cannot fail.
    let _ = serde_json::to_writer(&mut hashed, message);
    hashed.0.finish()
}

/// Creates a folder among this user's temporary files, hidden from commands of other sessions. The data folder cannot be used: no
/// command can access it.
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
        // A concurrent sweep may have been faster, and removes it.
        if held.try_lock().is_ok() && held.metadata()?.nlink() > 0 {
            return Ok(Folder { path, _held: held });
        }
    }
    Err(last.unwrap_or_else(|| io::ErrorKind::AlreadyExists.into()))
}

/// Removes this user's folders that no process holds. Any user may create an entry of that name in a folder for temporary files.
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
        // Neither follow a link, nor wait for a pipe's writer.
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(held) = rustix::fs::open(&path, flags, Mode::empty()).map(File::from) else {
            continue;
        };
        let is_ours = held.metadata().is_ok_and(|it| it.uid() == own);
        if is_ours
            && held.try_lock().is_ok()
            && let Err(error) = outrigger_files::remove_tree(&path)
        {
            tracing::warn!("[hooks] cannot remove {}: {error}", path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn message(id: &str) -> MessageWithParts {
        serde_json::from_value(serde_json::json!({"info": {
            "id": id, "sessionID": "ses_1", "role": "user", "agent": "build", "time": {"created": 1},
            "model": {"providerID": "p", "modelID": "m"},
        }, "parts": []}))
        .unwrap()
    }

    fn id_of(message: &MessageWithParts) -> String {
        format!("{}\n", message.info.id())
    }

    #[test]
    fn a_file_for_each_session_and_gone_with_the_program() {
        let transcripts = Transcripts::default();
        let write = |session, text| {
            transcripts.write(session, &[message(text)].into_iter().collect(), id_of)
        };
        let one = write("ses_1", "a").unwrap();
        let folder = one.parent().unwrap().to_owned();
        let mode = fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let other = write("../../x", "c").unwrap();
        assert_eq!(other.parent(), Some(folder.as_path()));
        // Names that differ in one character only.
        let (a, b) = (write("a-b", "a").unwrap(), write("a_b", "b").unwrap());
        write("a-b", "a").unwrap();
        let read = [a, b].map(|file| fs::read_to_string(file).unwrap());
        assert_eq!(read, ["a\n", "b\n"]);
        drop(transcripts);
        assert!(!folder.exists());
    }

    #[test]
    fn new_messages_are_appended_and_changed_ones_replaced() {
        let transcripts = Transcripts::default();
        let mut before = None;
        // The conversation (one that continues has one more line), whether its file stays, and what is rendered.
        for (history, stays, rendered) in [
            (vec!["a"], false, 1),
            (vec!["a"], true, 0),
            (vec!["a", "b"], true, 1),
            (vec!["a", "b+", "c"], true, 2),
            (vec!["a", "b+", "c"], true, 0),
            // After an undo.
            (vec!["a", "b"], false, 1),
            (vec!["a", "b", "d"], true, 1),
            (vec!["a"], false, 0),
            // After a compaction.
            (vec!["s", "d"], false, 2),
            (vec![], false, 0),
        ] {
            let count = std::cell::Cell::new(0);
            let lines = |it: &MessageWithParts| {
                count.set(count.get() + 1);
                it.info.id().as_str().replace('+', "\n+") + "\n"
            };
            let messages: Vec<_> = history.iter().map(|id| message(id)).collect();
            let file = transcripts
                .write("ses_1", &messages.iter().cloned().collect(), lines)
                .unwrap();
            assert_eq!(count.get(), rendered, "{history:?}");
            let want: String = messages.iter().map(lines).collect();
            assert_eq!(fs::read_to_string(&file).unwrap(), want, "{history:?}");
            // Held open, so that its inode is not reused.
            let held = File::open(&file).unwrap();
            let meta = held.metadata().unwrap();
            let changed = |it: &fs::Metadata| (it.mtime(), it.mtime_nsec());
            let was: Option<(File, fs::Metadata)> = before.replace((held, meta.clone()));
            let same =
                was.map(|(_, was)| (was.ino() == meta.ino(), changed(&was) == changed(&meta)));
            assert_eq!(same.is_some_and(|(file, _)| file), stays, "{history:?}");
            if stays && rendered == 0 {
                assert_eq!(same, Some((true, true)), "{history:?} was written again");
            }
        }
    }

    #[test]
    fn one_that_is_gone_is_written_anew() {
        let transcripts = Transcripts::default();
        let write = |ids: &[&str]| {
            let messages: Vec<_> = ids.iter().map(|id| message(id)).collect();
            let history = messages.iter().cloned().collect();
            transcripts.write("ses_1", &history, id_of).unwrap()
        };
        let file = write(&["a"]);
        fs::remove_file(&file).unwrap();
        write(&["a", "b"]);
        assert_eq!(fs::read_to_string(&file).unwrap(), "a\nb\n");
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
        // Opening it for reading would wait for a writer.
        let pipe = at(&format!("{PREFIX}x"));
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        sweep(base.path());
        let there = [&held.path, &left, &at("other"), &link, &pipe].map(|path| path.exists());
        assert_eq!(there, [true, false, true, true, true]);
    }
}

//! The file channel: large payloads of hooks are sent by file (A10).
//!
//! The host creates every file, under a random name, exclusively and with mode 0600, in a folder that belongs to one
//! process of one host. The host keeps its files open: an answer is read from that descriptor and never from a path, so
//! a file that a plugin sends or substitutes is never opened. Each file carries a token that is valid once. A file is
//! removed when the value that represents it is dropped, whatever the outcome; folders of dead hosts are removed when
//! the next one starts.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Extension of the lock file next to a host's folder, which the host holds as long as it lives.
const LOCK: &str = "lock";
/// Minimum age of a leftover folder without a lock: a younger one's host may be about to create it.
const MIN_ORPHAN_AGE: Duration = Duration::from_secs(60);
/// Number of names that are tried if a sweep of another host interferes.
const TRIES: usize = 8;

/// The folder of this host for large payloads, mode 0700. Cheap to clone; removed with the last clone.
#[derive(Clone, Debug)]
pub struct ExchangeRoot(Arc<Root>);

#[derive(Debug)]
struct Root {
    folder: PathBuf,
    lock: PathBuf,
    /// Held locked: the lock distinguishes a live host from a dead one.
    _held: File,
}

impl ExchangeRoot {
    /// Makes a folder for this host below `base`, and removes those of hosts that have died.
    ///
    /// # Errors
    /// The system's answer when it cannot be made. What cannot be swept stays.
    pub fn open(base: &Path) -> io::Result<Self> {
        private(base, true)?;
        sweep(base);
        for _ in 0..TRIES {
            let name = random()?;
            let (folder, lock) = (base.join(&name), base.join(&name).with_extension(LOCK));
            let held = create(&lock)?;
            if held.try_lock().is_ok() && held.metadata()?.nlink() > 0 {
                private(&folder, false)?;
                return Ok(Self(Arc::new(Root {
                    folder,
                    lock,
                    _held: held,
                })));
            }
        }
        Err(io::Error::other(
            "other hosts sweep the folder all the time",
        ))
    }

    /// Creates a separate folder for one process.
    pub(crate) fn process(&self) -> io::Result<Exchange> {
        let folder = self.0.folder.join(random()?);
        private(&folder, false)?;
        Ok(Exchange(Arc::new(Folder {
            path: folder,
            _root: self.clone(),
        })))
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = outrigger_files::remove_tree(&self.folder);
        let _ = fs::remove_file(&self.lock);
    }
}

/// Removes what killed hosts left. A live host holds its lock.
fn sweep(base: &Path) {
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let is_lock = path.extension().is_some_and(|extension| extension == LOCK);
        let lock = path.with_extension(LOCK);
        let held = match OpenOptions::new().write(true).open(&lock) {
            Ok(file) => match file.try_lock() {
                Ok(()) => Some(file),
                Err(TryLockError::WouldBlock | TryLockError::Error(_)) => continue,
            },
            Err(_) if is_lock || !is_old(&path) => continue,
            Err(_) => None,
        };
        let folder = path.with_extension("");
        let gone = match fs::symlink_metadata(&folder) {
            Ok(meta) if meta.is_dir() => outrigger_files::remove_tree(&folder),
            Ok(_) => fs::remove_file(&folder),
            Err(error) => Err(error),
        };
        match gone {
            Ok(()) => tracing::info!("removed {}, left by a host that died", folder.display()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!("cannot remove {}: {error}", folder.display());
                continue;
            }
        }
        if held.is_some() {
            let _ = fs::remove_file(&lock);
        }
    }
}

fn is_old(path: &Path) -> bool {
    let modified = fs::symlink_metadata(path).and_then(|meta| meta.modified());
    let age = modified
        .ok()
        .and_then(|at| SystemTime::now().duration_since(at).ok());
    age.is_some_and(|age| age > MIN_ORPHAN_AGE)
}

/// The folder of one process. Cheap to clone; removed with the last clone.
#[derive(Clone, Debug)]
pub(crate) struct Exchange(Arc<Folder>);

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    _root: ExchangeRoot,
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = outrigger_files::remove_tree(&self.path);
    }
}

impl Exchange {
    /// Returns the folder that the process's sandbox must allow to read and write.
    pub(crate) fn folder(&self) -> &Path {
        &self.0.path
    }

    /// Creates a file that begins with `{"token": .., KEY:`; the parts follow. Blocking.
    pub(crate) fn offer(&self, key: &str, parts: &[Vec<u8>]) -> io::Result<Ticket> {
        let mut ticket = self.ticket()?;
        let head = format!("{{\"token\":\"{}\",\"{key}\":", ticket.token);
        ticket.file.write_all(head.as_bytes())?;
        for part in parts {
            ticket.file.write_all(part)?;
        }
        Ok(ticket)
    }

    /// Creates an empty file for an answer. Blocking.
    pub(crate) fn ticket(&self) -> io::Result<Ticket> {
        let path = self.0.path.join(random()?);
        let file = create(&path)?;
        // From here on it is removed, whatever happens.
        let mut ticket = Ticket {
            path,
            token: String::new(),
            file,
            _folder: self.clone(),
        };
        ticket.token = random()?;
        Ok(ticket)
    }
}

/// A file that the host created, valid for one use. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct Ticket {
    path: PathBuf,
    token: String,
    file: File,
    _folder: Exchange,
}

impl Ticket {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// What has been written into the file, from the descriptor that the host made it with: what stands at its path by
    /// now does not matter. Blocks.
    ///
    /// # Errors
    /// It holds more than `most` bytes, or nothing, or cannot be read.
    pub(crate) fn read(mut self, most: u64) -> io::Result<Vec<u8>> {
        let size = self.file.metadata()?.len();
        if size == 0 {
            return Err(io::Error::other("nothing was written into it"));
        }
        let over = || io::Error::other(format!("it holds more than {most} bytes"));
        if size > most {
            return Err(over());
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        // It may still be growing.
        let read = (&mut self.file).take(most + 1).read_to_end(&mut bytes)?;
        if u64::try_from(read).unwrap_or(u64::MAX) > most {
            return Err(over());
        }
        Ok(bytes)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // A link that a plugin put there is removed, not followed; a folder stays until the process's own is removed.
        let _ = fs::remove_file(&self.path);
    }
}

fn private(path: &Path, recursive: bool) -> io::Result<()> {
    DirBuilder::new()
        .mode(0o700)
        .recursive(recursive)
        .create(path)
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Returns 128 random bits as text.
fn random() -> io::Result<String> {
    outrigger_stdx::random::token::<16>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn entries(path: &Path) -> Vec<String> {
        fs::read_dir(path)
            .unwrap()
            .map(|entry| {
                let name = entry.unwrap().file_name();
                name.into_string().unwrap()
            })
            .collect()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn folders_and_files_are_the_users_alone_and_go_with_what_stands_for_them() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().join("deep/base");
        let root = ExchangeRoot::open(&base).unwrap();
        let exchange = root.process().unwrap();
        let ticket = exchange
            .offer("items", &[b"[1]".to_vec(), b"}".to_vec()])
            .unwrap();
        let text = fs::read_to_string(ticket.path()).unwrap();
        assert_eq!(
            text,
            format!("{{\"token\":\"{}\",\"items\":[1]}}", ticket.token())
        );
        assert_eq!(
            [
                mode(&base),
                mode(&root.0.folder),
                mode(exchange.folder()),
                mode(ticket.path())
            ],
            [0o700, 0o700, 0o700, 0o600]
        );
        let folder = exchange.folder().to_path_buf();
        drop(exchange);
        assert_eq!(entries(&folder).len(), 1, "a file keeps its folder");
        drop(ticket);
        assert!(!folder.exists());
        drop(root);
        assert_eq!(entries(&base), [""; 0]);
    }

    #[test]
    fn no_two_names_or_tokens_are_alike() {
        let base = tempfile::tempdir().unwrap();
        let root = ExchangeRoot::open(base.path()).unwrap();
        let exchange = root.process().unwrap();
        let tickets: Vec<Ticket> = (0..50).map(|_| exchange.ticket().unwrap()).collect();
        let mut names: Vec<String> = tickets
            .iter()
            .flat_map(|ticket| [ticket.path.display().to_string(), ticket.token.clone()])
            .collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 100);
    }

    #[test]
    fn an_answer_is_read_from_the_file_that_the_host_made_and_from_nowhere_else() {
        let base = tempfile::tempdir().unwrap();
        let secret = base.path().join("secret");
        fs::write(&secret, "not for you").unwrap();
        let root = ExchangeRoot::open(&base.path().join("x")).unwrap();
        let exchange = root.process().unwrap();

        type Put = fn(&Path, &Path);
        let put: [(&str, Put); 3] = [
            ("link", |path, secret| symlink(secret, path).unwrap()),
            ("other file", |path, _| fs::write(path, "other").unwrap()),
            ("folder", |path, _| fs::create_dir(path).unwrap()),
        ];
        for (what, put) in put {
            let ticket = exchange.ticket().unwrap();
            fs::remove_file(ticket.path()).unwrap();
            put(ticket.path(), &secret);
            let error = ticket.read(100).unwrap_err();
            assert_eq!(error.to_string(), "nothing was written into it", "{what}");
        }
        assert_eq!(fs::read_to_string(&secret).unwrap(), "not for you");

        let ticket = exchange.ticket().unwrap();
        let path = ticket.path().to_path_buf();
        fs::write(&path, "x".repeat(101)).unwrap();
        let error = ticket.read(100).unwrap_err();
        assert_eq!(error.to_string(), "it holds more than 100 bytes");
        assert!(!path.exists());
    }

    #[test]
    fn what_a_dead_host_left_is_removed_at_the_next_start_and_a_living_one_keeps_its_own() {
        let base = tempfile::tempdir().unwrap();
        let living = ExchangeRoot::open(base.path()).unwrap();
        let kept = living.process().unwrap().offer("items", &[]).unwrap();
        // A killed host drops nothing, but its lock is released.
        let dead = base.path().join("dead");
        fs::create_dir_all(dead.join("process")).unwrap();
        fs::write(dead.join("process/payload"), "a history").unwrap();
        fs::write(dead.with_extension(LOCK), "").unwrap();
        // One that another host is creating right now.
        fs::create_dir(base.path().join("fresh")).unwrap();
        // A lock without a folder, and a link in place of a folder.
        fs::write(base.path().join("early.lock"), "").unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("file"), "").unwrap();
        symlink(outside.path(), base.path().join("link")).unwrap();
        fs::write(base.path().join("link.lock"), "").unwrap();

        let next = ExchangeRoot::open(base.path()).unwrap();
        let left = entries(base.path());
        assert!(kept.path().exists());
        assert!(left.contains(&"fresh".to_owned()));
        assert!(
            !left.iter().any(|name| name.starts_with("dead")
                || name.starts_with("early")
                || name.starts_with("link")),
            "{left:?}"
        );
        assert_eq!(entries(outside.path()), ["file"]);
        assert_eq!(left.len(), 5, "two hosts and the fresh folder: {left:?}");
        drop(next);
    }
}

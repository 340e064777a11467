//! A list of the processes that a host runs, so that the next start can clean up after a killed host.
//!
//! The parent-death signal ends the processes that the host itself started, but not what *they* started. There is one
//! file per host. It identifies the host and each process by number and start time, within one boot and one PID
//! namespace, so a reused number is never taken for the recorded process.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use outrigger_stdx::sync::lock;

use crate::error::SandboxError;
use crate::processes::{procfs, tag, tree};

/// First word of every ledger file, with the format version.
const MAGIC: &str = "outrigger-ledger-1";

/// The ledger of this host. Cheap to clone. Pass it to [`crate::Spawner::with_ledger`], which then maintains it.
#[derive(Debug, Clone)]
pub struct Ledger(Arc<LedgerState>);

#[derive(Debug)]
struct LedgerState {
    dir: PathBuf,
    file: PathBuf,
    header: Header,
    entries: Mutex<BTreeMap<u32, Entry>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Header {
    boot: String,
    namespace: String,
    host: u32,
    host_start: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    pid: u32,
    start: u64,
    tag: Option<u64>,
    what: String,
}

/// A process of a dead host that [`Ledger::sweep`] cleaned up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swept {
    /// The process id.
    pub pid: u32,
    /// Its description, as recorded.
    pub what: String,
    /// How many processes of its tree were still running and have been killed.
    pub killed: usize,
}

impl Ledger {
    /// Opens the ledger of this host in a folder, which is created (mode 0700) if missing. Sweeps nothing yet.
    ///
    /// # Errors
    /// [`SandboxError::Ledger`] if the folder cannot be created.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self, SandboxError> {
        let host = std::process::id();
        let header = Header {
            boot: procfs::boot_id(),
            namespace: procfs::pid_namespace(),
            host,
            host_start: procfs::start_time(host).unwrap_or(0),
        };
        Self::open_as(dir.into(), header)
    }

    fn open_as(dir: PathBuf, header: Header) -> Result<Self, SandboxError> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)
            .map_err(ledger_error(&dir))?;
        let file = dir.join(format!("{}-{}.pids", header.host, header.host_start));
        Ok(Self(Arc::new(LedgerState {
            dir,
            file,
            header,
            entries: Mutex::default(),
        })))
    }

    /// Records a process. `what` describes it (one line); `start_time` is that of [`crate::start_time`].
    ///
    /// # Errors
    /// [`SandboxError::Ledger`] if the file cannot be written.
    pub fn record(&self, pid: u32, start_time: u64, what: &str) -> Result<(), SandboxError> {
        let entry = Entry {
            pid,
            start: start_time,
            tag: tag::of(pid),
            what: one_line(what),
        };
        let mut entries = self.entries();
        entries.insert(pid, entry);
        self.write(&entries)
    }

    /// Returns the folder of the ledger.
    pub(crate) fn folder(&self) -> &Path {
        &self.0.dir
    }

    /// Removes a process. A process that is not in the ledger is not an error. The file is removed with its last
    /// process.
    ///
    /// # Errors
    /// [`SandboxError::Ledger`] if the file cannot be written.
    pub fn forget(&self, pid: u32) -> Result<(), SandboxError> {
        let mut entries = self.entries();
        if entries.remove(&pid).is_none() {
            return Ok(());
        }
        self.write(&entries)
    }

    /// Kills what dead hosts have left running, with everything it started, and removes their files. A process is
    /// touched only if its host is dead and its start time (or the tag that its tree inherits) is the recorded one.
    /// Files of another PID namespace or format are left alone. Call it once at the start.
    ///
    /// # Errors
    /// [`SandboxError::Ledger`] if the folder cannot be read or a file cannot be removed.
    pub fn sweep(&self) -> Result<Vec<Swept>, SandboxError> {
        let mut swept = Vec::new();
        let files = fs::read_dir(&self.0.dir).map_err(ledger_error(&self.0.dir))?;
        for file in files.filter_map(|file| Some(file.ok()?.path())) {
            if !is_ledger(&file) || file == self.0.file {
                continue;
            }
            let Some((header, entries)) =
                outrigger_files::read_to_string(&file, outrigger_files::DATA)
                    .ok()
                    .and_then(|text| parse(&text))
            else {
                continue;
            };
            match self.fate(&header) {
                Fate::Keep => continue,
                Fate::Remove => {}
                Fate::Kill => swept.extend(entries.into_iter().filter_map(clean_up)),
            }
            match fs::remove_file(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(ledger_error(&file)(error));
                }
                _ => {}
            }
        }
        // After the processes that could create more of them.
        crate::fs::absent::sweep(&self.0.dir).map_err(ledger_error(&self.0.dir))?;
        Ok(swept)
    }

    /// Ends this host in order: none of its processes is left that could create forbidden files.
    pub fn end(&self) {
        if let Err(error) = crate::fs::absent::end(&self.0.dir) {
            tracing::debug!("{}: {error}", self.0.dir.display());
        }
    }

    /// Decides what to do with the file of another host.
    fn fate(&self, other: &Header) -> Fate {
        let own = &self.0.header;
        if other.boot != own.boot {
            // No process survives a reboot.
            Fate::Remove
        } else if other.namespace != own.namespace {
            // Its process ids mean nothing here, so whether it lives is unknown.
            Fate::Keep
        } else if procfs::stat(other.host)
            .is_some_and(|stat| stat.is_running() && stat.start == other.host_start)
        {
            Fate::Keep
        } else {
            Fate::Kill
        }
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<u32, Entry>> {
        // The map is consistent wherever a panic could happen.
        lock(&self.0.entries)
    }

    /// Replaces the file atomically: a reader sees the old or the new list, never half of one. Not synced to the
    /// disk, since no process survives a crash that would lose it.
    fn write(&self, entries: &BTreeMap<u32, Entry>) -> Result<(), SandboxError> {
        let file = &self.0.file;
        let result = if entries.is_empty() {
            fs::remove_file(file)
        } else {
            let draft = file.with_extension("draft");
            write_new(&draft, &render(&self.0.header, entries.values()))
                .and_then(|()| fs::rename(&draft, file))
        };
        match result {
            Err(error) if error.kind() == io::ErrorKind::NotFound && entries.is_empty() => Ok(()),
            other => other.map_err(ledger_error(file)),
        }
    }
}

enum Fate {
    Keep,
    Remove,
    Kill,
}

/// Kills what is left of one entry; `None` if nothing was left.
fn clean_up(entry: Entry) -> Option<Swept> {
    let is_ours = procfs::start_time(entry.pid) == Some(entry.start);
    if !is_ours && entry.tag.is_none() {
        return None;
    }
    let killed = tree::kill(tree::Root {
        pid: entry.pid,
        is_ours,
        tag: entry.tag,
    });
    (killed > 0).then_some(Swept {
        pid: entry.pid,
        what: entry.what,
        killed,
    })
}

/// A draft was left by a host that was killed while it wrote.
fn is_ledger(file: &Path) -> bool {
    file.extension()
        .is_some_and(|extension| extension == "pids" || extension == "draft")
}

fn ledger_error(path: &Path) -> impl FnOnce(io::Error) -> SandboxError + use<> {
    let path = path.to_owned();
    move |source| SandboxError::Ledger { path, source }
}

fn write_new(file: &Path, text: &str) -> io::Result<()> {
    use io::Write as _;
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(file)?;
    file.write_all(text.as_bytes())
}

fn one_line(what: &str) -> String {
    what.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(200)
        .collect()
}

/// Renders a header line, then one line per process: number, start time, tag (0: none), and description.
fn render<'a>(header: &Header, entries: impl Iterator<Item = &'a Entry>) -> String {
    let Header {
        boot,
        namespace,
        host,
        host_start,
    } = header;
    let mut text = format!("{MAGIC} {boot} {namespace} {host} {host_start}\n");
    for Entry {
        pid,
        start,
        tag,
        what,
    } in entries
    {
        text.push_str(&format!("{pid} {start} {} {what}\n", tag.unwrap_or(0)));
    }
    text
}

/// Returns `None` if the header is not ours; a line that is not ours is skipped.
fn parse(text: &str) -> Option<(Header, Vec<Entry>)> {
    let mut lines = text.lines();
    let mut words = lines.next()?.split(' ');
    if words.next()? != MAGIC {
        return None;
    }
    let header = Header {
        boot: words.next()?.to_owned(),
        namespace: words.next()?.to_owned(),
        host: words.next()?.parse().ok()?,
        host_start: words.next()?.parse().ok()?,
    };
    let entry = |line: &str| {
        let mut words = line.splitn(4, ' ');
        Some(Entry {
            pid: words.next()?.parse().ok()?,
            start: words.next()?.parse().ok()?,
            tag: Some(words.next()?.parse().ok()?).filter(|tag| tag::RANGE.contains(tag)),
            what: words.next()?.to_owned(),
        })
    };
    Some((header, lines.filter_map(entry).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Child, Spawner, Spec};

    fn header(host: u32, host_start: u64) -> Header {
        Header {
            boot: procfs::boot_id(),
            namespace: procfs::pid_namespace(),
            host,
            host_start,
        }
    }

    async fn sleeper() -> Child {
        Spawner::new()
            .unwrap()
            .spawn(Spec::new("/bin/sleep").arg("1000"))
            .await
            .unwrap()
    }

    fn is_running(pid: u32) -> bool {
        procfs::stat(pid).is_some_and(|stat| stat.is_running())
    }

    #[tokio::test]
    async fn sweeps_only_what_a_dead_host_left() {
        let me = std::process::id();
        let my_start = procfs::start_time(me).unwrap();
        let dead = header(me, my_start + 1);
        let elsewhere = Header {
            namespace: "pid:[1]".into(),
            ..dead.clone()
        };
        let last_boot = Header {
            boot: "yesterday".into(),
            ..dead.clone()
        };
        // (whose file, the recorded start time is right, killed, file is left)
        let cases = [
            (header(me, my_start), true, false, true),
            (dead.clone(), true, true, false),
            (dead, false, false, false),
            (elsewhere, true, false, true),
            (last_boot, true, false, false),
        ];
        for (host, is_right, killed, is_left) in cases {
            let dir = tempfile::tempdir().unwrap();
            let mut child = sleeper().await;
            let start = child.start_time() + u64::from(!is_right);
            let entry = Entry {
                pid: child.pid(),
                start,
                tag: None,
                what: "sleeper".into(),
            };
            let file = dir.path().join("other.pids");
            fs::write(&file, render(&host, [&entry].into_iter())).unwrap();

            let swept = Ledger::open(dir.path()).unwrap().sweep().unwrap();
            let expected = Swept {
                pid: child.pid(),
                what: "sleeper".into(),
                killed: 1,
            };
            assert_eq!(
                swept,
                if killed { vec![expected] } else { vec![] },
                "{host:?}"
            );
            if killed {
                assert_eq!(child.wait().await.unwrap().signal, Some(9));
            }
            assert_eq!(is_running(child.pid()), !killed, "{host:?}");
            assert_eq!(file.exists(), is_left, "{host:?}");
        }
    }

    #[test]
    fn a_file_survives_the_round_trip_and_strange_lines_are_skipped() {
        let head = header(7, 8);
        let entries = [
            Entry {
                pid: 1,
                start: 2,
                tag: Some(tag::RANGE.start),
                what: "bun  plugin host".into(),
            },
            Entry {
                pid: 3,
                start: 4,
                tag: None,
                what: one_line("two\nlines"),
            },
        ];
        let text = render(&head, entries.iter()) + "\nnonsense\n5 6\n";
        assert_eq!(parse(&text), Some((head, entries.to_vec())));
        assert_eq!(entries[1].what, "two lines");
        for strange in ["", "other-ledger 1 2 3 4", "outrigger-ledger-1 boot"] {
            assert_eq!(parse(strange), None, "{strange:?}");
        }
    }

    #[tokio::test]
    async fn the_spawner_keeps_it() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(dir.path().join("deep/ledger")).unwrap();
        let spawner = Spawner::new().unwrap().with_ledger(ledger.clone());
        let child = spawner
            .spawn(Spec::new("/bin/sleep").arg("1000"))
            .await
            .unwrap();
        let (_, entries) = parse(&fs::read_to_string(&ledger.0.file).unwrap()).unwrap();
        let found: Vec<_> = entries
            .iter()
            .map(|entry| (entry.pid, entry.start, entry.what.as_str()))
            .collect();
        assert_eq!(found, [(child.pid(), child.start_time(), "sleep")]);
        assert_eq!(ledger.sweep().unwrap(), [], "our own file is not swept");
        drop(child);
        for _ in 0..500 {
            if !ledger.0.file.exists() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("the entry is still there after the process was reaped");
    }
}

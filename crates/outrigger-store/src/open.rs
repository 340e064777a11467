//! Opening a file: lock, state, format, check. A foreign, newer or damaged file is not changed.

use std::fs::{File, OpenOptions as FileOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::StoreError;
use crate::migrations;

/// Options for opening a store.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Check the whole file even if it was closed cleanly.
    pub check: bool,
    /// Time that a write waits for another process's write.
    pub busy_timeout: Duration,
    /// Time that opening waits for another process that checks or creates the file.
    pub lock_timeout: Duration,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            check: false,
            busy_timeout: Duration::from_secs(10),
            lock_timeout: Duration::from_secs(60),
        }
    }
}

/// Result of opening a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenReport {
    /// The file did not exist and was created.
    pub created: bool,
    /// No other open store, in this process or another, used the file when it was opened. Then the process of every
    /// open turn is dead.
    pub alone: bool,
    /// The last process that used the file did not close it.
    pub unclean: bool,
    /// The whole file was checked (`PRAGMA quick_check`) and is intact.
    pub checked: bool,
    /// Format of the file before it was migrated.
    pub migrated_from: Option<u32>,
}

pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Held for as long as a store is open. SQLite's own locks cover the current write; this one covers the open store,
/// which distinguishes a log left by a killed process from one in use. It is `flock` on a separate file: closing any
/// descriptor of the database itself would release SQLite's locks.
pub(crate) struct Lock {
    file: File,
    pub(crate) alone: bool,
}

impl Lock {
    /// Acquires the lock, exclusively if no other process has it, else shared.
    fn acquire(path: &Path, timeout: Duration) -> Result<Self, StoreError> {
        let lock_path = beside(path, "-lock");
        let file = FileOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&lock_path)
            .map_err(|e| StoreError::open(path, &e))?;
        let deadline = Instant::now() + timeout;
        let alone = loop {
            match file.try_lock() {
                Ok(()) => break true,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(e)) if e.kind() == io::ErrorKind::Unsupported => {
                    break false;
                }
                Err(TryLockError::Error(e)) => return Err(StoreError::open(&lock_path, &e)),
            }
            match file.try_lock_shared() {
                Ok(()) => break false,
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(_) => {
                    return Err(StoreError::Busy {
                        path: path.to_path_buf(),
                    });
                }
            }
        };
        Ok(Self { file, alone })
    }

    /// Downgrades the lock to shared.
    fn share(&self, path: &Path) -> Result<(), StoreError> {
        if self.alone {
            self.file
                .lock_shared()
                .map_err(|e| StoreError::io(path, "share the lock of", e))?;
        }
        Ok(())
    }

    /// Acquires the lock for salvage: the file must not be in use. A folder that cannot be written has no lock and no
    /// writer.
    pub(crate) fn exclusive(path: &Path) -> Result<Option<Self>, StoreError> {
        match Self::acquire(path, Duration::ZERO) {
            Ok(lock) if lock.alone => Ok(Some(lock)),
            Ok(_) | Err(StoreError::Busy { .. }) => Err(StoreError::Busy {
                path: path.to_path_buf(),
            }),
            Err(_) => Ok(None),
        }
    }
}

/// An open file.
pub(crate) struct Opened {
    pub(crate) conn: Connection,
    pub(crate) lock: Lock,
    pub(crate) report: OpenReport,
}

/// Opens `path`, creating it and its folder if they do not exist.
pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<Opened, StoreError> {
    if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
        // Sessions contain source code and command output: only this user may read them.
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|e| StoreError::open(path, &e))?;
    }
    let lock = Lock::acquire(path, options.lock_timeout)?;
    let mut report = look(path, lock.alone)?;
    let mut conn = connect(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
        options,
    )?;
    let sql = |doing| move |e| StoreError::sqlite(path, doing, e);
    // Until the file is known to be intact and ours, closing must not write the log into it.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map_err(sql("open"))?;
    let found = recognise(&conn, path)?;
    if report.unclean || options.check {
        quick_check(&conn, path)?;
        report.checked = true;
    }
    conn.pragma_update(None, "synchronous", "NORMAL")
        .map_err(sql("open"))?;
    let newest = u32::try_from(migrations::STEPS.len()).unwrap_or(u32::MAX);
    if found < newest {
        if found == 0 {
            conn.pragma_update(None, "journal_mode", "WAL")
                .map_err(sql("open"))?;
        } else {
            report.migrated_from = Some(found);
        }
        migrations::migrate(&mut conn, migrations::STEPS)
            .map_err(sql("bring tables to the newest format"))?;
    }
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)
        .map_err(sql("open"))?;
    lock.share(path)?;
    Ok(Opened { conn, lock, report })
}

/// Checks a file before SQLite opens it. A missing one is created if no other process has it open.
fn look(path: &Path, alone: bool) -> Result<OpenReport, StoreError> {
    let main = size(path)?;
    let wal = size(&beside(path, "-wal"))?;
    let created = main.unwrap_or(0) == 0;
    if created && wal.unwrap_or(0) > 0 {
        // SQLite would treat the file as new and delete the write-ahead log with its content.
        return Err(damaged(
            path,
            "the file is empty or gone, but its write-ahead log is there",
        ));
    }
    if let Some(len @ 1..512) = main {
        // Shorter than the smallest page; SQLite would overwrite a file of one byte.
        return Err(damaged(path, &format!("the file is only {len} bytes long")));
    }
    if main.is_none() && alone {
        create(path)?;
    }
    Ok(OpenReport {
        created,
        alone,
        unclean: alone && wal.is_some(),
        ..OpenReport::default()
    })
}

/// Opens a connection with the common settings.
pub(crate) fn connect(
    path: &Path,
    flags: OpenFlags,
    options: &OpenOptions,
) -> Result<Connection, StoreError> {
    let conn = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(|e| StoreError::sqlite(path, "open", e))?;
    conn.busy_timeout(options.busy_timeout)
        .map_err(|e| StoreError::sqlite(path, "open", e))?;
    conn.set_prepared_statement_cache_capacity(48);
    Ok(conn)
}

/// Returns the file's format, after checking that the file is intact as far as its first page shows, ours, and not
/// newer.
fn recognise(conn: &Connection, path: &Path) -> Result<u32, StoreError> {
    let sql = |e| StoreError::sqlite(path, "open", e);
    let found = migrations::version(conn).map_err(sql)?;
    let application: i32 = conn
        .query_row("PRAGMA application_id", [], |row| row.get(0))
        .map_err(sql)?;
    let foreign = match found {
        0 => {
            conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| {
                row.get::<_, i64>(0)
            })
            .map_err(sql)?
                > 0
        }
        _ => application != migrations::APPLICATION_ID,
    };
    if foreign {
        return Err(StoreError::Foreign {
            path: path.to_path_buf(),
        });
    }
    let known = u32::try_from(migrations::STEPS.len()).unwrap_or(u32::MAX);
    if found > known {
        return Err(StoreError::Newer {
            path: path.to_path_buf(),
            found,
            known,
        });
    }
    Ok(found)
}

fn quick_check(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    let sql = |e| StoreError::sqlite(path, "check", e);
    let mut statement = conn.prepare("PRAGMA quick_check(5)").map_err(sql)?;
    let lines = statement
        .query_map([], |row| row.get::<_, String>(0))
        .and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>)
        .map_err(sql)?;
    match lines.as_slice() {
        [line] if line == "ok" => Ok(()),
        lines => Err(damaged(path, &lines.join("; ").replace('\n', " "))),
    }
}

fn damaged(path: &Path, detail: &str) -> StoreError {
    StoreError::Damaged {
        path: path.to_path_buf(),
        detail: detail.to_owned(),
    }
}

/// Returns the size of a file; `None` if it does not exist.
fn size(path: &Path) -> Result<Option<u64>, StoreError> {
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_dir() => Err(StoreError::Open {
            path: path.to_path_buf(),
            message: "it is a folder".into(),
        }),
        Ok(meta) => Ok(Some(meta.len())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(StoreError::open(path, &e)),
    }
}

/// Creates the empty file with its mode; SQLite gives its helper files the same mode.
fn create(path: &Path) -> Result<(), StoreError> {
    match FileOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
    {
        Ok(_) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(StoreError::open(path, &e)),
    }
}

//! Lock files. They are never removed: removing one would let two processes hold it.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Pause between two attempts to lock.
const PAUSE: Duration = Duration::from_millis(10);

/// Opens a lock file, creating it if it is missing.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true).open(path)
}

/// Locks a file, waiting up to `most` for others. Blocking.
///
/// # Errors
/// It cannot be opened, or stays locked.
pub fn hold(path: &Path, most: Duration) -> io::Result<File> {
    let file = open(path)?;
    let end = Instant::now() + most;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() < end => std::thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => {
                let why = format!(
                    "another Outrigger has held {} for {} s: let it go on, or end it",
                    path.display(),
                    most.as_secs()
                );
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
        }
    }
}

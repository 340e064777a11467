//! Files that are there to be locked. They stay: removing one would let two hold it.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Between two looks at a lock that another has.
const PAUSE: Duration = Duration::from_millis(10);

/// Opens one, and makes it where it is not there yet.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true).open(path)
}

/// Locks one, and waits for others no longer than so. Blocking.
///
/// # Errors
/// It cannot be opened, or another has it all the time.
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

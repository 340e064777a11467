//! Files that are there to be locked. They stay: removing one would let two hold it.

use std::fs::File;
use std::io;
use std::path::Path;

/// Opens one, and makes it where it is not there yet.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true).open(path)
}

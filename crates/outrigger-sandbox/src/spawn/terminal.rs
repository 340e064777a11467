//! A pseudo terminal for a user's shell.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::spawn::async_fd::register;

/// The size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Lines.
    pub rows: u16,
    /// Columns.
    pub cols: u16,
}

impl Default for Size {
    /// The traditional size of terminals, 24 by 80.
    fn default() -> Self {
        Self { rows: 24, cols: 80 }
    }
}

impl From<Size> for Winsize {
    fn from(size: Size) -> Self {
        Self {
            ws_row: size.rows,
            ws_col: size.cols,
            ws_xpixel: 0,
            ws_ypixel: 0,
        }
    }
}

/// Creates a pair: the host's end and the process's.
pub(crate) fn pair(size: Size) -> io::Result<(OwnedFd, OwnedFd)> {
    let host = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&host)?;
    unlockpt(&host)?;
    let name = ptsname(&host, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let process = rustix::fs::open(name.as_c_str(), flags, Mode::empty())?;
    tcsetwinsize(&process, size.into())?;
    Ok((host, process))
}

/// The host's end of a process's terminal. Several tasks may read and write; each byte is read once.
#[derive(Debug)]
pub struct Terminal(AsyncFd<OwnedFd>);

impl Terminal {
    /// Must be called within the runtime.
    pub(crate) fn new(host: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&host, true)?;
        register(host, Interest::READABLE | Interest::WRITABLE).map(Self)
    }

    /// Reads what the process wrote; 0 once no process has the terminal open.
    ///
    /// # Errors
    /// The system's error.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.0.readable().await?;
            let tried = ready.try_io(|fd| Ok(rustix::io::read(fd.as_fd(), &mut *buffer)?));
            match tried {
                // Linux returns EIO where a pipe would be at its end.
                Ok(Err(error)) if error.raw_os_error() == Some(libc::EIO) => return Ok(0),
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(done) => return done,
                Err(_would_block) => {}
            }
        }
    }

    /// Writes all of it, as if it were typed. Waits while the process does not read.
    ///
    /// # Errors
    /// The system's error.
    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let mut ready = self.0.writable().await?;
            match ready.try_io(|fd| Ok(rustix::io::write(fd.as_fd(), bytes)?)) {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(done) => bytes = bytes.get(done?..).unwrap_or_default(),
                Err(_would_block) => {}
            }
        }
        Ok(())
    }

    /// Changes its size; the process gets SIGWINCH.
    ///
    /// # Errors
    /// The system's error.
    pub fn resize(&self, size: Size) -> io::Result<()> {
        Ok(tcsetwinsize(self.0.get_ref(), size.into())?)
    }
}

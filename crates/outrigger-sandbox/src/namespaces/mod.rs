//! Mount and PID namespaces: the process's view of the file system, and its init.

pub(crate) mod init;
pub(crate) mod release;
pub(crate) mod support;
mod syscall;
pub(crate) mod unshare;
pub(crate) mod view;

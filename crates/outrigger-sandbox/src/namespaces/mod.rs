//! Mount and PID namespaces: what a process sees, and the init that it gets.

pub(crate) mod init;
pub(crate) mod release;
mod syscall;
pub(crate) mod unshare;
pub(crate) mod view;

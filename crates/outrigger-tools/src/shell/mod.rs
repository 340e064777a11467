//! Command lines: the permission questions before one runs, and its output.

pub(crate) mod capture;
pub(crate) mod command_line;
pub(crate) mod running;

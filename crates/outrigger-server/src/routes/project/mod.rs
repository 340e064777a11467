//! Routes of the project folder: files, version control, projects.

pub(crate) mod file;
pub(crate) mod projects;
pub(crate) mod sync;
pub(crate) mod vcs;
pub(crate) mod workspace;

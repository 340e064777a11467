//! Routes of the project folder: files, version control, projects.

pub(crate) mod file;
#[cfg(test)]
mod file_routes;
pub(crate) mod projects;
pub(crate) mod sync;
pub(crate) mod vcs;
pub(crate) mod workspace;

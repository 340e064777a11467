//! The router in process, over a real agent in folders of its own.

#[cfg(test)]
mod experimental;
#[cfg(test)]
mod file;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod project;
#[cfg(test)]
mod pty;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tui;
#[cfg(test)]
mod vcs;

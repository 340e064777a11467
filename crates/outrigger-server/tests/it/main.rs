//! The router over a real agent: fresh folders for each test, a scripted model on loopback, no port of our own.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests are tests; clippy.toml only knows the functions"
)]

mod access_matrix;
mod client;
mod compaction;
mod conversation;
mod credentials;
mod experimental;
mod file;
mod growth;
mod harness;
mod home_project;
mod hub_folders;
mod known_keys;
mod language;
mod lists;
mod openapi;
mod parity;
mod patch;
mod permission;
mod project;
mod pty;
mod question;
mod repeats;
mod request_options;
mod revert;
mod session_edit;
mod shell;
mod strangers;
mod structured;
mod subagents;
mod subtask;
mod support;
mod swapped_folders;
mod tui;
mod turns;
mod unavailable_model;
mod unprivileged;
mod vcs;
mod workspace;

//! Plugins in real processes of Bun (or else Node): loading, composing, hanging, crashing, installing.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests; clippy only exempts the test functions"
)]

mod blame;
mod breaker;
mod bun;
mod bypass;
mod command_events;
mod commands;
mod config_authors;
mod contracts;
mod custom_points;
mod events;
mod faults;
mod flags;
mod heal;
mod hooks;
mod install;
mod life;
mod limits;
mod loading;
mod manifest;
mod many;
mod mirror;
mod misbehaving;
mod quarantine;
mod reconfigure;
mod stuck;
mod subplugins;
mod support;
mod tool_files;
mod tools;
mod unprivileged;

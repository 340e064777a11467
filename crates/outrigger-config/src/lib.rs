//! Configuration: OpenCode's `opencode.json` family and our own `outrigger.toml`.
//!
//! This crate is for reading both, for merging their layers, and for telling where each value came from. It is not for
//! acting on what it read: it starts nothing, installs nothing, and never writes to or creates a folder (the reference
//! adds `$schema` to the user's files and makes folders whose presence changes the next run; this crate does neither).
//!
//! Entry points: [`load`] for everything at once, [`OpenCodeConfig::from_value`] to read the document again after
//! `config` hooks changed it, [`skills::discover`] for skills, [`Settings`] for `outrigger.toml`.
//!
//! Order of the layers, lowest precedence first (reference 1.18.33): global folder, `OPENCODE_CONFIG`, project files from
//! the worktree's root down to the working directory, each config folder with its files, commands, agents, modes and
//! plugins, `OPENCODE_CONFIG_CONTENT`, the administrator's folder.

mod check;
pub mod claude;
pub mod claude_hooks;
mod discovery;
mod edit;
mod edit_toml;
mod entries;
mod error;
mod finish;
pub mod forbid;
mod jsonc;
mod layers;
mod links;
mod load;
mod loaded;
mod markdown;
mod merge;
mod named_files;
mod normalize;
mod origin;
mod paths;
pub mod permission;
mod plugin_list;
pub mod policy;
mod project;
mod project_asks;
pub mod settings;
mod show;
pub mod skills;
mod strict_toml;
mod substitute;
mod typed;
mod unmatched;
mod username;

pub use discovery::{PLUGIN_PATH, PluginRoots, Switched};
pub use edit::{check_changes, edited, global_file, project_file};
pub use edit_toml::{quoted, set_in_toml};
pub use error::{ConfigError, ConfigProblem};
pub use forbid::{FilePattern, Forbid, ProgramPattern};
pub use links::Links;
pub use load::{LoadOptions, Loaded, load, load_global};
pub use merge::merge;
pub use named_files::{IS_RUN, files_run_by};
pub use origin::Origin;
pub use plugin_list::{
    LEFT_OUT, PluginScope, PluginSource, PluginSpec, SkipReason, SkippedPlugin, package_name,
};
pub use policy::{Policy, PolicyFile};
pub use project::{Asked, ProjectConfig, TRUST_PROJECT, unknown};
pub use settings::Settings;
pub use show::{Shown, redacted, restore};
pub use strict_toml::{place_in_toml, read_toml};
pub use typed::{AgentEntry, AgentMode, CommandEntry, Compaction, OpenCodeConfig};

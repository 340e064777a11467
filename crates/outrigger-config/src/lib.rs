//! Configuration: OpenCode's `opencode.json` family and Outrigger's own `outrigger.toml`.
//!
//! This crate reads both, merges their layers, and records the origin of each value. It does not act on what it read: it
//! starts nothing, installs nothing, and never writes to or creates a folder (OpenCode adds `$schema` to the user's files
//! and creates folders whose presence changes the next run; this crate does neither).
//!
//! Entry points: [`load`] for everything at once, [`OpenCodeConfig::from_value`] to read the document again after
//! `config` hooks changed it, [`skills::discover`] for skills, [`Settings`] for `outrigger.toml`.
//!
//! Order of the layers, lowest precedence first (OpenCode 1.18.33): global folder, `OPENCODE_CONFIG`, project files from
//! the worktree's root down to the working directory, each config folder with its files, commands, agents, modes and
//! plugins, `OPENCODE_CONFIG_CONTENT`, the administrator's folder.

pub mod claude;
mod error;
mod load;
mod opencode;
mod origin;
mod paths;
mod plugin_manifest;
pub mod policy;
mod project;
mod redact;
#[cfg(test)]
mod same_names;
pub mod settings;
mod show;
mod suggest;
mod toml;

pub use claude::{hooks as claude_hooks, skills};
pub use error::{ConfigError, ConfigProblem};
pub use load::discovery::{PLUGIN_PATH, PluginRoots, Switched};
pub use load::links::Links;
pub use load::loaded::Loaded;
pub use load::options::LoadOptions;
pub use load::plugin_folders::{PluginFolders, plugin_folders};
pub use load::{load, load_global, load_global_redacted, load_settings};
pub use opencode::check::keys::CONFIG as OPENCODE_JSON;
pub use opencode::edit::{
    check_changes, edited, global_file, project_file, with_item, without, without_items,
};
pub use opencode::merge::merge;
pub use opencode::permission;
pub use opencode::plugin_list::{
    LEFT_OUT, PluginScope, PluginSource, PluginSpec, SkipReason, SkippedPlugin, package_name,
};
pub use opencode::typed::{AgentEntry, AgentMode, CommandEntry, Compaction, OpenCodeConfig};
pub use origin::Origin;
pub use plugin_manifest::MANIFEST as PLUGIN_MANIFEST;
pub use policy::forbid::{self, FilePattern, Forbid, ProgramPattern};
pub use policy::{Policy, PolicyFile};
pub use project::hook_programs::HookPrograms;
pub use project::named_files::{IS_RUN, files_run_by};
pub use project::provider_choice::narrow_providers;
pub use project::{ProjectConfig, TRUST_PROJECT, TrustRequest, unknown};
pub use redact::{
    names_secret, redacted, redacted_text, restore as restore_secrets, without as without_secrets,
};
pub use settings::Settings;
pub use show::Shown;
pub use toml::edit::{quoted, set_in_toml};
pub use toml::file::{read_settings, write_grant, write_settings};
pub use toml::strict::{place_in_toml, read_toml};

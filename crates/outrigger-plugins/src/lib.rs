//! Finding, installing, loading and supervising plugins, and binding them to the hook pipeline.
//!
//! This crate is for the way of a plugin from an entry of the configuration to a handler at a hook point: [`resolve`] and
//! [`Cache`] find and install it, [`Plugins::load`] starts the processes that it lives in, [`Pipeline::run`] calls its
//! hooks, [`Plugins::tools`] its tools. A plugin that fails, hangs or dies is listed with the cause; nothing here fails
//! as a whole.
//!
//! It is not for what a hook may do (that is the kernel's table), for talking to a process (`outrigger-js`), or for
//! sessions: what plugins ask of the host goes to the [`outrigger_js::HostHandler`] that the caller passes in.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod access;
mod admit;
mod apart;
mod auth;
mod blame;
mod breakers;
mod brought_box;
mod charges;
mod choose;
mod command_hooks;
mod cost;
mod critical;
mod custom_points;
mod digest;
mod divide;
mod error;
mod failures;
mod gauge;
mod granted;
mod grants;
mod group;
mod health;
mod home;
mod hosted;
mod launch;
mod life;
mod manifest;
pub mod matrix;
mod network;
mod options;
mod own_reach;
mod payload;
mod perf;
mod pipeline;
mod plugin_host;
mod plugins;
mod processes;
mod provider;
mod reconfigure;
mod registry;
mod relay;
mod settings;
mod skills;
mod snapshot;
mod status;
mod tmux;
mod tools;
mod trail;
mod uncovered;
mod waiting;
mod watch;

pub use access::Access;
pub use admit::project_of;
pub use auth::{AuthHook, Begun, FetchStream, Flow, LoadedAuth, PluginFetch, ProviderHook};
pub use choose::setup_runtime;
pub use cost::{Cost, Costs};
pub use critical::refusing_hooks;
pub use custom_points::list::{EventRow, PointRow};
pub use digest::hash;
pub use error::PluginError;
pub use gauge::ProcessLimits;
pub use granted::Grant;
pub use launch::CoversFn;
pub use manifest::ManifestShown;
pub use options::{AdmitFn, ConsentFn, LoadOptions, ProgressFn, SERVER_URL};
pub use outrigger_claude_hooks::{
    CommandFile, CommandHooks, CommandHost, SessionAbout, guarded_as, known_as,
};
pub use outrigger_plugin_package::host_modules::{Modules, modules, setup};
pub use outrigger_plugin_package::{
    BUN_SPEC, BUN_VERSION, Cache, DEPRECATED, InstalledPackage, Installer, LOCK_FILE, LockFile,
    Locked, OPENCODE_VERSION, PackageError, ResolvedPlugin, Source, bun_path, file_url, name_of,
    resolve, resolve_package, resolve_path, setup_bun,
};
pub use outrigger_plugin_status::{
    BreakerState, BreakerStatus, Cause, Fetched, LifeState, Notice, NoticeFn, Progress, Stage,
};
pub use outrigger_plugin_trust::kept_code::{KeptCode, kept_code};
pub use outrigger_plugin_trust::{
    Changes, FileChange, LetCount, ProjectLock, Review, ReviewOptions, Reviewed, SIGNATURE_FILE,
    Signed, TRUST_FILE, TrustError, TrustFn, TrustQuestion, TrustShown, Trusted, TrustedBy,
    Verification, accept, review, trust_no_newcomers, verify,
};
pub use own_reach::OwnReach;
pub use perf::{Perf, PerfRow};
pub use pipeline::{Pipeline, PipelineContext, PipelineResult};
pub use plugins::Plugins;
pub use provider::PluginProvider;
pub use settings::{Deadlines, PluginRules, PluginSettings, Restarts};
pub use snapshot::{Snapshot, SnapshotEntry};
pub use status::{PluginStatus, ProcessUse};
pub use tmux::{TMUX_TMPDIR, tmux_dir};
pub use tools::{PluginToolEntry, ToolRunner};

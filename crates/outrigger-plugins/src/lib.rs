//! Finding, installing, loading and supervising plugins, and binding them to the hook pipeline.
//!
//! This crate covers the path of a plugin from a configuration entry to a handler at a hook point: [`resolve`] and
//! [`Cache`] find and install it, [`Plugins::load`] starts the processes that it runs in, [`Pipeline::run`] calls its
//! hooks, [`Plugins::tools`] returns its tools. A plugin that fails, hangs or dies is listed with the cause; nothing here
//! fails as a whole.
//!
//! It does not cover what a hook may do (the kernel's table), the protocol of a process (`outrigger-js`), or sessions:
//! requests of plugins to the host go to the [`outrigger_js::HostHandler`] that the caller passes in.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod admission;
mod contributions;
pub mod matrix;
mod options;
mod plugin_host;
mod plugins;
mod snapshot;

pub use admission::runtime_selection::{answered, may_be_fetched, setup_runtime};
pub use contributions::auth::{
    AuthHook, Begun, FetchStream, Flow, LoadedAuth, PluginFetch, ProviderHook,
};
pub use contributions::plugin_reach::PluginReach;
pub use contributions::points::{EventRow, PointRow};
pub use contributions::provider::{PluginProvider, ProviderRow};
pub use contributions::tools::{PluginToolEntry, ToolRunner};
pub use options::{AdmitFn, ConsentFn, LoadOptions, SERVER_URL};
pub use outrigger_claude_hooks::{
    CommandFile, CommandHooks, CommandHost, SessionAbout, guarded_as, known_as,
};
pub use outrigger_plugin_hooks::{
    Cost, Costs, Perf, PerfRow, Pipeline, PipelineContext, PipelineResult, hash,
};
pub use outrigger_plugin_package::host_modules::{Modules, modules, setup};
pub use outrigger_plugin_package::{
    BUN_SPEC, BUN_VERSION, Cache, DEPRECATED, InstalledPackage, Installer, LOCK_FILE, LockFile,
    Locked, OPENCODE_VERSION, PackageError, ResolvedPlugin, Source, bun_path, cache_root, file_url,
    name_of, resolve, resolve_package, resolve_path, setup_bun,
};
pub use outrigger_plugin_registry::access::critical::refusing_hooks;
pub use outrigger_plugin_registry::access::manifest::ManifestShown;
pub use outrigger_plugin_registry::access::rights::Access;
pub use outrigger_plugin_registry::access::settings::{
    Deadlines, PluginRules, PluginSettings, ProcessLimits, Restarts,
};
pub use outrigger_plugin_registry::access::user_grants::Grant;
pub use outrigger_plugin_registry::{PluginError, PluginStatus, UserGrants};
pub use outrigger_plugin_status::{
    BreakerState, BreakerStatus, Cause, Fetched, LifeState, Notice, NoticeFn, ProcessUse, Progress,
    ProgressFn, Stage,
};
pub use outrigger_plugin_supervisor::launch::CoversFn;
pub use outrigger_plugin_supervisor::launch::tmux::{TMUX_TMPDIR, tmux_dir};
pub use outrigger_plugin_trust::kept_code::{KeptCode, keep_programs, kept_code};
pub use outrigger_plugin_trust::{
    Changes, FileChange, LetCount, ProjectLock, Review, ReviewOptions, Reviewed, SIGNATURE_FILE,
    Signed, TRUST_FILE, TrustError, TrustFn, TrustQuestion, TrustShown, Trusted, TrustedBy,
    Verification, accept, project_of, review, trust_no_newcomers, verify,
};
pub use plugins::Plugins;
pub use snapshot::{Snapshot, SnapshotEntry};

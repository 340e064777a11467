//! From an entry of the `plugin` list to files that can be imported: the meaning of a spec ([`Source`]), packages from npm
//! in a cache ([`Cache`]) and its records ([`LockFile`]), the entry of a package and its manifest ([`ResolvedPlugin`]); Bun
//! and the packages of the host itself. Nothing here runs a plugin or decides whether one may run.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod bun;
pub mod custom_points;
mod declared;
mod error;
mod growth;
pub mod host_modules;
mod install;
mod installer;
pub mod lock;
pub mod manifest_file;
mod resolve;
pub mod semver;
mod spec;

pub use bun::{bun_path, setup_bun};
pub use declared::{name_of, resolve};
pub use error::PackageError;
pub use install::{Cache, InstalledPackage, cache_root};
pub use installer::Installer;
pub use lock::{LOCK_FILE, LockFile, Locked};
pub use resolve::{
    OPENCODE_VERSION, ResolvedPlugin, find_file, hosted_entry, resolve_package, resolve_path,
};
pub use spec::{DEPRECATED, Source, file_url};

/// The version that is fetched.
pub const BUN_VERSION: &str = "1.4.5";

/// Name of the fetched program in progress reports.
pub const BUN_SPEC: &str = "bun@1.4.5";

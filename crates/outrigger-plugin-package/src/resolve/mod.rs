//! From an entry of the `plugin` list to a file that can be imported.
//!
//! Reads the disk, changes nothing, and never uses the network: a package that must be installed first goes through
//! [`crate::install`].

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use outrigger_protocol::manifest::{MANIFEST_FILE, Manifest};
use outrigger_sandbox::paths::{self, Roots};
use serde_json::Value;

use crate::error::PackageError;
use crate::semver;
use crate::spec::{Source, file_url};

/// The OpenCode version that this host is compatible with; `engines.opencode` is checked against it.
pub const OPENCODE_VERSION: &str = "1.18.33";

/// Index files of a folder, in the order in which they are tried.
const INDEX: &[&str] = &[
    "index.ts",
    "index.tsx",
    "index.js",
    "index.mjs",
    "index.cjs",
];

/// Extensions that an entry may omit; Bun finds such files.
const EXTENSIONS: &[&str] = &["ts", "tsx", "js", "mjs", "cjs", "mts", "cts", "jsx"];

/// An existing plugin that can be imported.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedPlugin {
    /// Name in lists and logs: the package's name, or that of the file or folder.
    pub id: String,
    /// Spec as declared.
    pub spec: String,
    /// `file://` URL of the module.
    pub entry: String,
    /// Path of the module.
    pub file: PathBuf,
    /// All files that start code of its package: the entry, and those of the plugins that it hosts. A hosted plugin has
    /// those of its host.
    pub entries: Vec<PathBuf>,
    /// Version of the package, if any.
    pub version: Option<String>,
    /// Folder of the package, or of the file.
    pub dir: PathBuf,
    /// Declared by path, so a module object must name itself.
    pub from_path: bool,
    /// Second argument of the plugin function.
    pub options: Option<Value>,
    /// Set for a tool file; its tools are named after it ([`outrigger_protocol::rpc::PluginEntry::tools`]).
    pub tools: Option<String>,
    /// Its `outrigger.plugin.toml`, if it has one.
    pub manifest: Option<Box<Manifest>>,
}

impl ResolvedPlugin {
    /// Returns whether it was declared as a file by its path, and not as a package or its folder.
    #[must_use]
    pub fn is_file(&self) -> bool {
        let source = Source::parse(&self.spec, &self.dir);
        self.from_path && !matches!(source, Ok(Source::Path(path)) if path.is_dir())
    }
}

/// Resolves a path spec: a file, a package folder, or a folder with an index file.
///
/// # Errors
/// `plugin.not_found`, `plugin.no_entry`, and those of [`resolve_package`].
pub fn resolve_path(spec: &str, id: &str, path: &Path) -> Result<ResolvedPlugin, PackageError> {
    let meta = std::fs::metadata(path).map_err(|_| PackageError::NotFound {
        spec: spec.to_owned(),
        path: path.to_owned(),
    })?;
    if meta.is_dir() {
        return resolve_package(spec, id, path, true);
    }
    let dir = path.parent().unwrap_or(path);
    // The runtime follows links, and files next to the target can be read.
    let real = path.canonicalize().ok().filter(|real| {
        path.is_symlink() && dir.canonicalize().is_ok_and(|dir| real.starts_with(dir))
    });
    let path = real.as_deref().unwrap_or(path);
    // A folder of plugins may contain a manifest too: it belongs to the file that it names.
    let own = |manifest: &Manifest| {
        let entry = manifest.entry.as_deref().map(|entry| dir.join(entry));
        entry.is_some_and(|entry| entry.canonicalize().ok() == path.canonicalize().ok())
    };
    let manifest = if dir.join(MANIFEST_FILE).is_file() {
        crate::manifest_file::read(spec, dir)?.filter(own)
    } else {
        None
    };
    Ok(ResolvedPlugin {
        id: manifest
            .as_ref()
            .map_or_else(|| id.to_owned(), |it| it.id.clone()),
        spec: spec.to_owned(),
        entry: file_url(path),
        file: path.to_owned(),
        entries: entries(path, dir, manifest.as_ref()),
        version: manifest.as_ref().map(|it| it.version.clone()),
        dir: dir.to_owned(),
        from_path: true,
        options: None,
        tools: None,
        manifest: manifest.map(Box::new),
    })
}

/// Resolves the entry of a package folder: `exports["./server"]`, then `main`, then the folder itself (`module`, index).
/// A package from npm with `exports` and neither of the first two is not a server plugin.
///
/// # Errors
/// `plugin.manifest`, `plugin.no_entry`, `plugin.entry_missing`, `plugin.entry_outside`, and for packages from npm
/// `plugin.no_server_entry` and `plugin.incompatible`.
pub fn resolve_package(
    spec: &str,
    id: &str,
    dir: &Path,
    from_path: bool,
) -> Result<ResolvedPlugin, PackageError> {
    let package = Package {
        spec,
        dir,
        from_path,
    };
    let manifest = package.manifest()?;
    if !from_path {
        package.check_engine(&manifest)?;
    }
    let own = crate::manifest_file::read(spec, dir)?;
    let file = match own.as_ref().and_then(|own| own.entry.as_deref()) {
        Some(entry) => package.inside(entry)?,
        None => package.entry(&manifest)?,
    };
    let name = manifest
        .get("name")
        .and_then(Value::as_str)
        .filter(|_| from_path)
        .unwrap_or(id);
    let name = own.as_ref().map_or(name, |own| &own.id);
    Ok(ResolvedPlugin {
        id: name.to_owned(),
        spec: spec.to_owned(),
        entry: file_url(&file),
        entries: entries(&file, dir, own.as_ref()),
        file,
        version: match &own {
            Some(own) => Some(own.version.clone()),
            None => text(&manifest, "version").map(str::to_owned),
        },
        dir: dir.to_owned(),
        from_path,
        options: None,
        tools: None,
        manifest: own.map(Box::new),
    })
}

fn entries(file: &Path, dir: &Path, manifest: Option<&Manifest>) -> Vec<PathBuf> {
    let hosted = manifest
        .into_iter()
        .flat_map(|it| &it.subplugins)
        .map(|own| dir.join(&own.entry));
    std::iter::once(file.to_owned()).chain(hosted).collect()
}

/// The file of a hosted plugin, inside the package of its host, and its address.
///
/// # Errors
/// `plugin.entry_outside`, `plugin.entry_missing`.
pub fn hosted_entry(host: &ResolvedPlugin, entry: &str) -> Result<(PathBuf, String), PackageError> {
    let package = Package {
        spec: &host.spec,
        dir: &host.dir,
        from_path: host.from_path,
    };
    let file = package.inside(entry)?;
    let url = file_url(&file);
    Ok((file, url))
}

struct Package<'a> {
    spec: &'a str,
    dir: &'a Path,
    from_path: bool,
}

impl Package<'_> {
    fn spec(&self) -> String {
        self.spec.to_owned()
    }

    // A folder without package.json, declared by path, is treated as a package with an empty one.
    fn manifest(&self) -> Result<Value, PackageError> {
        let path = self.dir.join("package.json");
        let wrong = |message: String| PackageError::Manifest {
            spec: self.spec(),
            path: path.clone(),
            message,
        };
        match outrigger_files::read_to_string(&path, outrigger_files::SETTINGS) {
            Ok(text) => {
                // Editors on Windows write a byte-order mark, and npm accepts it.
                let text = text.trim_start_matches('\u{feff}');
                serde_json::from_str(text).map_err(|error| wrong(error.to_string()))
            }
            Err(error) if self.from_path && error.kind() == std::io::ErrorKind::NotFound => {
                Ok(Value::Null)
            }
            Err(error) => Err(wrong(error.to_string())),
        }
    }

    fn check_engine(&self, manifest: &Value) -> Result<(), PackageError> {
        match manifest
            .pointer("/engines/opencode")
            .and_then(Value::as_str)
        {
            Some(wanted) if !semver::satisfies(OPENCODE_VERSION, wanted) => {
                Err(PackageError::Incompatible {
                    spec: self.spec(),
                    wanted: wanted.to_owned(),
                    have: OPENCODE_VERSION.to_owned(),
                })
            }
            _ => Ok(()),
        }
    }

    fn entry(&self, manifest: &Value) -> Result<PathBuf, PackageError> {
        let exports = manifest.get("exports");
        let server = exports.and_then(|e| e.get("./server")).and_then(target);
        if let Some(entry) = server.or_else(|| text(manifest, "main")) {
            return self.inside(entry);
        }
        if exports.is_some_and(Value::is_object) && !self.from_path {
            return Err(PackageError::NoServerEntry { spec: self.spec() });
        }
        // Bun uses `module` only if the package has no `exports`.
        if let Some(module) = text(manifest, "module").filter(|_| exports.is_none()) {
            return self.inside(module);
        }
        match index_of(self.dir) {
            Some(file) => self.checked(&file, &file.to_string_lossy()),
            None => Err(PackageError::NoEntry {
                spec: self.spec(),
                dir: self.dir.to_owned(),
                described: !manifest.is_null(),
            }),
        }
    }

    fn inside(&self, entry: &str) -> Result<PathBuf, PackageError> {
        let wanted = paths::resolve(self.dir, Path::new(entry));
        if Path::new(entry).is_absolute()
            || !wanted.starts_with(paths::resolve(self.dir, Path::new(".")))
        {
            return Err(self.outside(entry));
        }
        let file = find_file(&wanted).ok_or_else(|| PackageError::EntryMissing {
            spec: self.spec(),
            entry: wanted.clone(),
        })?;
        self.checked(&file, entry)
    }

    // A link inside the package may point anywhere; npm creates none, but a package by path may contain one.
    fn checked(&self, file: &Path, entry: &str) -> Result<PathBuf, PackageError> {
        Roots::new([self.dir])
            .contains(file)
            .map_err(|_| self.outside(entry))
    }

    fn outside(&self, entry: &str) -> PackageError {
        PackageError::EntryOutside {
            spec: self.spec(),
            entry: entry.to_owned(),
        }
    }
}

fn text<'a>(manifest: &'a Value, key: &str) -> Option<&'a str> {
    manifest
        .get(key)
        .and_then(Value::as_str)
        .map(str::trim)
        .filter(|text| !text.is_empty())
}

// `"./server": "./x.js"` or `{"import": …, "default": …}`, with nested conditions.
fn target(value: &Value) -> Option<&str> {
    match value {
        Value::String(path) => Some(path),
        Value::Object(map) => ["import", "default"]
            .iter()
            .find_map(|key| map.get(*key).and_then(target)),
        _ => None,
    }
}

/// Returns the file that an entry means: itself, one with an extension that the runtime tries, or the index of a folder.
#[must_use]
pub fn find_file(wanted: &Path) -> Option<PathBuf> {
    if wanted.is_file() {
        return Some(wanted.to_owned());
    }
    EXTENSIONS
        .iter()
        .map(|extension| {
            let mut name = wanted.as_os_str().to_owned();
            name.push(".");
            name.push(extension);
            PathBuf::from(name)
        })
        .into_iter()
        .find(|file| file.is_file())
        .or_else(|| index_of(wanted))
}

fn index_of(dir: &Path) -> Option<PathBuf> {
    INDEX
        .iter()
        .map(|name| dir.join(name))
        .find(|file| file.is_file())
}

//! The files of a plugin.
//!
//! - A package from npm: everything in the folder that it was installed into, with all dependencies.
//! - A folder: everything in it but `.git`, and what its entry, or that of a plugin that it hosts, imports from outside.
//! - A file: the file and what it imports, by relative or absolute path and from packages in `node_modules`, with the
//!   dependencies of those packages; the scripts of its workers, and what else it finds by its own address; and what configures how the runtime reads them (`tsconfig.json`, some fields of
//!   `package.json`).
//!
//! Imports are found without running anything, so a path that a plugin computes is not followed. The plugin decides which other
//! files it reads: trusting it trusts that decision.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use outrigger_plugin_package::ResolvedPlugin;
use outrigger_plugin_package::host_modules::imports;
use outrigger_protocol::manifest::MANIFEST_FILE;
use outrigger_stdx::text::hex;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::code_places::is_above_home;
use crate::resolution::{
    Imported, beside, imported, manifest, module, named_path, nearest, tsconfigs,
};

/// Maximum number of entries of a plugin: a larger one could not be reviewed, and a link to `/` must terminate.
pub(crate) const MAX_FILES: usize = 100_000;
/// Maximum depth of folders.
const MAX_DEPTH: usize = 64;
/// Maximum size in bytes of a source that is searched for imports; larger ones are still part of the plugin.
const MAX_SOURCE: u64 = 4 << 20;
/// Extensions of files that are searched for imports.
pub(crate) const SOURCES: [&str; 8] = ["ts", "tsx", "js", "mjs", "cjs", "mts", "cts", "jsx"];
/// Suffixes of type declaration files.
const DECLARED: [&str; 3] = [".d.ts", ".d.mts", ".d.cts"];
/// Fields of `package.json` that determine how the files next to it are read. The others may change freely.
const STEERING: [&str; 6] = ["type", "imports", "exports", "main", "module", "name"];

/// Why the files of a plugin cannot be listed.
#[derive(Debug)]
pub enum TreeError {
    /// Too many, too deep or too large.
    TooLarge(String),
    /// World-writable (D3).
    WorldWritable(PathBuf),
    /// Unreadable.
    Io(PathBuf, String),
}

impl TreeError {
    pub(crate) fn io(path: &Path, error: &std::io::Error) -> Self {
        Self::Io(path.to_owned(), error.to_string())
    }
}

/// An entry of a plugin.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) what: What,
    /// Part of the plugin itself, not of its dependencies.
    pub(crate) own: bool,
}

impl Found {
    /// Returns whether a runtime may run it: a source, a native module, a file without an extension. Type declarations are never
    /// run.
    pub(crate) fn is_code(&self) -> bool {
        let name = self.path.file_name().and_then(|it| it.to_str());
        let is_typed = name.is_some_and(|it| DECLARED.iter().any(|end| it.ends_with(end)));
        let is_code = self.path.extension().is_none()
            || has_extension(&self.path, &SOURCES)
            || has_extension(&self.path, &["node"]);
        matches!(self.what, What::File(_)) && !is_typed && is_code
    }
}

/// Returns whether a file has one of these extensions.
pub(crate) fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension()
        .and_then(|it| it.to_str())
        .is_some_and(|it| extensions.contains(&it))
}

#[derive(Debug)]
pub(crate) enum What {
    /// A regular file, as it was when it was listed.
    File(Box<Metadata>),
    /// A symbolic link and its target.
    Link(PathBuf),
    /// A derived text, with its digest.
    Digest(String),
    /// A socket, a device, a pipe: it cannot be imported, and is never opened.
    Other,
}

/// The files of a plugin by name, which is the path relative to its folder.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) base: PathBuf,
    pub(crate) found: BTreeMap<String, Found>,
    /// Paths that sources name and where something else was found, or nothing.
    pub(crate) unresolved: BTreeSet<PathBuf>,
    /// Folders that have been walked, by real path.
    walked: BTreeSet<PathBuf>,
    count: usize,
    allow_world_writable: bool,
    /// Version control data in a folder changes all the time. Files of it that the entry imports are included anyway.
    skip_git: bool,
}

impl Tree {
    /// Lists a plugin.
    pub(crate) fn of(
        plugin: &ResolvedPlugin,
        allow_world_writable: bool,
    ) -> Result<Self, TreeError> {
        let mut tree = Self {
            allow_world_writable,
            ..Self::default()
        };
        if plugin.is_file() {
            let file = real(plugin.entries.first().unwrap_or(&plugin.file))?;
            tree.base = file.parent().unwrap_or(&file).to_owned();
            tree.above(&tree.base.clone())?;
            let own = tree.base.join(MANIFEST_FILE);
            if own.symlink_metadata().is_ok() {
                tree.entry(&own, true, 0)?;
            }
            tree.entries(plugin)?;
        } else if plugin.from_path {
            tree.skip_git = true;
            tree.base = real(&plugin.dir)?;
            if is_above_home(&tree.base) {
                return Err(TreeError::TooLarge(format!(
                    "{} is the home folder or holds it; put the plugin into a folder of its own",
                    plugin.dir.display()
                )));
            }
            tree.above(&tree.base.clone())?;
            tree.folder(&tree.base.clone(), true, 0)?;
            tree.entries(plugin)?;
        } else {
            let package = real(&plugin.dir)?;
            let root = installation(&package).unwrap_or(&package);
            tree.base = root.to_owned();
            tree.above(root)?;
            tree.folder(root, true, 0)?;
            for found in tree.found.values_mut() {
                let inside = found.path.strip_prefix(&package);
                found.own =
                    inside.is_ok_and(|rest| !rest.iter().any(|part| part == "node_modules"));
            }
        }
        Ok(tree)
    }

    // Another process may rename a folder on the way and replace it by another one.
    fn above(&self, folder: &Path) -> Result<(), TreeError> {
        for folder in folder.ancestors() {
            let meta = fs::symlink_metadata(folder).map_err(|e| TreeError::io(folder, &e))?;
            self.guarded(folder, &meta)?;
        }
        Ok(())
    }

    fn guarded(&self, path: &Path, meta: &Metadata) -> Result<(), TreeError> {
        let sticky = meta.is_dir() && meta.mode() & 0o1000 != 0;
        if meta.mode() & 0o002 != 0 && !sticky && !self.allow_world_writable {
            return Err(TreeError::WorldWritable(path.to_owned()));
        }
        Ok(())
    }

    fn name(&self, path: &Path) -> String {
        relative(&self.base, path)
    }

    fn put(&mut self, path: &Path, what: What, own: bool) -> Result<bool, TreeError> {
        self.count += 1;
        if self.count > MAX_FILES {
            return Err(TreeError::TooLarge(format!("more than {MAX_FILES} files")));
        }
        let name = self.name(path);
        if let Some(known) = self.found.get_mut(&name) {
            known.own |= own;
            return Ok(false);
        }
        let path = path.to_owned();
        self.found.insert(name, Found { path, what, own });
        Ok(true)
    }

    /// Adds everything in a folder.
    fn folder(&mut self, folder: &Path, own: bool, depth: usize) -> Result<(), TreeError> {
        if depth > MAX_DEPTH {
            return Err(TreeError::TooLarge(format!(
                "{} lies too deep",
                folder.display()
            )));
        }
        let meta = fs::symlink_metadata(folder).map_err(|e| TreeError::io(folder, &e))?;
        self.guarded(folder, &meta)?;
        if !self.walked.insert(real(folder)?) {
            return Ok(());
        }
        let entries = fs::read_dir(folder).map_err(|e| TreeError::io(folder, &e))?;
        for entry in entries {
            let path = entry.map_err(|e| TreeError::io(folder, &e))?.path();
            let is = |name: &str| path.file_name().is_some_and(|it| it == name);
            if is(".git") && self.skip_git {
                continue;
            }
            let own = own && !is("node_modules");
            self.entry(&path, own, depth)?;
        }
        Ok(())
    }

    fn entry(&mut self, path: &Path, own: bool, depth: usize) -> Result<(), TreeError> {
        let meta = match fs::symlink_metadata(path) {
            Ok(meta) => meta,
            // It was removed while the folder was read.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(TreeError::io(path, &error)),
        };
        if meta.is_dir() {
            return self.folder(path, own, depth + 1);
        }
        if !meta.is_symlink() {
            self.guarded(path, &meta)?;
            let what = if meta.is_file() {
                What::File(Box::new(meta))
            } else {
                What::Other
            };
            return self.put(path, what, own).map(drop);
        }
        let target = fs::read_link(path).map_err(|e| TreeError::io(path, &e))?;
        self.put(path, What::Link(target), own)?;
        // The target is part of the plugin, wherever it is.
        match path.canonicalize() {
            Ok(real) if real.is_dir() => self.folder(&real, own, depth + 1),
            Ok(real) if real.is_file() => self.entry(&real, own, depth + 1),
            _ => Ok(()),
        }
    }

    /// Adds the files that start the plugin and those that it hosts. A hosted plugin without a file is not started.
    fn entries(&mut self, plugin: &ResolvedPlugin) -> Result<(), TreeError> {
        for (number, entry) in plugin.entries.iter().enumerate() {
            if number == 0 || entry.is_file() {
                self.closure(&real(entry)?)?;
            }
        }
        Ok(())
    }

    /// Adds a file and its imports.
    fn closure(&mut self, entry: &Path) -> Result<(), TreeError> {
        let mut waiting = VecDeque::from([entry.to_owned()]);
        let mut seen = BTreeSet::new();
        let mut packages = BTreeSet::new();
        while let Some(file) = waiting.pop_front() {
            if !seen.insert(file.clone()) {
                continue;
            }
            let meta = fs::metadata(&file).map_err(|e| TreeError::io(&file, &e))?;
            self.guarded(&file, &meta)?;
            let size = meta.len();
            let regular = meta.is_file();
            if size > outrigger_files::DATA {
                return Err(TreeError::TooLarge(format!(
                    "{} is larger than {} MiB",
                    file.display(),
                    outrigger_files::DATA >> 20
                )));
            }
            self.put(
                &file,
                if regular {
                    What::File(Box::new(meta))
                } else {
                    What::Other
                },
                true,
            )?;
            let folder = file.parent().unwrap_or(&file).to_owned();
            self.steering(&folder)?;
            let extension = file.extension().and_then(|it| it.to_str());
            if !regular || size > MAX_SOURCE || !extension.is_some_and(|it| SOURCES.contains(&it)) {
                continue;
            }
            let text =
                outrigger_files::read(&file, MAX_SOURCE).map_err(|e| TreeError::io(&file, &e))?;
            let text = String::from_utf8_lossy(&text);
            for file in beside(&folder, &text) {
                waiting.push_back(real(&file)?);
            }
            for import in imports(&text) {
                for found in imported(&folder, import) {
                    match found {
                        Imported::File(file) => waiting.push_back(real(&file)?),
                        Imported::Package(package) => self.package(&package, &mut packages)?,
                    }
                }
                let named = named_path(&folder, import);
                let is_there = |path: &PathBuf| path.canonicalize().is_ok_and(|it| it == *path);
                self.unresolved.extend(named.filter(|path| !is_there(path)));
            }
        }
        Ok(())
    }

    /// Adds an imported package with its dependencies. If it is a link, as with pnpm, they are next to its target.
    fn package(&mut self, folder: &Path, seen: &mut BTreeSet<PathBuf>) -> Result<(), TreeError> {
        let mut waiting = vec![folder.to_owned()];
        while let Some(folder) = waiting.pop() {
            let place = real(&folder)?;
            if !seen.insert(place.clone()) {
                continue;
            }
            if folder.is_symlink() {
                let target = fs::read_link(&folder).map_err(|e| TreeError::io(&folder, &e))?;
                self.put(&folder, What::Link(target), false)?;
            }
            self.folder(&place, false, 0)?;
            let manifest = manifest(&place.join("package.json"));
            for list in ["dependencies", "optionalDependencies", "peerDependencies"] {
                let names = manifest.get(list).and_then(Value::as_object);
                for name in names.into_iter().flat_map(|names| names.keys()) {
                    waiting.extend(module(&place, name));
                }
            }
        }
        Ok(())
    }

    /// Adds the files that determine how the files of a folder are read: the nearest `package.json` and `tsconfig.json`.
    fn steering(&mut self, folder: &Path) -> Result<(), TreeError> {
        if let Some(file) = nearest(folder, "package.json") {
            let manifest = manifest(&file);
            let fields: Vec<String> = STEERING
                .iter()
                .filter_map(|key| Some(format!("{key}={}", manifest.get(*key)?)))
                .collect();
            if !fields.is_empty() {
                let digest = hex(&Sha256::digest(fields.join("\n")));
                // Not the file itself, which a folder may include as a whole.
                self.put(
                    &file.with_file_name("package.json (how files are read)"),
                    What::Digest(digest),
                    true,
                )?;
            }
        }
        for file in tsconfigs(folder) {
            self.entry(&file, true, 0)?;
        }
        Ok(())
    }
}

fn real(path: &Path) -> Result<PathBuf, TreeError> {
    path.canonicalize()
        .map_err(|error| TreeError::io(path, &error))
}

/// Returns the folder that a package was installed into: the parent of the outer `node_modules`.
pub(crate) fn installation(package: &Path) -> Option<&Path> {
    let modules = package.ancestors().find(|folder| {
        folder
            .file_name()
            .is_some_and(|name| name == "node_modules")
    })?;
    modules.parent()
}

/// Returns a path relative to a folder, with `..` if it is outside.
fn relative(base: &Path, path: &Path) -> String {
    let mut ours = base.components().peekable();
    let mut theirs = path.components().peekable();
    while ours.peek().is_some() && ours.peek() == theirs.peek() {
        ours.next();
        theirs.next();
    }
    let up = ours.map(|_| "..".to_owned());
    let down = theirs.map(|part| match part.as_os_str().to_str() {
        Some(text) if !text.contains(['\\', '\n']) => text.to_owned(),
        // Two files never have the same name.
        _ => part
            .as_os_str()
            .as_encoded_bytes()
            .escape_ascii()
            .to_string(),
    });
    up.chain(down).collect::<Vec<_>>().join("/")
}

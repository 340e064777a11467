//! Paths and files of the tools. Every path that comes from a model or a plugin goes through [`locate`] (invariant 11).

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use outrigger_protocol::permission::Action;
use outrigger_protocol::permission_names::EXTERNAL_DIRECTORY;
use outrigger_sandbox::Anchor;
use outrigger_sandbox::paths::{PathError, Roots, open_resolved, resolve};
use serde_json::json;

use crate::error::ToolError;
use crate::host::{PermissionAsk, ToolContext};

/// Only one tool changes files at a time: two edits of one file in the same answer must not lose one of them.
pub(crate) static WRITING: Mutex<()> = Mutex::new(());

/// Keeps other tools from changing this file until the guard is dropped: its formatters must not undo what another edit
/// of the same answer has just written.
pub(crate) async fn hold(real: &Path) -> tokio::sync::OwnedMutexGuard<()> {
    static HELD: Mutex<BTreeMap<PathBuf, Weak<tokio::sync::Mutex<()>>>> =
        Mutex::new(BTreeMap::new());
    let lock = {
        let mut held = crate::host::lock(&HELD);
        held.retain(|_, lock| lock.strong_count() > 0);
        match held.get(real).and_then(Weak::upgrade) {
            Some(lock) => lock,
            None => {
                let lock = Arc::default();
                held.insert(real.to_owned(), Arc::downgrade(&lock));
                lock
            }
        }
    };
    lock.lock_owned().await
}

/// Maximum size of a file that `edit` and `write` read as a whole.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

const BOM: &str = "\u{feff}";

/// A path, resolved and checked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Located {
    /// As named: absolute, without `..`, links not followed. For users, rules and the model.
    pub(crate) shown: PathBuf,
    /// With links followed. This is the path to open.
    pub(crate) real: PathBuf,
    /// It lies in the working directory or the project.
    pub(crate) inside: bool,
}

/// The kind of access that a path needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Folder,
}

/// Resolves a path against the working directory and follows its links.
pub(crate) fn locate(ctx: &ToolContext, path: &str) -> Result<Located, ToolError> {
    let shown = resolve(&ctx.directory, Path::new(path));
    // `/` as project means that there is none; then only the working directory counts as inside (OpenCode's rule).
    let project = Some(&ctx.worktree).filter(|root| root.as_path() != Path::new("/"));
    let roots = Roots::found(std::iter::once(&ctx.directory).chain(project));
    match roots.contains(&shown) {
        Ok(real) => {
            ctx.has_not_moved(&shown, &real)?;
            ctx.allowed(&shown, &real)?;
            ctx.held(&real)?;
            Ok(Located {
                shown,
                real,
                inside: true,
            })
        }
        Err(PathError::Outside { resolved, .. }) => {
            ctx.has_not_moved(&shown, &resolved)?;
            ctx.allowed(&shown, &resolved)?;
            ctx.held(&resolved)?;
            Ok(Located {
                shown,
                real: resolved,
                inside: false,
            })
        }
        Err(PathError::Io { source, .. }) if source.kind() == io::ErrorKind::NotADirectory => {
            Err(ToolError::failed(format!(
                "There is nothing at {}: a part of its path is a file, not a folder",
                shown.display()
            )))
        }
        Err(error) => Err(ToolError::failed(error.to_string())),
    }
}

impl Located {
    /// Returns the names that rules are matched against: its own and, if a link is on the way, its target's. It is opened by the
    /// latter, so a link that changes a moment later has no effect.
    pub(crate) fn patterns(&self, ctx: &ToolContext) -> Vec<String> {
        let named = self.relative(ctx);
        let leads_to = match self.real.strip_prefix(&ctx.worktree) {
            Ok(_) => relative(&ctx.worktree, &self.real),
            // The path to the project itself may contain a link.
            Err(_) => match ctx.worktree.canonicalize() {
                Ok(root) if self.real.starts_with(&root) => relative(&root, &self.real),
                _ => relative(&ctx.worktree, &self.real),
            },
        };
        if leads_to == named {
            vec![named]
        } else {
            vec![named, leads_to]
        }
    }

    /// Returns the path relative to the project's root, with `..` where necessary: titles show it and permission rules match it.
    pub(crate) fn relative(&self, ctx: &ToolContext) -> String {
        relative(&ctx.worktree, &self.shown)
    }

    /// Returns the folder that is asked about: itself, or that of a file.
    pub(crate) fn into_folder(self) -> PathBuf {
        if self.real.is_dir() {
            self.real
        } else {
            self.real.parent().unwrap_or(&self.real).to_owned()
        }
    }

    /// Returns the question that a path outside the project needs.
    pub(crate) fn ask_outside(&self, kind: Kind) -> Option<PermissionAsk> {
        if self.inside {
            return None;
        }
        let folder = match kind {
            Kind::Folder => self.real.clone(),
            Kind::File => self.real.parent().unwrap_or(&self.real).to_owned(),
        };
        let pattern = folder.join("*").display().to_string();
        Some(PermissionAsk {
            permission: EXTERNAL_DIRECTORY.to_owned(),
            patterns: vec![pattern],
            always: always_in(&folder).into_iter().collect(),
            metadata: json!({"filepath": self.shown, "parentDir": folder}),
            ..PermissionAsk::default()
        })
    }

    /// Returns whether reading needs no question although the path is outside: saved output and skills belong to the session.
    pub(crate) fn is_lent(&self, ctx: &ToolContext) -> bool {
        let mut lent = ctx.host.skills().into_iter().map(|s| s.dir);
        let roots = Roots::new(lent.by_ref().chain(std::iter::once(ctx.artifacts.clone())));
        roots.contains(&self.real).is_ok()
    }

    /// Returns whether an error about the file's content may be shown before the question about it is answered: neither outside the
    /// project nor for a file that a rule keeps from being read.
    pub(crate) fn shows_errors(&self, ctx: &ToolContext) -> bool {
        self.inside && ctx.host.read_rules().of(&self.shown) != Action::Deny
    }

    /// Returns whether the name itself is a link.
    pub(crate) fn is_link(&self) -> bool {
        fs::symlink_metadata(&self.shown).is_ok_and(|meta| meta.is_symlink())
    }

    /// Returns its folder and its name there.
    fn entry(&self) -> Result<(&Path, &OsStr), ToolError> {
        self.real
            .parent()
            .zip(self.real.file_name())
            .ok_or_else(|| ToolError::failed(format!("{} is not a file", self.shown.display())))
    }

    /// Opens it for reading. Pipes and devices are refused without opening them: opening a pipe waits for a writer.
    pub(crate) fn open(&self) -> io::Result<File> {
        let kind = fs::metadata(&self.real)?.file_type();
        if !kind.is_file() && !kind.is_dir() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is not a regular file",
            ));
        }
        open_resolved(&self.real, false, false)
    }
}

/// Returns what "always" covers of a folder outside: nothing if its name is also a pattern for others.
pub(crate) fn always_in(folder: &Path) -> Option<String> {
    let folder = folder.display().to_string();
    let is_literal = !folder.contains(['*', '?']);
    is_literal.then(|| Path::new(&folder).join("*").display().to_string())
}

/// Makes `path` relative to `base`, with `..` where necessary; empty for `base` itself.
#[must_use]
pub fn relative(base: &Path, path: &Path) -> String {
    let mut from = base.components().peekable();
    let mut to = path.components().peekable();
    while from.peek().is_some() && from.peek() == to.peek() {
        from.next();
        to.next();
    }
    let mut out = PathBuf::new();
    for _ in from {
        out.push("..");
    }
    for part in to {
        if let Component::Normal(name) = part {
            out.push(name);
        }
    }
    out.display().to_string()
}

/// A text file as the edit tools see it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Text {
    /// Without byte order mark, line ends unchanged.
    pub(crate) text: String,
    pub(crate) bom: bool,
}

impl Text {
    pub(crate) fn parse(text: String) -> Self {
        match text.strip_prefix(BOM) {
            Some(rest) => Self {
                text: rest.to_owned(),
                bom: true,
            },
            None => Self { text, bom: false },
        }
    }

    /// Returns the bytes of the file.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.text.len() + BOM.len());
        if self.bom {
            out.extend_from_slice(BOM.as_bytes());
        }
        out.extend_from_slice(self.text.as_bytes());
        out
    }
}

/// Reads a text file; `None` if it does not exist.
pub(crate) fn read_text(at: &Located) -> Result<Option<Text>, ToolError> {
    let file = match at.open() {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ToolError::io("open", &at.shown, &error)),
    };
    let bytes = all(file, at, MAX_FILE_BYTES)?;
    let text = String::from_utf8(bytes).map_err(|_| {
        ToolError::failed(format!(
            "{} is not UTF-8 text; it was left as it is",
            at.shown.display()
        ))
    })?;
    Ok(Some(Text::parse(text)))
}

/// Reads a file of any kind, up to `most` bytes.
pub(crate) fn read_bytes(at: &Located, most: u64) -> Result<Vec<u8>, ToolError> {
    let file = at
        .open()
        .map_err(|e| ToolError::io("open", &at.shown, &e))?;
    all(file, at, most)
}

fn all(mut file: File, at: &Located, most: u64) -> Result<Vec<u8>, ToolError> {
    let meta = file
        .metadata()
        .map_err(|e| ToolError::io("look at", &at.shown, &e))?;
    if meta.is_dir() {
        return Err(ToolError::failed(format!(
            "Path is a directory, not a file: {}",
            at.shown.display()
        )));
    }
    if meta.len() > most {
        return Err(ToolError::failed(format!(
            "{} is larger than {} MiB; change it with a command instead",
            at.shown.display(),
            most / 1024 / 1024
        )));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)
        .map_err(|e| ToolError::io("read", &at.shown, &e))?;
    Ok(bytes)
}

/// Replaces a file's content atomically: a reader sees the old or the new one, and a crash leaves one of them. Missing folders are
/// created, the mode is kept.
pub(crate) fn write_text(at: &Located, text: &Text) -> Result<(), ToolError> {
    write_bytes(at, &text.bytes())
}

/// Like [`write_text`], with arbitrary bytes.
pub(crate) fn write_bytes(at: &Located, bytes: &[u8]) -> Result<(), ToolError> {
    let fail = |error: io::Error| ToolError::io("write", &at.shown, &error);
    let (folder, name) = at.entry()?;
    // The decision is about this folder. A link that replaces it, or appears on its path, would point elsewhere.
    let folder = Anchor::make(folder).map_err(fail)?;
    let old = fs::symlink_metadata(folder.root().join(name)).ok();
    match temporary(&folder, name) {
        Ok((file, new)) => {
            let done = fill(file, bytes, old.as_ref()).and_then(|()| folder.rename(&new, name));
            if done.is_err() {
                // The first error is the relevant one.
                let _ = folder.remove(&new);
            }
            done.map_err(fail)
        }
        // A writable file in a read-only folder is the only case in which it is changed in place.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && old.is_some() => {
            let mut file = open_resolved(&at.real, true, false).map_err(fail)?;
            file.set_len(0).map_err(fail)?;
            file.write_all(bytes).map_err(fail)
        }
        Err(error) => Err(fail(error)),
    }
}

fn temporary(folder: &Anchor, name: &OsStr) -> io::Result<(File, OsString)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let short: String = name.to_string_lossy().chars().take(40).collect();
    loop {
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let new = OsString::from(format!(".{short}.{}-{n}.outrigger-tmp", std::process::id()));
        match folder.create(&new) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => return other.map(|file| (file, new)),
        }
    }
}

/// Removes a file that was decided about; a link is removed itself.
pub(crate) fn remove(at: &Located) -> Result<(), ToolError> {
    let (folder, name) = at.entry()?;
    Anchor::hold(folder)
        .and_then(|it| it.remove(name))
        .map_err(|error| ToolError::io("delete", &at.shown, &error))
}

fn fill(mut file: File, bytes: &[u8], old: Option<&fs::Metadata>) -> io::Result<()> {
    file.write_all(bytes)?;
    if let Some(old) = old {
        // The owner first: changing it clears the set-user-id bits. Lacking the permission is not an error.
        let new = file.metadata()?;
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            let _ = std::os::unix::fs::fchown(&file, Some(old.uid()), Some(old.gid()));
        }
        file.set_permissions(fs::Permissions::from_mode(old.mode() & 0o7777))?;
    }
    file.sync_data()
}

/// Returns files that may hold instructions for work on `file`: in its folder and the ones above, excluding `directory`, whose own
/// instructions are in the system prompt. Nearest first; per folder the first of OpenCode's names that exists.
#[must_use]
pub fn nearby_instruction_files(file: &Path, directory: &Path) -> Vec<PathBuf> {
    const NAMES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "CONTEXT.md"];
    let mut found = Vec::new();
    let mut folder = file.parent();
    while let Some(here) = folder.filter(|here| here.starts_with(directory) && *here != directory) {
        let named = NAMES.iter().map(|name| here.join(name));
        found.extend(
            named
                .filter(|path| path != file)
                .find(|path| path.is_file()),
        );
        folder = here.parent();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_as_opencode_shows_them() {
        for (base, path, want) in [
            ("/p", "/p/a/b.txt", "a/b.txt"),
            ("/p", "/p", ""),
            ("/tmp/p", "/etc/hostname", "../../etc/hostname"),
            ("/tmp/p", "/tmp/q/x", "../q/x"),
            ("/", "/etc/x", "etc/x"),
        ] {
            assert_eq!(relative(Path::new(base), Path::new(path)), want);
        }
    }

    #[test]
    fn a_write_keeps_the_mode_follows_no_half_state_and_leaves_no_temporary_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.sh");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
        let at = Located {
            shown: path.clone(),
            real: path.canonicalize().unwrap(),
            inside: true,
        };
        write_text(
            &at,
            &Text {
                text: "new".into(),
                bom: true,
            },
        )
        .unwrap();
        assert_eq!(fs::read(&path).unwrap(), "\u{feff}new".as_bytes());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o751);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(read_text(&at).unwrap().unwrap().text, "new");
    }

    #[test]
    fn what_was_decided_about_is_written_and_removed_and_nothing_that_a_link_leads_to() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["work", "vault"] {
            fs::create_dir(root.join(folder)).unwrap();
            fs::write(root.join(folder).join("a"), folder).unwrap();
        }
        let decided = |name: &str| Located {
            shown: root.join("work").join(name),
            real: root.join("work").join(name),
            inside: true,
        };
        // After the decision the folder becomes a link.
        fs::rename(root.join("work"), root.join("moved")).unwrap();
        std::os::unix::fs::symlink("vault", root.join("work")).unwrap();
        for name in ["a", "new", "deep/new"] {
            assert!(write_bytes(&decided(name), b"x").is_err(), "{name}");
            assert!(remove(&decided(name)).is_err(), "{name}");
        }
        assert_eq!(fs::read_dir(root.join("vault")).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(root.join("vault/a")).unwrap(), "vault");
        // Without a link it succeeds.
        fs::remove_file(root.join("work")).unwrap();
        fs::rename(root.join("moved"), root.join("work")).unwrap();
        write_bytes(&decided("deep/er/new"), b"x").unwrap();
        remove(&decided("a")).unwrap();
        assert_eq!(fs::read(root.join("work/deep/er/new")).unwrap(), b"x");
        assert!(!root.join("work/a").exists());
    }

    #[test]
    fn instruction_files_are_found_upwards_without_the_root() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        for name in ["AGENTS.md", "a/CLAUDE.md", "a/b/AGENTS.md", "a/b/CLAUDE.md"] {
            fs::write(root.join(name), "x").unwrap();
        }
        assert_eq!(
            nearby_instruction_files(&root.join("a/b/f.rs"), root),
            [root.join("a/b/AGENTS.md"), root.join("a/CLAUDE.md")]
        );
        assert!(nearby_instruction_files(&root.join("f.rs"), root).is_empty());
    }
}

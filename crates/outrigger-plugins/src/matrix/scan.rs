//! Scans a plugin's own sources for kinds of events and methods of the client.
//!
//! Static: reads the modules that the entry reaches inside its package by relative imports. Names that are built at run
//! time are not found, and names in dead code are.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use super::routes;

/// Kinds of events that a plugin may listen to (OpenCode's, and names that older plugins still use).
const EVENTS: &[&str] = &[
    "command.executed",
    "file.edited",
    "file.watcher.updated",
    "installation.update-available",
    "installation.updated",
    "lsp.client.diagnostics",
    "lsp.updated",
    "mcp.tools.changed",
    "message.part.delta",
    "message.part.removed",
    "message.part.updated",
    "message.removed",
    "message.updated",
    "permission.asked",
    "permission.replied",
    "permission.updated",
    "project.updated",
    "pty.created",
    "pty.deleted",
    "pty.exited",
    "pty.updated",
    "question.asked",
    "question.rejected",
    "question.replied",
    "server.connected",
    "server.instance.disposed",
    "session.compacted",
    "session.created",
    "session.deleted",
    "session.diff",
    "session.error",
    "session.idle",
    "session.status",
    "session.updated",
    "todo.updated",
    "vcs.branch.updated",
];

/// Maximum number of bytes read per plugin.
const MAX_BYTES: usize = 48 * 1024 * 1024;
const EXTENSIONS: [&str; 6] = ["js", "mjs", "cjs", "ts", "mts", "tsx"];

/// Names found in the sources.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) events: BTreeSet<&'static str>,
    pub(super) methods: BTreeSet<&'static str>,
}

/// Reads the modules that the entry reaches; never outside `root`, never in a `node_modules` folder below it.
pub(super) fn scan(entry: &Path, root: &Path) -> Named {
    let mut named = Named::default();
    let mut left = MAX_BYTES;
    // A package imported as a folder: the runtime takes its index file.
    let entry = if entry.is_dir() {
        module(entry, "./index").unwrap_or_else(|| entry.to_path_buf())
    } else {
        entry.to_path_buf()
    };
    // The entry is known by its real path, and a folder above the package may be a link.
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let (entry, root) = (real(&entry), real(root));
    let mut seen = BTreeSet::from([entry.clone()]);
    let mut waiting = VecDeque::from([entry]);
    while let Some(path) = waiting.pop_front() {
        let size = std::fs::metadata(&path).map_or(0, |meta| meta.len());
        let Some(rest) = left.checked_sub(usize::try_from(size).unwrap_or(usize::MAX)) else {
            tracing::debug!("[matrix] {} is not read: too much of it", path.display());
            continue;
        };
        left = rest;
        let Ok(bytes) = outrigger_files::read(&path, outrigger_files::DATA) else {
            continue;
        };
        let text = String::from_utf8_lossy(&bytes);
        read(&text, &mut named);
        for relative in relatives(&text) {
            let Some(found) = path.parent().and_then(|folder| module(folder, relative)) else {
                continue;
            };
            let inside = found.strip_prefix(&root).is_ok_and(|below| {
                !below
                    .components()
                    .any(|part| part.as_os_str() == "node_modules")
            });
            if inside && seen.insert(found.clone()) {
                waiting.push_back(found);
            }
        }
    }
    named
}

fn read(text: &str, named: &mut Named) {
    for kind in EVENTS {
        let quoted = ['"', '\'', '`']
            .iter()
            .any(|q| text.contains(&format!("{q}{kind}{q}")));
        if quoted {
            named.events.insert(kind);
        }
    }
    for name in routes::operations().filter(|name| is_call(text, name)) {
        named.methods.insert(name);
    }
}

/// Returns whether a text calls a method: `.session.prompt(`, also as `.session?.prompt?.(` or `.session.prompt.bind(`,
/// and with a line break before a dot.
fn is_call(text: &str, name: &str) -> bool {
    let Some((first, rest)) = name.split_once('.') else {
        return false;
    };
    let start = format!(".{first}");
    text.match_indices(&start).any(|(at, found)| {
        let mut tail = text.get(at + found.len()..).unwrap_or_default();
        for part in rest.split('.') {
            let Some(next) = tail.trim_start().trim_start_matches('?').strip_prefix('.') else {
                return false;
            };
            let Some(next) = next.trim_start().strip_prefix(part) else {
                return false;
            };
            tail = next;
        }
        let call = tail.trim_start();
        ["(", "?.(", ".call(", ".apply(", ".bind("]
            .iter()
            .any(|way| call.starts_with(way))
    })
}

/// Returns the text of every string that begins like a relative path.
fn relatives(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(['"', '\''])
        .filter_map(move |(at, quote)| {
            let rest = text.get(at + 1..)?;
            if !rest.starts_with("./") && !rest.starts_with("../") {
                return None;
            }
            let end = rest.find(['"', '\'', '\n'])?;
            (rest.get(end..)?.starts_with(quote) && end < 300).then(|| rest.get(..end))?
        })
}

fn module(folder: &Path, relative: &str) -> Option<PathBuf> {
    let path = outrigger_sandbox::paths::resolve(folder, Path::new(relative));
    let named = |path: &Path| {
        EXTENSIONS.map(|extension| {
            let mut name = path.as_os_str().to_owned();
            name.push(".");
            name.push(extension);
            PathBuf::from(name)
        })
    };
    std::iter::once(path.clone())
        .chain(
            path.extension()
                .is_some_and(|e| e == "js")
                .then(|| path.with_extension("ts")),
        )
        .chain(named(&path))
        .chain(named(&path.join("index")))
        .find(|candidate| {
            candidate.is_file()
                && candidate
                    .extension()
                    .is_some_and(|e| EXTENSIONS.iter().any(|known| e == *known))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_methods_are_found_where_the_entry_reaches() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "src/index.ts",
            "import { a } from './a';\nexport { b } from \"./lib/b.js\";\nawait client.session.prompt({});",
        );
        write(
            "src/a.ts",
            "if (event.type === 'session.idle') client\n  .tui?.showToast?.({})",
        );
        write(
            "src/lib/b.ts",
            "import '../../../outside.js'; import '../index'; x(`todo.updated`); client.session.promptly()",
        );
        write("src/unused.ts", "'session.error'; client.session.list()");
        write("src/node_modules/c/c.js", "'session.deleted'");
        let named = scan(&dir.path().join("src/index.ts"), dir.path());
        assert_eq!(
            named.events,
            BTreeSet::from(["session.idle", "todo.updated"])
        );
        assert_eq!(
            named.methods,
            BTreeSet::from(["session.prompt", "tui.showToast"])
        );
        // The package is reached through a link, and its entry by its real path.
        let elsewhere = tempfile::tempdir().unwrap();
        let link = elsewhere.path().join("cache");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        let entry = dir.path().join("src/index.ts").canonicalize().unwrap();
        assert_eq!(scan(&entry, &link), named);
    }
}

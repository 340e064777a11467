//! Files that a command writes by redirection: its shell opens them, so rules about changes of files apply to them.

use std::path::{Path, PathBuf};

use outrigger_shell_parse::{Command, Line};
use serde_json::json;

use super::{expanded, known, push};
use crate::error::ToolError;
use crate::files::locate;
use crate::host::{PermissionAsk, ToolContext};

/// A file that is written.
struct Written {
    path: PathBuf,
    /// The patterns that rules are matched against.
    patterns: Vec<String>,
}

/// Resolves an absolute path; `None` if there is nothing to write to.
type Find<'a> = &'a dyn Fn(&Path) -> Result<Option<Written>, ToolError>;

/// Returns the question for the files that a line writes by redirection; `None` if it writes none.
pub(crate) fn ask_for_redirections(
    text: &str,
    line: &Line,
    begins: &Path,
    ctx: &ToolContext,
) -> Result<Option<PermissionAsk>, ToolError> {
    let find = |path: &Path| match locate(ctx, &path.to_string_lossy()) {
        Ok(at) if !at.inside && is_free(&at.shown) && is_free(&at.real) => Ok(None),
        Ok(at) => Ok(Some(Written {
            patterns: at.patterns(ctx),
            path: at.shown,
        })),
        Err(error @ ToolError::Forbidden { .. }) => Err(error),
        Err(_) => Ok(None),
    };
    ask(text, line, begins, &find)
}

fn ask(
    text: &str,
    line: &Line,
    begins: &Path,
    find: Find<'_>,
) -> Result<Option<PermissionAsk>, ToolError> {
    let mut patterns: Vec<String> = Vec::new();
    let mut first: Option<PathBuf> = None;
    for command in &line.commands {
        let written = command.files.iter().filter(|file| file.written);
        for name in written.map(|file| known(&file.name)) {
            // A file that only the shell knows is asked about as any file.
            let is_lost = line.doubt.is_none() && command.folders.is_none();
            if name.is_none() || is_lost {
                push(&mut patterns, "*".to_owned());
            }
            let paths = name.map(|name| paths(command, &name, begins));
            for path in paths.into_iter().flatten() {
                let Some(at) = find(&path)? else {
                    continue;
                };
                first.get_or_insert(at.path);
                for pattern in at.patterns {
                    push(&mut patterns, pattern);
                }
            }
        }
    }
    Ok((!patterns.is_empty()).then(|| PermissionAsk {
        permission: "edit".to_owned(),
        patterns,
        always: vec!["*".to_owned()],
        metadata: json!({"command": text, "filepath": first}),
        by_command: true,
        ..PermissionAsk::default()
    }))
}

/// Returns where a file may lie: in each of the folders in which the command may run.
pub(crate) fn paths(command: &Command, name: &str, begins: &Path) -> Vec<PathBuf> {
    let here = [String::new()];
    let folders = command.folders.as_deref().unwrap_or(&here).iter();
    let join = |folder: &String| {
        let folder = begins.join(expanded(folder));
        // `..` in a linked folder is the parent of the link's target.
        let is_up = Path::new(name)
            .components()
            .any(|it| it.as_os_str() == "..");
        if is_up {
            folder.canonicalize().unwrap_or(folder).join(name)
        } else {
            folder.join(name)
        }
    };
    folders.map(join).collect()
}

/// Returns whether the path is a device or in a temporary folder: only rules about folders outside apply to it, none about changes.
fn is_free(path: &Path) -> bool {
    let mut folders = [
        std::env::temp_dir(),
        "/tmp".into(),
        "/var/tmp".into(),
        "/dev".into(),
    ]
    .into_iter();
    folders.any(|folder| {
        let real = folder.canonicalize();
        path.starts_with(&folder) || real.is_ok_and(|real| path.starts_with(real))
    })
}

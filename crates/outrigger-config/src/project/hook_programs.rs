//! Project files that command hooks execute, and whether they are unchanged since they were accepted.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::TrustRequest;
use super::executed::{self, Executed};
use super::named_files::IS_RUN;
use crate::claude::hooks::{CommandHook, HookFile};
use crate::{ConfigProblem, Loaded};

/// The project files that a hook executes, in their expected state.
#[derive(Clone, Debug)]
pub struct HookPrograms {
    entry: Value,
    folder: PathBuf,
    files: Executed,
}

impl HookPrograms {
    pub(super) fn entry(&self) -> &Value {
        &self.entry
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Loaded {
    /// Returns hooks that may refuse something and of which not all that they execute can be held against changes: a command of
    /// the model may switch them off. Reads the disk.
    pub(crate) fn unheld_hooks(&self, files: &[HookFile]) -> Vec<ConfigProblem> {
        let mut problems = Vec::new();
        for file in files {
            for hook in file.hooks.iter().filter(|it| it.event.may_refuse()) {
                let unheld = executed::unheld_by(&entry_of(hook), &file.folder, &self.options);
                problems.extend(unheld.map(|why| ConfigProblem {
                    file: file.file.display().to_string(),
                    pointer: Some(format!("/hooks/{}", hook.event.name())),
                    message: format!(
                        "what `{}` runs cannot be held against changes by the model: {why}; name the guard's script in the command",
                        hook.line()
                    ),
                }));
            }
        }
        problems
    }

    /// Returns what a hook executes of the project: as the user trusted it, else in its current state. Reads the disk.
    #[must_use]
    pub fn hook_programs(&self, file: &HookFile, hook: &CommandHook) -> HookPrograms {
        let entry = entry_of(hook);
        let folder = file.folder.clone();
        let mut files = executed::executed_by(&entry, &folder, &self.options);
        for (path, hash) in &mut files {
            // A `package.json` may be trusted in several parts.
            let mut trusted = self
                .asks
                .iter()
                .filter(|_| self.is_trusted)
                .filter(|it| it.what == IS_RUN && Path::new(&it.file) == path);
            if let Some(ask) = trusted
                .clone()
                .find(|it| it.hash == *hash)
                .or(trusted.next())
            {
                hash.clone_from(&ask.hash);
            }
        }
        HookPrograms {
            entry,
            folder,
            files,
        }
    }

    /// Returns a file that a hook executes and that changed, was added or removed; `known` is what the user accepted since. Reads
    /// the disk.
    #[must_use]
    pub fn changed_program(&self, hook: &HookPrograms, known: &[TrustRequest]) -> Option<PathBuf> {
        let now = executed::executed_by(&hook.entry, &hook.folder, &self.options);
        let is_known = |path: &Path, hash: &str| {
            let mut known = known.iter().filter(|it| it.what == IS_RUN);
            known.any(|it| Path::new(&it.file) == path && it.hash == hash)
        };
        let changed = now
            .iter()
            .find(|(path, hash)| hook.files.get(*path) != Some(hash) && !is_known(path, hash));
        let gone = hook.files.keys().find(|path| !now.contains_key(*path));
        changed.map(|(path, _)| path).or(gone).cloned()
    }

    /// Returns project files that trusted settings and these hooks execute and that are protected during work. Reads the disk.
    #[must_use]
    pub fn kept_programs<'a>(&self, hooks: impl Iterator<Item = &'a HookPrograms>) -> Vec<PathBuf> {
        let mut all: BTreeSet<PathBuf> = if self.is_trusted {
            executed::kept(&self.asks, &self.options)
        } else {
            BTreeSet::new()
        };
        let project = self.options.project_folder();
        let of_hooks = hooks.flat_map(|it| it.files.keys());
        all.extend(
            of_hooks
                .filter(|it| executed::is_kept(it, project))
                .cloned(),
        );
        all.into_iter().collect()
    }
}

fn entry_of(hook: &CommandHook) -> Value {
    match &hook.args {
        Some(args) => json!({ "command": hook.command, "args": args }),
        None => json!({ "command": hook.command }),
    }
}

//! Computes the result of a patch before anything is changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::refused;
use crate::edits::diff::{Diff, diff};
use crate::edits::patch::{Cost, Section, apply};
use crate::error::ToolError;
use crate::files::{Located, Text, locate, read_text, write_text};
use crate::host::ToolContext;

/// A change of one file.
pub(super) struct Change {
    /// The file.
    at: Located,
    /// The target of a move.
    to: Option<Located>,
    old: Option<Text>,
    /// The new content; `None` deletes the file.
    pub(super) new: Option<Text>,
    deleted: bool,
    diff: Diff,
}

/// All changes, in the order of the patch.
pub(super) struct Plan {
    pub(super) changes: Vec<Change>,
}

/// Returns every path that a patch names, in order, with a move's target after its source.
pub(super) fn named(sections: &[Section], ctx: &ToolContext) -> Result<Vec<Located>, ToolError> {
    sections
        .iter()
        .flat_map(|section| match section {
            Section::Add { path, .. } | Section::Delete { path } => [Some(path), None],
            Section::Update { path, to, .. } => [Some(path), to.as_ref()],
        })
        .flatten()
        .map(|path| locate(ctx, path))
        .collect()
}

/// Returns the files that a patch renames.
pub(super) fn moved(sections: &[Section], ctx: &ToolContext) -> Result<Vec<Located>, ToolError> {
    sections
        .iter()
        .filter_map(|section| match section {
            Section::Update {
                path, to: Some(_), ..
            } => Some(path),
            _ => None,
        })
        .map(|path| locate(ctx, path))
        .collect()
}

/// Returns the links among them that a patch removes. They may lie elsewhere than their targets.
pub(super) fn links(named: &[Located], ctx: &ToolContext) -> Result<Vec<Located>, ToolError> {
    // All of them: the resolved folder is recorded before the question, so that it cannot change when a file in it is removed.
    named
        .iter()
        .map(|at| (at, entry(at, ctx)))
        .filter(|(at, _)| at.is_link())
        .map(|(_, entry)| entry)
        .collect()
}

/// Plans a patch. Sections see the results of those before them, so a file that appears twice keeps its first change.
///
/// # Errors
/// The first section that does not apply.
pub(super) fn plan(sections: &[Section], ctx: &ToolContext) -> Result<Plan, ToolError> {
    let (mut files, mut cost) = (Files::default(), Cost::default());
    let changes = sections
        .iter()
        .map(|section| files.change(section, ctx, &mut cost));
    Ok(Plan {
        changes: changes.collect::<Result<_, _>>()?,
    })
}

/// Files as the sections so far have left them; `None` for a deleted one.
#[derive(Default)]
struct Files(BTreeMap<PathBuf, Option<Text>>);

impl Files {
    fn read(&self, at: &Located) -> Result<Option<Text>, ToolError> {
        match self.0.get(&at.real) {
            Some(text) => Ok(text.clone()),
            None => read_text(at),
        }
    }

    fn change(
        &mut self,
        section: &Section,
        ctx: &ToolContext,
        cost: &mut Cost,
    ) -> Result<Change, ToolError> {
        match section {
            Section::Add { path, content } => {
                let at = locate(ctx, path)?;
                let old = self.read(&at).map_err(refused)?;
                let new = Text::parse(content.clone());
                Ok(self.set(at, None, old, Some(new)))
            }
            Section::Delete { path } => {
                let at = locate(ctx, path)?;
                let old = self.deleted(&at)?;
                Ok(self.set(at, None, Some(old), None))
            }
            Section::Update { path, to, places } => {
                let at = locate(ctx, path)?;
                let Some(old) = self.read(&at).map_err(refused)? else {
                    return Err(refused(format!(
                        "Failed to read file to update: {}",
                        at.shown.display()
                    )));
                };
                let shown = at.shown.display().to_string();
                let text = apply(&shown, &old.text, places, cost)
                    .map_err(|error| refused(format!("Error: {error}")))?;
                let new = Text { text, bom: old.bom };
                let to = to
                    .as_ref()
                    .map(|to| self.target(&at, to, ctx))
                    .transpose()?;
                Ok(self.set(at, to.flatten(), Some(old), Some(new)))
            }
        }
    }

    // Reads what a deletion removes. It need not be text.
    fn deleted(&self, at: &Located) -> Result<Text, ToolError> {
        if fs::metadata(&at.real).is_ok_and(|meta| !meta.is_file()) {
            return Err(refused(format!(
                "{} is not a file; remove it with a command",
                at.shown.display()
            )));
        }
        match self.read(at) {
            Ok(None) => Err(refused(format!(
                "Failed to read file to delete: {}",
                at.shown.display()
            ))),
            Ok(Some(text)) => Ok(text),
            Err(_) => Ok(Text::default()),
        }
    }

    // A move onto itself is not a move. One onto another file would destroy that file without showing it in a diff.
    fn target(
        &self,
        from: &Located,
        to: &str,
        ctx: &ToolContext,
    ) -> Result<Option<Located>, ToolError> {
        let to = locate(ctx, to)?;
        if to.real == from.real {
            return Ok(None);
        }
        if !matches!(self.read(&to), Ok(None)) {
            return Err(refused(format!(
                "Failed to move {}: {} is there already; delete it first",
                from.shown.display(),
                to.shown.display()
            )));
        }
        Ok(Some(to))
    }

    fn set(
        &mut self,
        at: Located,
        to: Option<Located>,
        old: Option<Text>,
        new: Option<Text>,
    ) -> Change {
        let left = to.as_ref().unwrap_or(&at).real.clone();
        self.0.insert(at.real.clone(), None);
        self.0.insert(left, new.clone());
        let text = |text: &Option<Text>| text.as_ref().map_or(String::new(), |t| t.text.clone());
        Change {
            diff: diff(&at.shown, &text(&old), &text(&new)),
            deleted: new.is_none(),
            at,
            to,
            old,
            new,
        }
    }
}

impl Plan {
    /// Returns the diffs of all files.
    pub(super) fn diff(&self) -> String {
        self.changes
            .iter()
            .map(|change| change.diff.patch.as_str())
            .fold(String::new(), |all, patch| all + patch + "\n")
    }

    /// Returns `files` of the metadata and of the question.
    pub(super) fn files(&self, ctx: &ToolContext) -> Value {
        self.changes.iter().map(|change| change.file(ctx)).collect()
    }

    /// Changes the files. If one fails, earlier changes stay, and the error names them.
    pub(super) fn carry_out(&self, ctx: &ToolContext) -> Result<(), ToolError> {
        for (index, change) in self.changes.iter().enumerate() {
            if let Err(error) = change.carry_out(ctx) {
                let done: Vec<String> = self
                    .changes
                    .iter()
                    .take(index)
                    .map(|change| change.line(ctx))
                    .collect();
                return Err(if done.is_empty() {
                    error
                } else {
                    ToolError::failed(format!(
                        "{error}\nChanged before that:\n{}",
                        done.join("\n")
                    ))
                });
            }
        }
        Ok(())
    }
}

impl Change {
    /// Returns the file that exists afterwards.
    pub(super) fn left_at(&self) -> Option<&Located> {
        (!self.deleted).then(|| self.to.as_ref().unwrap_or(&self.at))
    }

    /// Returns the previous content of the file that exists afterwards.
    pub(super) fn replaced(&self) -> Option<&Text> {
        self.old.as_ref().filter(|_| self.to.is_none())
    }

    /// Records the result of the formatters.
    pub(super) fn formatted(&mut self, text: Text) {
        let before = self.old.as_ref().map_or("", |old| old.text.as_str());
        self.diff = diff(&self.at.shown, before, &text.text);
        self.new = Some(text);
    }

    /// Returns the file events, in OpenCode's terms.
    pub(super) fn watched(&self) -> Vec<(&Located, &'static str)> {
        match &self.to {
            Some(to) => vec![(&self.at, "unlink"), (to, "add")],
            None if self.deleted => vec![(&self.at, "unlink")],
            None if self.old.is_some() => vec![(&self.at, "change")],
            None => vec![(&self.at, "add")],
        }
    }

    /// Returns the line of the output.
    pub(super) fn line(&self, ctx: &ToolContext) -> String {
        let sign = match (&self.old, self.deleted) {
            (_, true) => 'D',
            (None, _) => 'A',
            (Some(_), _) => 'M',
        };
        format!(
            "{sign} {}",
            self.to.as_ref().unwrap_or(&self.at).relative(ctx)
        )
    }

    fn kind(&self) -> &'static str {
        match (&self.old, &self.to) {
            _ if self.deleted => "delete",
            (None, _) => "add",
            (Some(_), Some(_)) => "move",
            (Some(_), None) => "update",
        }
    }

    fn file(&self, ctx: &ToolContext) -> Value {
        let mut file = json!({
            "filePath": self.at.shown,
            "relativePath": self.to.as_ref().unwrap_or(&self.at).relative(ctx),
            "type": self.kind(),
            "patch": self.diff.patch,
            "additions": self.diff.additions,
            "deletions": self.diff.deletions,
        });
        if let (Some(to), Value::Object(fields)) = (&self.to, &mut file) {
            fields.insert("movePath".to_owned(), json!(to.shown));
        }
        file
    }

    fn carry_out(&self, ctx: &ToolContext) -> Result<(), ToolError> {
        if let (Some(at), Some(new)) = (self.left_at(), &self.new) {
            write_text(at, new)?;
        }
        if self.deleted || self.to.is_some() {
            remove(&self.at, ctx)?;
        }
        Ok(())
    }
}

// Removes a link itself, not its target.
fn remove(at: &Located, ctx: &ToolContext) -> Result<(), ToolError> {
    crate::files::remove(&entry(at, ctx)?)
}

/// Returns the directory entry that a path names: the same path, unless it is a link.
fn entry(at: &Located, ctx: &ToolContext) -> Result<Located, ToolError> {
    let folder = at.shown.parent().unwrap_or(&at.shown);
    let folder = locate(ctx, &folder.display().to_string())?;
    Ok(Located {
        shown: at.shown.clone(),
        real: folder.real.join(at.shown.file_name().unwrap_or_default()),
        inside: folder.inside,
    })
}

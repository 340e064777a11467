//! The layers of the settings: files, with the [environment] on top.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use outrigger_schema::Schema;
use serde_json::Value;

use super::keys::{self, ProjectFile};
use super::toml_file::{self, Found};
use super::tool_execution::{self, ToolExecution};
use super::{Settings, values};
use crate::{ConfigError, ConfigProblem, LoadOptions, Origin, paths};

mod environment;
#[cfg(test)]
mod tests;

/// The settings with their origins.
#[derive(Debug, Default)]
pub(crate) struct SettingsLoaded {
    /// Settings.
    pub(crate) settings: Settings,
    /// Origins by dotted name, for every setting.
    pub(crate) origins: BTreeMap<String, Origin>,
    /// Existing files.
    pub(crate) files: Vec<PathBuf>,
    /// Problems.
    pub(crate) problems: Vec<ConfigProblem>,
    /// Plugin settings of a project.
    of_project: Vec<(Found, Origin)>,
}

/// Reads all layers.
///
/// # Errors
/// See [`toml_file::parse`]; for the environment `config.setting`.
pub(crate) fn load(options: &LoadOptions) -> Result<SettingsLoaded, ConfigError> {
    let mut out = SettingsLoaded::default();
    out.file(
        &options.xdg_config.join("outrigger/outrigger.toml"),
        options,
        false,
    )?;
    let mut dirs = vec![options.directory.clone()];
    if options.worktree != Path::new("/") && options.worktree != options.directory {
        dirs.insert(0, options.worktree.clone());
    }
    for sub in ["", ".outrigger"] {
        for dir in &dirs {
            out.file(&dir.join(sub).join("outrigger.toml"), options, true)?;
        }
    }
    out.environment(options)?;
    Ok(out)
}

impl SettingsLoaded {
    fn file(
        &mut self,
        path: &Path,
        options: &LoadOptions,
        of_project: bool,
    ) -> Result<(), ConfigError> {
        let read = if of_project {
            paths::read_if_fit(path, &mut self.problems)?
        } else {
            paths::read(path)?
        };
        let Some(text) = read else {
            return Ok(());
        };
        let folder = path.parent().unwrap_or(path);
        for mut found in toml_file::parse(&text, path)? {
            let Some(key) = row(&found) else {
                continue;
            };
            found.value = values::absolute(key.schema, found.value, folder, &options.home);
            let refused = match key.project {
                ProjectFile::Security => Some("cannot loosen its own sandbox"),
                ProjectFile::UserOnly => Some("says nothing about what is the user's"),
                ProjectFile::Lowers if self.raises(&found) => {
                    Some("lowers a limit of the user's and does not raise it")
                }
                ProjectFile::OwnPlugins
                | ProjectFile::Adds
                | ProjectFile::Lowers
                | ProjectFile::Counts => None,
            };
            if let Some(refused) = refused.filter(|_| of_project) {
                self.problems.push(ConfigProblem {
                    file: path.display().to_string(),
                    pointer: Some(found.name.clone()),
                    message: format!("ignored: a project {refused}; set it in the user's outrigger.toml or the environment"),
                });
                continue;
            }
            let origin = Origin::File {
                path: path.into(),
                line: found.at.line,
                column: found.at.column,
            };
            match &found.plugin {
                Some((_, name)) if of_project && name == "disabled" => {
                    self.off_in_project(&found, origin);
                }
                Some(_) if of_project => self.of_project.push((found, origin)),
                _ => self.apply(&found, origin),
            }
        }
        self.tool_execution(&text, path, of_project)?;
        self.files.push(path.into());
        Ok(())
    }

    /// Returns whether a number is greater than the previous one.
    fn raises(&self, found: &Found) -> bool {
        let mut set = self.settings.list().into_iter();
        let set = set.find(|(name, _)| *name == found.name);
        let before = set.and_then(|(_, value)| value.as_u64());
        before.is_some_and(|before| found.value.as_u64() > Some(before))
    }

    /// Applies a project's plugin settings, once the guards are known. The environment has the highest precedence.
    pub(crate) fn project(&mut self) {
        for (found, origin) in std::mem::take(&mut self.of_project) {
            let Some((name, key)) = &found.plugin else {
                continue;
            };
            // Names add up, and only make a guard stricter.
            let adds = key == "fail_closed";
            let last = self.origins.get(&found.name).cloned();
            let by_env = last.filter(|it| matches!(it, Origin::Env { .. }));
            if !adds && by_env.is_some() {
                continue;
            }
            if !adds && self.settings.guards.contains(name) {
                let file = match &origin {
                    Origin::File { path, .. } => path.display().to_string(),
                    _ => String::new(),
                };
                self.problems.push(ConfigProblem {
                    file,
                    pointer: Some(found.name.clone()),
                    message: format!("ignored: {name} is a guard of the user or of the machine, and a project changes nothing about it; set it in the user's outrigger.toml"),
                });
                continue;
            }
            if !adds {
                let before = self.settings.plugin(name);
                let without = &mut self.settings.without_project;
                without.entry(name.clone()).or_insert(before);
            }
            self.apply(&found, by_env.unwrap_or(origin));
        }
        for (name, _) in self.settings.list() {
            self.origins.entry(name).or_insert(Origin::Default);
        }
    }

    /// Applies a project's switch: it can disable what it contributes itself; the user's plugins stay as the user set
    /// them.
    fn off_in_project(&mut self, found: &Found, origin: Origin) {
        let Some((id, _)) = &found.plugin else {
            return;
        };
        let plugin = self.settings.plugins.entry(id.clone()).or_default();
        plugin.disabled_in_project = found.value == true;
        let name = keys::dotted(&keys::dotted("plugins", id), "disabled_in_project");
        self.origins.insert(name, origin);
    }

    /// Reads the sections whose names the user chooses.
    fn tool_execution(
        &mut self,
        text: &str,
        path: &Path,
        of_project: bool,
    ) -> Result<(), ConfigError> {
        let file = path.display().to_string();
        let read = ToolExecution::read(text, &file)?;
        if read == ToolExecution::default() {
            return Ok(());
        }
        if of_project {
            self.problems.push(ConfigProblem {
                file,
                pointer: None,
                message: format!(
                    "{} are ignored: a project cannot say who executes its commands; set them in the user's outrigger.toml",
                    tool_execution::names().collect::<Vec<_>>().join(", ")
                ),
            });
            return Ok(());
        }
        let mut names = Vec::new();
        super::flatten(
            &serde_json::to_value(&read).unwrap_or_default(),
            "",
            &mut names,
        );
        for (name, _) in names {
            let origin = Origin::File {
                path: path.into(),
                line: 1,
                column: 1,
            };
            self.origins.insert(name, origin);
        }
        self.settings.tool_execution.merge(read);
        Ok(())
    }

    fn apply(&mut self, found: &Found, origin: Origin) {
        let value = found.value.clone();
        match &found.plugin {
            None => {
                if let Some(key) = keys::find(&found.name) {
                    (key.apply)(&mut self.settings, value);
                }
            }
            Some((id, name)) => {
                if let Some(key) = keys::find_for_plugin(name) {
                    let plugin = self.settings.plugins.entry(id.clone()).or_default();
                    let value = match key.project {
                        ProjectFile::Adds => added(&plugin.fail_closed, value),
                        _ => value,
                    };
                    (key.apply)(plugin, value);
                }
            }
        }
        self.origins.insert(found.name.clone(), origin);
    }
}

/// The table row for a setting of a file.
struct Row {
    schema: &'static Schema,
    project: ProjectFile,
}

fn row(found: &Found) -> Option<Row> {
    let row = |schema, project| Row { schema, project };
    match &found.plugin {
        None => keys::find(&found.name).map(|key| row(&key.schema, key.project)),
        Some((_, name)) => keys::find_for_plugin(name).map(|key| row(&key.schema, key.project)),
    }
}

/// Returns a list with the new items of another. A file cannot remove a hook from a guard that an earlier one named.
fn added(list: &[String], more: Value) -> Value {
    let mut all: Vec<Value> = list.iter().map(|name| name.as_str().into()).collect();
    if let Value::Array(more) = more {
        for name in more {
            if !all.contains(&name) {
                all.push(name);
            }
        }
    }
    all.into()
}

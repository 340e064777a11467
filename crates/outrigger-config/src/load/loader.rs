//! One pass over the layers.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use outrigger_protocol::permission::{Action, Rule};
use serde_json::Value;

use super::layers;
use super::links::Links;
use super::options::LoadOptions;
use crate::opencode::jsonc::{self, Document};
use crate::opencode::merge::Layered;
use crate::opencode::plugin_list::{PluginSource, PluginSpec};
use crate::opencode::{check, entries, normalize, permission, substitute};
use crate::origin::{Positions, nearest, position_of};
use crate::project::Sieve;
use crate::project::secrets::Users;
use crate::settings::TrustChanges;
use crate::{ConfigError, ConfigProblem, Origin, PolicyFile, Settings, TrustRequest, paths};

/// Which project files are read into the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Nothing,
    Harmless,
    Everything,
}

/// State of a pass. `finish` applies OpenCode's final steps.
pub(crate) struct Loader<'a> {
    /// What to read.
    pub(crate) options: &'a LoadOptions,
    /// The managed policies, which apply to every file.
    pub(crate) policies: Vec<PolicyFile>,
    /// The layers so far, except their plugins.
    pub(crate) merged: Layered,
    /// The user's part of them, in sections with secrets.
    pub(crate) users: Users,
    /// Denies of the user's rules.
    refused: Vec<Rule>,
    /// Whether a model belongs to a provider that the user has chosen.
    may_choose: Box<dyn Fn(&Value) -> bool + 'a>,
    /// Plugins so far, without duplicates.
    pub(crate) plugins: Vec<PluginSpec>,
    /// Tool files so far.
    pub(crate) tool_files: Vec<PluginSpec>,
    /// Entries for a plugin that a later entry overrides.
    pub(crate) lost: Vec<PluginSpec>,
    /// Entries of a global file whose list a later global file replaces.
    pub(crate) replaced: Vec<PluginSpec>,
    /// Files that were read.
    pub(crate) files: Vec<PathBuf>,
    /// Problems.
    pub(crate) problems: Vec<ConfigProblem>,
    /// Which project files take effect.
    pub(super) extent: Extent,
    /// The current file is the project's.
    pub(super) is_project: bool,
    /// What needs trust.
    pub(crate) asks: Vec<TrustRequest>,
    /// Likely secrets that `{env:}` and `{file:}` inserted.
    pub(crate) secrets: RefCell<BTreeSet<String>>,
}

impl<'a> Loader<'a> {
    pub(super) fn new(
        options: &'a LoadOptions,
        extent: Extent,
        may_choose: impl Fn(&Value) -> bool + 'a,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            options,
            policies: crate::policy::policies(options)?,
            merged: Layered::new(),
            users: Users::default(),
            refused: Vec::new(),
            may_choose: Box::new(may_choose),
            plugins: Vec::new(),
            tool_files: Vec::new(),
            lost: Vec::new(),
            replaced: Vec::new(),
            files: Vec::new(),
            problems: Vec::new(),
            extent,
            is_project: false,
            asks: Vec::new(),
            secrets: RefCell::default(),
        })
    }

    /// Reads a folder, marked as the project's if it is.
    pub(super) fn within(
        &mut self,
        dir: &Path,
        read: impl FnOnce(&mut Self) -> Result<(), ConfigError>,
    ) -> Result<(), ConfigError> {
        self.is_project = layers::is_project_folder(self.options, Some(dir));
        let done = if self.is_project && self.extent == Extent::Nothing {
            Ok(())
        } else {
            read(self)
        };
        self.is_project = false;
        done
    }

    /// Adds what needs trust outside the settings files: it takes effect only with the settings. Removes what it does not get of
    /// the user's.
    pub(crate) fn ask_of_files(&mut self, settings: &Settings) {
        if self.extent == Extent::Nothing {
            return;
        }
        let withheld = self.users.withhold(&mut self.merged.value);
        self.problems.extend(withheld);
        let found = crate::project::asks::of(self.options, settings, &self.asks);
        self.asks.extend(found);
        let secrets = self.users.asked(&self.asks, settings, &self.options.env);
        self.asks.extend(secrets);
        // If changes of code are accepted without asking, so are those of plugins.
        let without_plugins = settings.trust.changes == TrustChanges::Allow;
        let files =
            crate::project::executed::trusted_for(&self.asks, self.options, without_plugins);
        self.asks.extend(files);
    }

    /// Returns whether something was ignored, and whether everything takes effect.
    pub(crate) fn counts(&self) -> (bool, bool) {
        let left_out = self.extent == Extent::Harmless && !self.asks.is_empty();
        (left_out, self.extent == Extent::Everything)
    }

    /// Removes from a project document what does not take effect.
    fn sift(&mut self, document: &mut Value, file: &Path) {
        if !self.is_project {
            return;
        }
        let project = self.options.project_folder();
        let project = project
            .canonicalize()
            .unwrap_or_else(|_| project.to_owned());
        let links = self.links();
        let mut sieve = Sieve {
            file,
            project: &project,
            may_read: &|real| links.may_read(real),
            may_choose: &self.may_choose,
            keep: self.extent == Extent::Everything,
            asks: Vec::new(),
        };
        sieve.document(document);
        self.asks.append(&mut sieve.asks);
    }

    /// Returns whether a policy forbids a file, by its path, its target, or because a forbidden path points there.
    fn is_forbidden(&self, path: &Path) -> bool {
        let project = self.options.project_folder();
        let real = path.canonicalize().ok();
        let forbids = |forbid: &crate::Forbid| {
            let leads = forbid.leads();
            let mut paths = std::iter::once(path).chain(real.as_deref());
            paths.any(|path| forbid.file(project, path).is_some() || leads.file(path).is_some())
        };
        self.policies.iter().any(|it| forbids(&it.policy.forbid))
    }

    /// Reads the global files as one layer: between them lists are replaced, including `plugin` and `instructions`, as in
    /// OpenCode, where they are read and cached separately.
    pub(super) fn global(&mut self) -> Result<(), ConfigError> {
        let dir = layers::global_dir(self.options);
        let mut global = Layered::new();
        let mut plugins = Vec::new();
        for name in layers::GLOBAL_FILES {
            let path = dir.join(name);
            let Some(mut document) = self.read(&path)? else {
                continue;
            };
            if let Some(list) = self.take_plugins(&mut document.value, &path, &dir) {
                self.replaced.extend(std::mem::replace(&mut plugins, list));
            }
            let positions = std::mem::take(&mut document.positions);
            global.replace(document.value, &|pointer| {
                file_origin(&path, &positions, pointer)
            });
        }
        let Layered { value, origins } = global;
        self.add_users(&value);
        self.merged
            .absorb(value, &|pointer| nearest(&origins, pointer));
        self.add_plugins(plugins);
        Ok(())
    }

    pub(super) fn files_of(&mut self, dir: &Path) -> Result<(), ConfigError> {
        layers::FILES
            .iter()
            .try_for_each(|name| self.file(&dir.join(name)))
    }

    pub(super) fn file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let Some(document) = self.read(path)? else {
            return Ok(());
        };
        let folder = path.parent().unwrap_or(path).to_owned();
        self.add(document, path, &folder, &|positions, pointer| {
            file_origin(path, positions, pointer)
        });
        Ok(())
    }

    pub(super) fn config_dir(&mut self, dir: &Path) -> Result<(), ConfigError> {
        let named = layers::path_variable(self.options, "OPENCODE_CONFIG_DIR")
            .is_some_and(|named| named == dir);
        if named || dir.file_name().is_some_and(|name| name == ".opencode") {
            self.files_of(dir)?;
        }
        let links = self.links();
        for mut entry in entries::read(dir, &links, &mut self.problems)? {
            self.sift(&mut entry.value, &entry.path);
            self.absorb(entry.value, &|pointer| {
                file_origin(&entry.path, &entry.positions, pointer)
            });
            self.files.push(entry.path);
        }
        let plugins = self.discovered(dir, ["plugin", "plugins"], PluginSource::Auto);
        self.add_plugins(plugins);
        let tools = self.discovered(dir, ["tool", "tools"], PluginSource::Tool);
        self.tool_files.extend(tools);
        Ok(())
    }

    /// Returns where links of a project may point, by the rules read so far, primarily the user's. No project lifts a deny of
    /// these.
    fn links(&self) -> Links {
        let rules = rules_of(&self.merged.value, self.options);
        let refused = self.refused.iter().cloned();
        let rules: Vec<Rule> = rules.into_iter().chain(refused).collect();
        Links::of(self.options).under(&rules)
    }

    /// Stores the user's part of a document.
    fn add_users(&mut self, document: &Value) {
        self.users.add(document);
        let rules = rules_of(document, self.options).into_iter();
        self.refused
            .extend(rules.filter(|rule| rule.action == Action::Deny));
    }

    pub(super) fn content_variable(&mut self) -> Result<(), ConfigError> {
        const NAME: &str = "OPENCODE_CONFIG_CONTENT";
        let options = self.options;
        let Some(text) = options.env.get(NAME).filter(|text| !text.is_empty()) else {
            return Ok(());
        };
        let document = self.parse(text, NAME, &options.directory)?;
        self.add(document, Path::new(NAME), &options.directory, &|_, _| {
            Origin::Env { name: NAME.into() }
        });
        Ok(())
    }

    pub(super) fn read(&mut self, path: &Path) -> Result<Option<Document>, ConfigError> {
        // An error in the user's own files stops the start.
        let read = if self.is_project {
            paths::read_if_fit(path, &mut self.problems)?
        } else {
            paths::read(path)?
        };
        let Some(text) = read else {
            return Ok(None);
        };
        self.files.push(path.into());
        self.parse(
            &text,
            &path.display().to_string(),
            path.parent().unwrap_or(path),
        )
        .map(Some)
    }

    fn parse(&mut self, text: &str, file: &str, folder: &Path) -> Result<Document, ConfigError> {
        let mut document = jsonc::parse(text, file)?;
        // Before substitution: a project must not learn the value of a variable.
        self.sift(&mut document.value, Path::new(file));
        let (env, home) = (&self.options.env, self.options.home.as_path());
        let links = self.is_project.then(|| self.links());
        let denies = |path: &Path| links.as_ref().is_some_and(|it| it.denies(path));
        substitute::substitute(
            &mut document,
            substitute::Scope {
                env,
                home,
                folder,
                file,
                forbidden: &|path| {
                    if self.is_forbidden(path) {
                        Some("the policy of this machine forbids it")
                    } else {
                        denies(path).then_some("your rules deny reading it")
                    }
                },
                secrets: &self.secrets,
            },
        )?;
        if let Some(wrong) = check::document(&document.value).into_iter().next() {
            return Err(wrong.error(file, &document.positions));
        }
        let unknown = check::unknown::keys(&document.value, file, &document.positions)?;
        self.problems.extend(unknown);
        normalize::file(&mut document.value, &mut document.positions);
        Ok(document)
    }

    fn add(
        &mut self,
        mut document: Document,
        declared_in: &Path,
        folder: &Path,
        origin: &dyn Fn(&Positions, &str) -> Origin,
    ) {
        let plugins = self.take_plugins(&mut document.value, declared_in, folder);
        self.absorb(document.value, &|pointer| {
            origin(&document.positions, pointer)
        });
        self.add_plugins(plugins.unwrap_or_default());
    }

    /// Merges a document. A project's rules for single patterns are added to the user's general rules instead of replacing them
    /// as in OpenCode: a more specific rule of a project cannot loosen one of the user's.
    fn absorb(&mut self, value: Value, origin: &dyn Fn(&str) -> Origin) {
        if self.is_project {
            self.merged.spread_rules(&value)
        } else {
            self.add_users(&value)
        }
        self.merged.absorb(value, origin);
    }
}

fn rules_of(document: &Value, options: &LoadOptions) -> Vec<Rule> {
    let given = document.get("permission");
    given.map_or_else(Vec::new, |given| permission::rules(given, &options.home))
}

fn file_origin(path: &Path, positions: &Positions, pointer: &str) -> Origin {
    let at = position_of(positions, pointer);
    Origin::File {
        path: path.into(),
        line: at.line,
        column: at.column,
    }
}

//! Reading everything: the layers in their order, then what the reference does with the merged document.

pub(crate) mod discovery;
pub(crate) mod layers;
pub(crate) mod links;
mod loaded;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::load::links::Links;
use crate::opencode::check;
use crate::opencode::entries;
use crate::opencode::jsonc;
use crate::opencode::jsonc::Document;
use crate::opencode::merge::{Layered, leaves};
use crate::opencode::normalize;
use crate::opencode::plugin_list::{
    self, PluginScope, PluginSource, PluginSpec, SkipReason, SkippedPlugin,
};
use crate::opencode::substitute;
use crate::origin::{Positions, position_of};
use crate::project::Sieve;
use crate::settings::TrustChanges;
use crate::{
    Asked, ConfigError, ConfigProblem, OpenCodeConfig, Origin, PolicyFile, ProjectConfig, Settings,
    paths, unknown,
};

/// Where to look. All paths are absolute.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Working directory.
    pub directory: PathBuf,
    /// Root of the repository, or `/` when there is none: looking upwards ends here.
    pub worktree: PathBuf,
    /// Home folder.
    pub home: PathBuf,
    /// `$XDG_CONFIG_HOME`, in which `opencode` and `outrigger` are.
    pub xdg_config: PathBuf,
    /// Environment; nothing is read from the process's own.
    pub env: BTreeMap<String, String>,
    /// `--pure`: no external plugins. `OPENCODE_PURE` in `env` does the same.
    pub pure: bool,
    /// The administrator's folder, whose files have the last word; `/etc/opencode` in the reference.
    pub managed: Option<PathBuf>,
    /// The managed policy of the machine ([`crate::policy`]).
    pub policy: PathBuf,
    /// Names of hooks that can refuse something, in every spelling: a policy requires no others. Empty: nobody knows.
    pub hooks: Vec<String>,
    /// The user's name when no file sets `username`; asked of the system when `None`.
    pub username: Option<String>,
    /// How much of the project's files counts.
    pub project: ProjectConfig,
}

/// How much of a project's files is read into the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    Nothing,
    Harmless,
    Everything,
}

impl LoadOptions {
    /// Options for a working directory, with the folders that the environment names.
    pub fn new(
        directory: PathBuf,
        worktree: PathBuf,
        home: PathBuf,
        env: BTreeMap<String, String>,
    ) -> Self {
        let named = |name: &str| {
            env.get(name)
                .filter(|value| value.starts_with('/'))
                .map(PathBuf::from)
        };
        Self {
            xdg_config: named("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")),
            managed: Some(
                named("OPENCODE_TEST_MANAGED_CONFIG_DIR").unwrap_or_else(|| "/etc/opencode".into()),
            ),
            directory,
            worktree,
            home,
            env,
            pure: false,
            policy: crate::policy::POLICY_FILE.into(),
            hooks: Vec::new(),
            username: None,
            project: ProjectConfig::default(),
        }
    }

    /// The folder of the project: the root of the working tree, outside version control the working folder.
    pub(crate) fn project_folder(&self) -> &Path {
        match self.worktree.parent() {
            Some(_) => &self.worktree,
            None => &self.directory,
        }
    }
}

/// The configuration, with where it came from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Typed view of `value`.
    pub config: OpenCodeConfig,
    /// The merged document in the reference's form, as the `config` hook gets it.
    pub value: Value,
    /// Origin of each leaf of `value` (scalars, lists, empty objects; each element of `plugin` and `instructions`), by
    /// JSON pointer. See [`Loaded::show`].
    pub origins: BTreeMap<String, Origin>,
    /// External plugins in loading order, once each; empty with `--pure`.
    pub plugins: Vec<PluginSpec>,
    /// Tool files of the config folders, lowest precedence first (B5); empty with `--pure`.
    pub tool_files: Vec<PluginSpec>,
    /// Entries that are written down and not loaded, with why.
    pub skipped: Vec<SkippedPlugin>,
    /// The managed policies; settings and plugins are within them already.
    pub policies: Vec<PolicyFile>,
    /// Config folders, lowest precedence first; the global one is there even when it does not exist.
    pub config_dirs: Vec<PathBuf>,
    /// `outrigger.toml` and its environment variables.
    pub settings: Settings,
    /// Origin of each setting, by its dotted name, defaults included.
    pub settings_origins: BTreeMap<String, Origin>,
    /// Files that were read, in order.
    pub files: Vec<PathBuf>,
    /// What is wrong but did not stop the loading.
    pub problems: Vec<ConfigProblem>,
    /// What of the project's files takes trust, in order.
    pub asks: Vec<Asked>,
    /// It is left out, since nobody let it count.
    pub left_out: bool,
    /// A person trusts the folder, as far as its settings ask for something.
    pub is_trusted: bool,
    /// What the user's files say without the project's, where the project has any.
    pub users: Option<Box<OpenCodeConfig>>,
    pub(crate) options: LoadOptions,
}

/// Reads the whole configuration. Nothing is written and no folder is made.
///
/// # Errors
/// A file that cannot be read or parsed, a known key of the wrong type, a `{file:…}` that is not there, an unknown
/// setting in outrigger.toml: a [`ConfigError`], which names the file and the place.
pub fn load(options: &LoadOptions) -> Result<Loaded, ConfigError> {
    let mut loaded = match &options.project {
        ProjectConfig::All => load_as(options, Extent::Everything)?,
        ProjectConfig::Trusted(None) => load_as(options, Extent::Harmless)?,
        ProjectConfig::Trusted(Some(known)) => {
            let mut harmless = load_as(options, Extent::Harmless)?;
            if !unknown(&harmless.asks, known).is_empty() {
                harmless
            } else if harmless.asks.is_empty() {
                harmless.is_trusted = true;
                harmless
            } else {
                let whole = load_as(options, Extent::Everything)?;
                // A file may have changed meanwhile.
                match unknown(&whole.asks, known).is_empty() {
                    true => whole,
                    false => harmless,
                }
            }
        }
    };
    let has_project = |file: &PathBuf| project_folder_of(options, file.parent());
    if loaded.files.iter().any(has_project) {
        let users = load_as(options, Extent::Nothing)?;
        loaded.users = Some(Box::new(users.config));
    }
    Ok(loaded)
}

/// Whether a folder with configuration is the project's: on the way up from where one works, and not the user's home.
pub(crate) fn project_folder_of(options: &LoadOptions, folder: Option<&Path>) -> bool {
    let Some(folder) = folder else { return false };
    let own = folder.ancestors().find(|it| it.ends_with(".opencode"));
    let base = own.map_or(Some(folder), Path::parent);
    let named = layers::path_variable(options, "OPENCODE_CONFIG_DIR");
    base.is_some_and(|base| {
        let up = paths::upwards(&options.directory, &options.worktree);
        up.iter().any(|it| it == base) && base != options.home && named.as_deref() != Some(folder)
    })
}

fn load_as(options: &LoadOptions, extent: Extent) -> Result<Loaded, ConfigError> {
    let mut loader = Loader::new(options)?;
    loader.extent = extent;
    loader.global()?;
    if let Some(path) = layers::path_variable(options, "OPENCODE_CONFIG") {
        if !path.exists() {
            // Silent in the reference; a mistyped path is hard to find then.
            let message = format!("{} does not exist", path.display());
            loader.problems.push(ConfigProblem {
                file: "OPENCODE_CONFIG".into(),
                pointer: None,
                message,
            });
        }
        loader.file(&path)?;
    }
    for dir in layers::project_dirs(options) {
        loader.within(&dir, |loader| loader.files_of(&dir))?;
    }
    let config_dirs = layers::config_dirs(options);
    for dir in &config_dirs {
        loader.within(dir, |loader| loader.config_dir(dir))?;
    }
    loader.content_variable()?;
    if let Some(dir) = &options.managed {
        loader.files_of(dir)?;
    }
    loader.finish(config_dirs)
}

/// What the user's own files say, merged, in the reference's form.
///
/// # Errors
/// As [`load`].
pub fn load_global(options: &LoadOptions) -> Result<Value, ConfigError> {
    let mut loader = Loader::new(options)?;
    let dir = layers::global_dir(options);
    let mut merged = Value::Object(serde_json::Map::new());
    for name in layers::GLOBAL_FILES {
        if let Some(document) = loader.read(&dir.join(name))? {
            crate::merge(&mut merged, document.value);
        }
    }
    Ok(merged)
}

/// What was read so far. What the reference does with it at the end is in `finish`.
pub(crate) struct Loader<'a> {
    /// What to read.
    pub(crate) options: &'a LoadOptions,
    /// The managed policies: no file of ours is read past them.
    pub(crate) policies: Vec<PolicyFile>,
    /// The layers so far, but for their plugins.
    pub(crate) merged: Layered,
    /// Plugins so far, once each.
    pub(crate) plugins: Vec<PluginSpec>,
    /// Tool files so far.
    pub(crate) tool_files: Vec<PluginSpec>,
    /// Entries for a plugin of which a later entry counts.
    pub(crate) lost: Vec<PluginSpec>,
    /// Entries of a global file whose list a later global file replaces.
    pub(crate) replaced: Vec<PluginSpec>,
    /// Files that were read.
    pub(crate) files: Vec<PathBuf>,
    /// What is worth telling.
    pub(crate) problems: Vec<ConfigProblem>,
    /// How much of the project's files counts.
    extent: Extent,
    /// What is read is the project's.
    is_project: bool,
    /// What takes trust.
    pub(crate) asks: Vec<Asked>,
}

impl<'a> Loader<'a> {
    fn new(options: &'a LoadOptions) -> Result<Self, ConfigError> {
        Ok(Self {
            options,
            policies: crate::policy::policies(options)?,
            merged: Layered::new(),
            plugins: Vec::new(),
            tool_files: Vec::new(),
            lost: Vec::new(),
            replaced: Vec::new(),
            files: Vec::new(),
            problems: Vec::new(),
            extent: Extent::Everything,
            is_project: false,
            asks: Vec::new(),
        })
    }

    /// Reads a folder, as the project's where it is that.
    fn within(
        &mut self,
        dir: &Path,
        read: impl FnOnce(&mut Self) -> Result<(), ConfigError>,
    ) -> Result<(), ConfigError> {
        self.is_project = project_folder_of(self.options, Some(dir));
        let done = match self.is_project && self.extent == Extent::Nothing {
            true => Ok(()),
            false => read(self),
        };
        self.is_project = false;
        done
    }

    /// Adds what takes trust and stands in no settings: it may count only where they do.
    pub(crate) fn ask_of_files(&mut self, settings: &Settings) {
        if self.extent == Extent::Nothing {
            return;
        }
        let found = crate::project::asks::of(self.options, settings, &self.asks);
        self.asks.extend(found);
        // Who has changes of code count unasked has those of plugins count here as well.
        let without_plugins = settings.trust.changes == TrustChanges::Allow;
        let files = crate::project::named_files::of(&self.asks, self.options, without_plugins);
        self.asks.extend(files);
    }

    /// Whether something was left out, and whether all counts.
    pub(crate) fn counts(&self) -> (bool, bool) {
        let left_out = self.extent == Extent::Harmless && !self.asks.is_empty();
        (left_out, self.extent == Extent::Everything)
    }

    /// Takes out of a document of the project's what does not count.
    fn sift(&mut self, document: &mut Value, file: &Path) {
        if !self.is_project {
            return;
        }
        let project = self.options.project_folder();
        let project = project
            .canonicalize()
            .unwrap_or_else(|_| project.to_owned());
        let mut sieve = Sieve {
            file,
            project: &project,
            keep: self.extent == Extent::Everything,
            asks: Vec::new(),
        };
        sieve.document(document);
        self.asks.append(&mut sieve.asks);
    }

    /// Whether a policy forbids a file, by its path, where its links lead, or since a forbidden place leads there.
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

    /// The global files are one layer: between them lists are replaced, `plugin` and `instructions` too, as in the
    /// reference, where they are read and cached apart from everything else.
    fn global(&mut self) -> Result<(), ConfigError> {
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
        self.merged
            .absorb(value, &|pointer| nearest(&origins, pointer));
        self.add_plugins(plugins);
        Ok(())
    }

    fn files_of(&mut self, dir: &Path) -> Result<(), ConfigError> {
        layers::FILES
            .iter()
            .try_for_each(|name| self.file(&dir.join(name)))
    }

    fn file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let Some(document) = self.read(path)? else {
            return Ok(());
        };
        let folder = path.parent().unwrap_or(path).to_owned();
        self.add(document, path, &folder, &|positions, pointer| {
            file_origin(path, positions, pointer)
        });
        Ok(())
    }

    fn config_dir(&mut self, dir: &Path) -> Result<(), ConfigError> {
        let named = layers::path_variable(self.options, "OPENCODE_CONFIG_DIR")
            .is_some_and(|named| named == dir);
        if named || dir.file_name().is_some_and(|name| name == ".opencode") {
            self.files_of(dir)?;
        }
        for mut entry in entries::read(dir, &Links::of(self.options), &mut self.problems)? {
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

    fn discovered(
        &mut self,
        dir: &Path,
        names: [&str; 2],
        source: PluginSource,
    ) -> Vec<PluginSpec> {
        let scope = self.scope(dir);
        let file = |spec| PluginSpec {
            spec,
            options: None,
            declared_in: dir.into(),
            source,
            scope,
        };
        let found = plugin_list::discover(dir, names);
        if self.is_project {
            let asked = |spec: &String| Asked::new(dir, names[0], &Value::String(spec.clone()));
            self.asks.extend(found.iter().map(asked));
            if self.extent == Extent::Harmless {
                return Vec::new();
            }
        }
        found.into_iter().map(file).collect()
    }

    fn content_variable(&mut self) -> Result<(), ConfigError> {
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

    fn read(&mut self, path: &Path) -> Result<Option<Document>, ConfigError> {
        // What the user's own files say holds, or nothing starts.
        let read = match self.is_project {
            true => paths::read_if_fit(path, &mut self.problems)?,
            false => paths::read(path)?,
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
        // Before anything in it is replaced: what a variable holds is no business of a project's.
        self.sift(&mut document.value, Path::new(file));
        let (env, home) = (&self.options.env, self.options.home.as_path());
        substitute::substitute(
            &mut document,
            substitute::Scope {
                env,
                home,
                folder,
                file,
                forbidden: &|path| self.is_forbidden(path),
            },
        )?;
        if let Some(wrong) = check::document(&document.value).into_iter().next() {
            return Err(wrong.error(file, &document.positions));
        }
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

    /// Merges a document. What a project says of single patterns stands beside what the user says of all, and not in its place,
    /// as it would in OpenCode: a project does not loosen a rule by being more precise.
    fn absorb(&mut self, value: Value, origin: &dyn Fn(&str) -> Origin) {
        if self.is_project {
            self.merged.spread_rules(&value);
        }
        self.merged.absorb(value, origin);
    }

    fn take_plugins(
        &self,
        value: &mut Value,
        declared_in: &Path,
        folder: &Path,
    ) -> Option<Vec<PluginSpec>> {
        let Some(Value::Array(list)) = value.as_object_mut()?.shift_remove("plugin") else {
            return None;
        };
        let scope = self.scope(declared_in);
        let specs = list.into_iter().filter_map(|entry| {
            let (spec, options) = match entry {
                Value::String(spec) => (spec, None),
                Value::Array(pair) => (pair.first()?.as_str()?.to_owned(), pair.get(1).cloned()),
                _ => return None,
            };
            let spec = plugin_list::resolve(&spec, folder, &self.options.home);
            Some(PluginSpec {
                spec,
                options,
                declared_in: declared_in.into(),
                source: PluginSource::Config,
                scope,
            })
        });
        Some(specs.collect())
    }

    fn add_plugins(&mut self, plugins: Vec<PluginSpec>) {
        self.plugins.extend(plugins);
        self.lost
            .extend(plugin_list::deduplicate(&mut self.plugins));
    }

    /// What is to be loaded (plugins, tool files) and what is not, with why.
    pub(crate) fn sorted_out(&mut self) -> (Vec<PluginSpec>, Vec<PluginSpec>, Vec<SkippedPlugin>) {
        let mut plugins = std::mem::take(&mut self.plugins);
        let mut tools = std::mem::take(&mut self.tool_files);
        let replaced = self.replaced.drain(..).map(|plugin| SkippedPlugin {
            plugin,
            reason: SkipReason::Replaced,
        });
        let mut skipped: Vec<SkippedPlugin> = replaced.collect();
        for plugin in self.lost.drain(..) {
            let key = plugin.key();
            if let Some(winner) = plugins.iter().find(|other| other.key() == key) {
                let reason = SkipReason::Overridden {
                    spec: winner.spec.clone(),
                    declared_in: winner.declared_in.clone(),
                };
                skipped.push(SkippedPlugin { plugin, reason });
            }
        }
        if self.options.pure || layers::switch(self.options, "OPENCODE_PURE") {
            let all = tools.drain(..).chain(plugins.drain(..));
            skipped.extend(all.map(|plugin| SkippedPlugin {
                plugin,
                reason: SkipReason::Pure,
            }));
        }
        let left_out = self.left_out();
        for list in [&mut tools, &mut plugins] {
            let out = list.extract_if(.., |plugin| left_out.contains(&plugin.key()));
            skipped.extend(out.map(|plugin| SkippedPlugin {
                plugin,
                reason: SkipReason::LeftOut,
            }));
        }
        (plugins, tools, skipped)
    }

    /// What `plugin bisect` leaves out of this run.
    fn left_out(&mut self) -> Vec<String> {
        let Some(text) = self.options.env.get(plugin_list::LEFT_OUT) else {
            return Vec::new();
        };
        serde_json::from_str(text).unwrap_or_else(|_| {
            self.problems.push(ConfigProblem {
                file: plugin_list::LEFT_OUT.into(),
                pointer: None,
                message:
                    "ignored: it is no JSON array of texts (`outrigger plugin bisect` sets it)"
                        .into(),
            });
            Vec::new()
        })
    }

    fn scope(&self, declared_in: &Path) -> PluginScope {
        let worktree = &self.options.worktree;
        let local = declared_in == Path::new("OPENCODE_CONFIG_CONTENT")
            || declared_in.starts_with(&self.options.directory)
            || (worktree != Path::new("/") && declared_in.starts_with(worktree));
        if local {
            PluginScope::Local
        } else {
            PluginScope::Global
        }
    }
}

fn file_origin(path: &Path, positions: &Positions, pointer: &str) -> Origin {
    let at = position_of(positions, pointer);
    Origin::File {
        path: path.into(),
        line: at.line,
        column: at.column,
    }
}

/// The origin of a value or, for one that has none of its own, of the nearest thing around it; of a whole object, that of
/// any value in it.
pub(crate) fn nearest(origins: &BTreeMap<String, Origin>, pointer: &str) -> Origin {
    let mut at = pointer;
    loop {
        if let Some(origin) = origins.get(at) {
            return origin.clone();
        }
        match at.rfind('/') {
            Some(slash) => at = at.get(..slash).unwrap_or_default(),
            None => break,
        }
    }
    let inside = format!("{pointer}/");
    let first = origins
        .range(inside.clone()..)
        .next()
        .filter(|(key, _)| key.starts_with(&inside));
    first.map_or(Origin::Default, |(_, origin)| origin.clone())
}

/// Pointers of all leaves, for those that list a document.
pub(crate) fn all_leaves(value: &Value) -> Vec<String> {
    let mut out = Vec::new();
    leaves(value, "", &mut |pointer| out.push(pointer.into()));
    out
}

//! Project files that its settings run: the script of a command hook, of an MCP server, of a formatter, of a plugin. They are
//! part of what the user trusts, by content.
//!
//! This module does not decide what a command line runs: every part of every word that names a project file is included, in the
//! forms that shells and interpreters accept, with the files that package runners find under a name (`packages.rs`). Files that
//! such a file loads are not followed, except code directly in a folder that is named instead of a file.

mod programs;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::project::TrustRequest;
use crate::project::command_words::{MAX_WORDS, Texts, has_wildcard, is_one_of, words};
use crate::project::file_digest::{Databases, held};
use crate::project::patterns::matching;
use crate::project::{packages, plugin_files, recipes};
use crate::{LoadOptions, paths};

pub(super) use programs::{CODE, DATA, ENDINGS, ENTRIES, INTERPRETERS, PACKAGE_SCRIPTS};
use programs::{NAMING, RUN_ANY_CONTENT};

/// Kind of such a file among the [`TrustRequest`].
pub const IS_RUN: &str = "is run";

/// Maximum number of files and lookups: settings with more cannot be trusted by content.
const MAX_FILES: usize = 200;
const MAX_LOOKUPS: usize = 40_000;
/// Maximum number of base folders for paths.
const MAX_BASES: usize = 24;

/// Returns the files named by requests that need trust. A changed, added or removed one needs approval again.
pub(crate) fn of(
    asks: &[TrustRequest],
    options: &LoadOptions,
    without_plugins: bool,
) -> Vec<TrustRequest> {
    let mut search = Search::new(options.project_folder(), options);
    for ask in asks {
        if !runs(&ask.what) || (without_plugins && is_plugin(&ask.what)) {
            continue;
        }
        let folder = Path::new(&ask.file);
        let folder = if folder.is_dir() {
            folder
        } else {
            folder.parent().unwrap_or(folder)
        };
        search.value(&ask.value, folder, &format!("{} {}", ask.file, ask.what));
        plugin_files::of(&mut search, ask, folder);
    }
    search.found
}

/// Returns the files below `project` that `value` names, with digests of their content, as text. `None`: more than the limit.
#[must_use]
pub fn files_run_by(value: &Value, project: &Path, home: &Path) -> Option<Vec<String>> {
    let options = LoadOptions {
        directory: project.to_owned(),
        home: home.to_owned(),
        ..LoadOptions::default()
    };
    let mut search = Search::new(project, &options);
    search.value(value, project, "");
    let files = search
        .found
        .iter()
        .map(|it| format!("{} {}", it.file, it.hash));
    (!search.too_much).then(|| files.collect())
}

/// Returns the files that an entry of the user's settings names, with digests of their content, as text. If there are more than
/// the limit, one line states that.
pub(crate) fn of_entry(entry: &Value, options: &LoadOptions) -> Vec<String> {
    let mut search = Search::new(options.project_folder(), options);
    search.value(entry, &options.directory, "");
    search
        .found
        .iter()
        .map(|it| format!("{} {}", it.file, it.hash))
        .collect()
}

/// Returns whether a setting of this name runs what it names. Rules and texts do not.
pub(super) fn runs(what: &str) -> bool {
    let texts = [
        "permission",
        "tools",
        "instructions",
        "agent",
        "mode",
        "model",
        "small_model",
        "share",
        "autoshare",
        "sends",
        "unconfined",
    ];
    let key = what.trim_start_matches('/').split('/').next();
    key.is_none_or(|key| !texts.contains(&key))
}

pub(super) fn is_plugin(what: &str) -> bool {
    matches!(what, "/plugin" | "plugin" | "tool")
}

pub(super) struct Search<'a> {
    /// As named, and its real path.
    pub(super) project: PathBuf,
    pub(super) real: PathBuf,
    pub(super) options: &'a LoadOptions,
    pub(super) known: BTreeSet<PathBuf>,
    pub(super) lookups: usize,
    too_much: bool,
    /// For the value that is looked at now.
    databases: Databases,
    pub(super) found: Vec<TrustRequest>,
}

impl<'a> Search<'a> {
    fn new(project: &Path, options: &'a LoadOptions) -> Self {
        Self {
            project: project.to_owned(),
            real: project
                .canonicalize()
                .unwrap_or_else(|_| project.to_owned()),
            options,
            known: BTreeSet::new(),
            lookups: 0,
            too_much: false,
            databases: Databases::AreCode,
            found: Vec::new(),
        }
    }

    fn value(&mut self, value: &Value, folder: &Path, by: &str) {
        let texts = Texts::of(value);
        let (mut all, mut variables) = (BTreeSet::new(), BTreeSet::new());
        for text in texts.commands.iter().chain(&texts.loads) {
            words(text, &mut all);
        }
        for text in &texts.variables {
            words(text, &mut variables);
        }
        let bases = self.bases(folder, &all, &variables);
        self.databases = Databases::AreCode;
        self.recipes(&mut all, &bases, by);
        if all.len() + variables.len() > MAX_WORDS {
            return self.give_up(by);
        }
        let interprets = all.iter().any(|it| is_one_of(it, &INTERPRETERS));
        self.databases = if all.iter().any(|it| is_one_of(it, &RUN_ANY_CONTENT)) {
            Databases::AreCode
        } else {
            Databases::AreData
        };
        for word in &all {
            let is_data = !interprets && paths::has_extension(Path::new(word), &DATA);
            for base in bases.iter().filter(|_| !is_data) {
                if self.too_much {
                    return;
                }
                self.word(word, base, by, interprets);
            }
        }
        for (word, base) in variables
            .iter()
            .flat_map(|it| bases.iter().map(move |base| (it, base)))
        {
            let path = paths::expand(word, base, &self.options.home);
            if self.is_projects(&path) && is_code(&path) {
                self.file(&path, by);
            }
        }
        for folder in packages::code_folders(self, &texts, &bases) {
            packages::folder(self, &folder, by);
        }
        packages::run_folders(self, &texts, &bases, by);
        packages::of(self, &all, &bases, by);
    }

    /// Returns the folders that relative paths may start from.
    fn bases(
        &self,
        folder: &Path,
        words: &BTreeSet<String>,
        variables: &BTreeSet<String>,
    ) -> Vec<PathBuf> {
        let mut bases = vec![folder.to_owned()];
        let around = folder
            .parent()
            .filter(|_| folder.ends_with(".claude"))
            .unwrap_or(folder)
            .to_owned();
        for base in [&around, &self.options.directory, &self.project] {
            if !bases.contains(base) {
                bases.push(base.clone());
            }
        }
        // `cd tools && ./run`, `"cwd": "tools"`, `cd tools; cd deep`.
        let mut from = vec![self.project.clone()];
        while !from.is_empty() && bases.len() < MAX_BASES {
            let named = words.iter().chain(variables);
            let folders: BTreeSet<PathBuf> = named
                .flat_map(|word| {
                    let expand = |base: &PathBuf| paths::expand(word, base, &self.options.home);
                    from.iter().map(expand).collect::<Vec<_>>()
                })
                .filter(|it| it.starts_with(&self.project) && it.is_dir())
                .filter(|it| !bases.contains(it))
                .collect();
            from = folders.into_iter().take(MAX_BASES - bases.len()).collect();
            bases.extend(from.iter().cloned());
        }
        bases
    }

    /// Adds files in which programs look for what they run, and the words of the named scripts.
    fn recipes(&mut self, all: &mut BTreeSet<String>, bases: &[PathBuf], by: &str) {
        let is_called = |name: &str| all.iter().any(|word| is_one_of(word, &[name]));
        let mut recipes = recipes::of_builds(all.iter().map(String::as_str));
        recipes.extend(recipes::of_runtimes(all.iter().map(String::as_str)));
        let has_scripts = PACKAGE_SCRIPTS.iter().any(|it| is_called(it));
        for base in bases {
            for name in &recipes {
                let file = base.join(name);
                if self.file(&file, by) && NAMING.contains(name) {
                    let text = outrigger_files::read_to_string(&file, outrigger_files::SETTINGS);
                    words(&text.unwrap_or_default(), all);
                }
            }
            if has_scripts {
                self.scripts(&base.join("package.json"), all, by);
            }
        }
    }

    pub(super) fn is_projects(&self, path: &Path) -> bool {
        path.starts_with(&self.project) || path.starts_with(&self.real)
    }

    /// Adds `scripts` of a `package.json`: the rest of the file may change freely.
    fn scripts(&mut self, file: &Path, all: &mut BTreeSet<String>, by: &str) {
        let Some(scripts) = scripts_of(file) else {
            return;
        };
        let named: Vec<String> = scripts
            .iter()
            .filter(|(name, _)| all.contains(*name))
            .filter_map(|(_, line)| Some(line.as_str()?.to_owned()))
            .collect();
        for line in named {
            words(&line, all);
        }
        if self.known.insert(file.join("scripts")) {
            let mut ask = TrustRequest::new(file, IS_RUN, &Value::Object(scripts));
            ask.shown = format!("`scripts`, named in {by}");
            self.found.push(ask);
        }
    }

    fn word(&mut self, word: &str, base: &Path, by: &str, interprets: bool) {
        let expand = |text: &str| paths::expand(text, base, &self.options.home);
        let path = expand(word);
        let mut forms = vec![path.clone()];
        // The text after a variable that names a folder.
        forms.extend(
            word.strip_prefix('/')
                .map(|rest| expand(rest.trim_start_matches('/'))),
        );
        // `python -m tools.server`
        if !word.contains('/') {
            let module = expand(&word.replace('.', "/"));
            forms.push(module.with_extension("py"));
            forms.push(module);
        }
        for form in forms {
            if !self.is_projects(&form) {
                continue;
            }
            // One without a folder could match anything.
            if has_wildcard(word) {
                if word.contains('/') {
                    for file in matching(&form) {
                        self.file(&file, by);
                    }
                }
                continue;
            }
            match form.is_dir() {
                true if interprets && form != self.project && form != self.real => {
                    for entry in ENTRIES {
                        self.file(&form.join(entry), by);
                    }
                }
                true => {}
                false if !self.file(&form, by) && form.extension().is_none() => {
                    for ending in ENDINGS {
                        self.file(&form.with_extension(ending), by);
                    }
                }
                false => {}
            }
        }
    }

    /// Adds a file; returns false if it does not exist.
    pub(super) fn file(&mut self, path: &Path, by: &str) -> bool {
        self.lookups += 1;
        if self.lookups > MAX_LOOKUPS || self.found.len() >= MAX_FILES {
            self.give_up(by);
            return false;
        }
        if path.symlink_metadata().is_err() {
            return false;
        }
        if !self.known.insert(path.to_owned()) {
            return true;
        }
        let real = path.canonicalize();
        let shown = |what: &str| format!("{what}, named in {by}");
        let mut interpreter = None;
        let ask = match &real {
            // The project determines the target of a link; the file there is not the project's.
            Ok(real) if !real.starts_with(&self.real) => {
                let mut ask =
                    TrustRequest::new(path, IS_RUN, &json!({ "link": real.display().to_string() }));
                ask.shown = shown(&format!("a link to {}", real.display()));
                Some(ask)
            }
            Ok(real) => {
                // A plugin in its folder has one name, whatever path leads to it.
                self.known.insert(real.clone());
                let content = held(real, self.databases);
                if content.is_none() {
                    // Something that is looked at later may run it.
                    self.known.remove(path);
                    self.known.remove(real);
                }
                content.map(|it| {
                    interpreter = it.interpreter;
                    TrustRequest {
                        file: real.display().to_string(),
                        what: IS_RUN.to_owned(),
                        hash: it.hash,
                        shown: shown(&it.shown),
                        value: Value::Null,
                    }
                })
            }
            Err(_) => Some(TrustRequest::new(
                path,
                IS_RUN,
                &json!("a link that leads nowhere"),
            )),
        };
        let news = ask.filter(|ask| {
            !self
                .found
                .iter()
                .any(|it| it.file == ask.file && it.is(ask))
        });
        self.found.extend(news);
        self.line(&interpreter.unwrap_or_default(), by);
        true
    }

    /// Adds what the first line of a script names.
    fn line(&mut self, line: &str, by: &str) {
        let mut started = BTreeSet::new();
        words(line, &mut started);
        for base in [self.project.clone(), self.options.directory.clone()] {
            for word in &started {
                self.word(word, &base, by, false);
            }
        }
    }

    /// Records that there is too much to check: it is trusted as such, and the question says so.
    fn give_up(&mut self, by: &str) {
        if std::mem::replace(&mut self.too_much, true) {
            return;
        }
        self.found.push(TrustRequest {
            file: self.project.display().to_string(),
            what: IS_RUN.to_owned(),
            hash: crate::project::digest(b"more than are looked at"),
            shown: format!("more files are named in {by} than are looked at: what they hold is not part of this"),
            value: Value::Null,
        });
    }
}

/// Returns whether a file may be run by its name: it has a code extension, or none, or is executable.
fn is_code(path: &Path) -> bool {
    let is_named = path.extension().is_none() || paths::has_extension(path, &CODE);
    let meta = path.metadata();
    meta.is_ok_and(|it| it.is_file() && (is_named || it.permissions().mode() & 0o111 != 0))
}

/// Returns `scripts` of a `package.json`.
pub(super) fn scripts_of(file: &Path) -> Option<Map<String, Value>> {
    let text = outrigger_files::read_to_string(file, outrigger_files::SETTINGS);
    let whole: Option<Value> = text.ok().and_then(|text| serde_json::from_str(&text).ok());
    match whole.and_then(|mut it| it.get_mut("scripts").map(Value::take)) {
        Some(Value::Object(scripts)) => Some(scripts),
        _ => None,
    }
}

//! The search for what a line executes.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Executed;
use crate::project::TrustRequest;
use crate::project::command_words::{has_wildcard, is_one_of, shell_words, without_variables};
use crate::project::file_digest::content_hash;
use crate::project::named_files::{
    CODE, ENDINGS, ENTRIES, INTERPRETERS, IS_RUN, PACKAGE_SCRIPTS, scripts_of,
};
use crate::project::patterns::{matching, matching_folders};
use crate::project::{packages, recipes};
use crate::{LoadOptions, paths};

/// Maximum number of words.
const MAX_WORDS: usize = 2000;
/// Maximum nesting of lines: `sh -c "bash -c './x'"`, a script of a `package.json` that calls another.
pub(super) const MAX_DEPTH: usize = 4;
/// Maximum number of folders of one line that relative paths may start from.
const MAX_FOLDERS: usize = 16;
/// Maximum number of flag letters directly before a value (`-sC`, `-f`).
const MAX_FLAG: usize = 8;
/// Programs that search a folder for modules by name.
const MODULES: [&str; 2] = ["python", "pypy"];
/// Programs that compile and run a tree of sources, with the word that makes them do so.
const COMPILED: [(&str, &str); 8] = [
    ("cargo", "run"),
    ("cargo", "xtask"),
    ("cargo", "test"),
    ("go", "run"),
    ("go", "test"),
    ("dotnet", "run"),
    ("swift", "run"),
    ("bazel", "run"),
];

pub(super) struct Search<'a> {
    project: PathBuf,
    real: PathBuf,
    home: &'a Path,
    /// Possible base folders of a relative path.
    bases: Vec<PathBuf>,
    words: usize,
    /// Files of recipes that were read for a line.
    read: BTreeSet<(PathBuf, String)>,
    pub(super) found: Executed,
    /// Why not all that is executed can be found.
    pub(super) unheld: Option<String>,
}

impl<'a> Search<'a> {
    pub(super) fn new(folder: &Path, options: &'a LoadOptions) -> Self {
        let project = options.project_folder();
        let mut bases = vec![folder.to_owned()];
        for base in [options.directory.as_path(), project] {
            if !bases.iter().any(|it| it == base) {
                bases.push(base.to_owned());
            }
        }
        Self {
            project: project.to_owned(),
            real: project
                .canonicalize()
                .unwrap_or_else(|_| project.to_owned()),
            home: &options.home,
            bases,
            words: 0,
            read: BTreeSet::new(),
            found: Executed::new(),
            unheld: None,
        }
    }

    pub(super) fn line(&mut self, line: &[String], depth: usize) {
        let words: Vec<String> = line.iter().map(|it| without_variables(it)).collect();
        let called = Called::of(line, &words);
        let known = self.bases.len();
        let folders = self.folders(&words, &called);
        self.bases.extend(folders);
        self.note_unheld(line);
        let mut before = "";
        for word in &words {
            self.words += 1;
            if self.words > MAX_WORDS {
                self.cannot_hold("it has too many words");
                break;
            }
            // One without a folder could match anything, but not if an interpreter runs it.
            let is_run = word.contains('/') || is_one_of(before, &INTERPRETERS);
            let patterns = called.is_interpreted && has_wildcard(word) && is_run;
            for path in self.places(word) {
                if patterns {
                    for it in matching(&path) {
                        self.file(&it, true);
                    }
                } else {
                    self.file(&path, called.is_interpreted);
                }
            }
            before = word;
        }
        self.found_by_name(&words, &called);
        self.builds(&words, &called, depth);
        let runs_script = called.has_scripts && self.scripts(&words, depth);
        self.runtimes(&called, runs_script);
        for word in line
            .iter()
            .filter(|it| depth > 0 && it.contains(char::is_whitespace))
        {
            self.line(&shell_words(word), depth - 1);
        }
        self.bases.truncate(known);
    }

    /// Returns the folders that a line names: `cd tools`, `make -sC tools`, `cd too*`.
    fn folders(&self, words: &[String], called: &Called) -> Vec<PathBuf> {
        let changes = words.iter().any(|it| is_one_of(it, &["cd", "pushd"]));
        let options = words
            .iter()
            .filter(|_| called.is_build())
            .flat_map(|it| option_values(it));
        let named = words.iter().map(String::as_str).chain(options);
        let folders = named.flat_map(|word| {
            let places = self.places(word);
            if has_wildcard(word) && changes {
                places.iter().flat_map(|it| matching_folders(it)).collect()
            } else {
                places
            }
        });
        folders.filter(|it| it.is_dir()).take(MAX_FOLDERS).collect()
    }

    /// Returns the paths that a word may mean in the project.
    fn places(&self, word: &str) -> Vec<PathBuf> {
        // `ENV=./x`, `alias.x=!./x`
        let value = word.rsplit(['=', '!']).next().filter(|it| *it != word);
        // `$(git rev-parse --show-toplevel)/x`: what follows a command that names a folder.
        let after = word.strip_prefix('/');
        let words = [Some(word), value, after]
            .into_iter()
            .flatten()
            .filter(|it| !it.is_empty() && !it.starts_with('-'));
        let bases = self.bases.iter();
        words
            .flat_map(|word| {
                let bases = bases.clone();
                bases.map(move |base| paths::expand(word, base, self.home))
            })
            .filter(|it| self.is_projects(it))
            .collect()
    }

    fn is_projects(&self, path: &Path) -> bool {
        path.starts_with(&self.project) || path.starts_with(&self.real)
    }

    /// Returns the folders of the project in which programs look for their files: many look in those above, too.
    fn above(&self) -> BTreeSet<PathBuf> {
        let all = self.bases.iter().flat_map(|it| it.ancestors());
        let all = all.filter(|it| self.is_projects(it));
        all.map(Path::to_owned).collect()
    }

    fn file(&mut self, path: &Path, is_interpreted: bool) {
        let Ok(meta) = path.metadata() else { return };
        let is_program = meta.permissions().mode() & 0o111 != 0;
        let is_code = path.extension().is_none() || paths::has_extension(path, &CODE);
        if is_program || is_interpreted && is_code {
            self.hold(path);
        }
    }

    /// Adds a file, or where a link leads out of the project; returns whether it is a file.
    fn hold(&mut self, path: &Path) -> bool {
        let Ok(real) = path.canonicalize() else {
            return false;
        };
        if !real.is_file() {
            return false;
        }
        if !real.starts_with(&self.real) {
            // The file there is not the project's, but the project determines the target.
            let target = json!({ "link": real.display().to_string() });
            let hash = TrustRequest::new(path, IS_RUN, &target).hash;
            self.found.insert(path.to_owned(), hash);
        } else if let Some(hash) = content_hash(&real) {
            self.found.insert(real, hash);
        }
        true
    }

    fn cannot_hold(&mut self, why: &str) {
        self.unheld.get_or_insert_with(|| why.to_owned());
    }

    /// Notes what is run of a line and cannot be found in it.
    fn note_unheld(&mut self, line: &[String]) {
        let words: Vec<&String> = line.iter().filter(|it| !it.is_empty()).collect();
        for pair in words.windows(2) {
            let [first, second] = pair else { continue };
            let compiles = |(program, verb): &(&str, &str)| {
                is_one_of(first, &[program]) && second.as_str() == *verb
            };
            if COMPILED.iter().any(compiles) {
                self.cannot_hold(&format!("`{first} {second}` runs a tree of sources"));
            }
            let is_shell = *first != "." && *first != "env" && is_one_of(first, &INTERPRETERS);
            let is_run = is_shell || *first == "eval" || *first == "-c";
            let is_named = second.contains('/') || *second == "$@";
            if is_run && second.starts_with(['$', '`']) && !is_named {
                self.cannot_hold(&format!(
                    "`{first}` runs what a variable or a command names"
                ));
            }
        }
    }

    /// Adds files that programs find under other names: modules, entry files of folders, programs of packages, what `find` finds.
    fn found_by_name(&mut self, words: &[String], called: &Called) {
        let mut all = Vec::new();
        let mut rest = words.iter();
        if rest.any(|it| is_one_of(it, &packages::RUNTIMES)) {
            let is_python = words.iter().any(|it| is_one_of(it, &MODULES));
            let mut before = "";
            for word in rest {
                let module = match word.strip_prefix("-m") {
                    Some(name) => name,
                    None if before == "-m" => word,
                    None => "",
                };
                if is_python && !module.is_empty() {
                    let places = self.places(&module.replace('.', "/"));
                    all.extend(places.iter().flat_map(|it| module_files(it)));
                }
                let places = self.places(word);
                all.extend(places.iter().flat_map(|it| loaded_for(it)));
                if places.iter().any(|it| it.is_file()) {
                    break;
                }
                before = word;
            }
        }
        if called.runs_packages {
            for folder in self.above() {
                let programs = folder.join("node_modules/.bin");
                let names = words.iter().filter_map(|it| packages::package_name(it));
                all.extend(names.map(|it| programs.join(it.rsplit('/').next().unwrap_or(it))));
            }
        }
        for path in all {
            self.hold(&path);
        }
        if packages::runs_folder(words) {
            self.run_folders(words);
        }
    }

    /// Adds what is below the folders of a line that runs what it finds there.
    fn run_folders(&mut self, words: &[String]) {
        let mut folders: Vec<PathBuf> = words
            .iter()
            .filter(|it| !it.starts_with('-'))
            .flat_map(|it| self.places(it))
            .filter(|it| it.is_dir())
            .collect();
        folders.dedup();
        let names = found_names(words);
        for folder in folders {
            let is_whole = folder == self.project || folder == self.real;
            let found = if is_whole {
                None
            } else {
                packages::files_below(&folder, &names)
            };
            match found {
                Some(files) => {
                    for it in &files {
                        self.hold(it);
                    }
                }
                None => self.cannot_hold("it runs what it finds in a folder with many files"),
            }
        }
    }

    /// Adds the files of build tools and task runners, and what the named recipes execute.
    fn builds(&mut self, words: &[String], called: &Called, depth: usize) {
        if called.is_build() {
            let mut files = Vec::new();
            for folder in self.above() {
                files.extend(called.builds.iter().map(|it| folder.join(it)));
            }
            let mut before = "";
            for word in words {
                // `-f x.mk`, `--file=x.mk`, `MAKEFILES=x.mk`
                let is_value = before.starts_with('-') || word.starts_with("MAKEFILES=");
                let values = option_values(word).chain(is_value.then_some(word.as_str()));
                files.extend(values.flat_map(|it| self.places(it)));
                before = word;
            }
            for file in files {
                self.recipes(&file, words, depth);
            }
        }
    }

    /// Adds the settings of runtimes, where what they run is the project's.
    fn runtimes(&mut self, called: &Called, runs_script: bool) {
        let is_projects = |it: &PathBuf| !it.ends_with("package.json");
        if called.runtimes.is_empty() || !runs_script && !self.found.keys().any(is_projects) {
            return;
        }
        for folder in self.above() {
            for name in &called.runtimes {
                self.hold(&folder.join(name));
            }
        }
    }

    fn recipes(&mut self, file: &Path, words: &[String], depth: usize) {
        let key = (file.to_owned(), words.join(" "));
        if !self.hold(file) || self.words > MAX_WORDS || !self.read.insert(key) {
            return;
        }
        let text = outrigger_files::read_to_string(file, outrigger_files::SETTINGS);
        let Ok(text) = text else {
            let name = file.file_name().unwrap_or_default().display().to_string();
            return self.cannot_hold(&format!("cannot read {name}"));
        };
        let included = recipes::included(file, &text);
        if let Some(line) = &included.unknown {
            self.cannot_hold(&format!("cannot find what `{line}` includes"));
        }
        let beside = file.parent().unwrap_or(file).to_owned();
        for name in &included.files {
            self.words += 1;
            let mut places = self.places(name);
            places.push(paths::expand(name, &beside, self.home));
            places.retain(|it| self.is_projects(it));
            let (patterns, files): (Vec<_>, Vec<_>) = places
                .into_iter()
                .partition(|it| has_wildcard(&it.to_string_lossy()));
            let matched = patterns.iter().flat_map(|it| matching(it));
            for file in files.into_iter().chain(matched) {
                self.recipes(&file, words, depth);
            }
        }
        if depth > 0 && recipes::has_rules(file) {
            for line in recipes::lines_of(&text, words) {
                self.line(&shell_words(&line), depth - 1);
            }
        }
    }

    /// Handles `scripts` of a `package.json`, and what the named ones execute; returns whether one is named.
    fn scripts(&mut self, words: &[String], depth: usize) -> bool {
        let mut is_named = false;
        for base in self.above() {
            let file = base.join("package.json");
            let Some(scripts) = scripts_of(&file) else {
                continue;
            };
            let lines: Vec<Vec<String>> = scripts
                .iter()
                .filter(|(name, _)| words.contains(name))
                // It finds the programs of packages by name.
                .filter_map(|(_, line)| Some(shell_words(&format!("npx {}", line.as_str()?))))
                .collect();
            let hash = TrustRequest::new(&file, IS_RUN, &Value::Object(scripts)).hash;
            self.found.insert(file, hash);
            is_named |= !lines.is_empty();
            for line in lines.iter().filter(|_| depth > 0) {
                self.line(line, depth - 1);
            }
        }
        is_named
    }
}

/// What the words of a line call.
struct Called {
    is_interpreted: bool,
    has_scripts: bool,
    runs_packages: bool,
    /// Names of files with recipes.
    builds: BTreeSet<&'static str>,
    /// Names of settings of runtimes.
    runtimes: BTreeSet<&'static str>,
}

impl Called {
    /// `line` as written, `words` without variables.
    fn of(line: &[String], words: &[String]) -> Self {
        // `X=make`, `${MAKE:-make}`
        let is_end = |c: char| !c.is_alphanumeric() && !"-_./".contains(c);
        let parts = || {
            line.iter()
                .flat_map(move |it| it.split(is_end))
                .filter(|it| !it.is_empty())
        };
        let all = || parts().chain(words.iter().map(String::as_str));
        // `.` means a folder more often than `source`, as `s/.` of a call of `sed` does.
        let is_dot = |it: &str| it.rsplit('/').next() == Some(".");
        let is_called = |programs: &[&str]| all().any(|it| !is_dot(it) && is_one_of(it, programs));
        Self {
            is_interpreted: is_called(&INTERPRETERS) || words.first().is_some_and(|it| it == "."),
            has_scripts: is_called(&PACKAGE_SCRIPTS),
            runs_packages: is_called(&packages::RUNNERS),
            builds: recipes::of_builds(all()),
            runtimes: recipes::of_runtimes(all()),
        }
    }

    fn is_build(&self) -> bool {
        !self.builds.is_empty()
    }
}

/// Returns what may be the value of an option in the same word: `-Ctools`, `-sCtools`, `--file=x.mk`.
fn option_values(word: &str) -> impl Iterator<Item = &str> {
    let named = word.split_once('=').map(|(_, value)| value);
    let short = (2..=MAX_FLAG).filter_map(|at| word.get(at..));
    named
        .into_iter()
        .chain(short)
        .filter(|it| word.starts_with('-') && !it.is_empty())
}

/// Returns the files that `python -m` looks for.
fn module_files(path: &Path) -> [PathBuf; 4] {
    [
        path.with_extension("py"),
        path.with_extension("pyc"),
        path.join("__main__.py"),
        path.join("__init__.py"),
    ]
}

/// Returns the files that a runtime loads for a folder, or for a file without its extension.
fn loaded_for(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() {
        let entries = ENTRIES.iter().filter(|it| **it != "package.json");
        let mut all: Vec<PathBuf> = entries.map(|it| path.join(it)).collect();
        all.extend(packages::main_of(path));
        return all;
    }
    if path.exists() || path.extension().is_some() {
        return Vec::new();
    }
    ENDINGS.iter().map(|it| path.with_extension(it)).collect()
}

/// Returns the patterns of names that `find` is limited to; none if it is not.
fn found_names(words: &[String]) -> Vec<String> {
    if words
        .iter()
        .any(|it| it == "!" || it == "-not" || it == "-o")
    {
        return Vec::new();
    }
    let pairs = words.windows(2).filter_map(|pair| match pair {
        [option, name] if option == "-name" => Some(name.clone()),
        _ => None,
    });
    pairs.collect()
}

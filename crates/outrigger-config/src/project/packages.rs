//! Files that package runners (`npx`, `npm exec`, `bun x` ...) run under a name, and those that a `package.json` runs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::paths;
use crate::project::TrustRequest;
use crate::project::command_words::{Texts, is_one_of, matches, words};
use crate::project::named_files::{CODE, INTERPRETERS, IS_RUN, Search};

/// Programs that run a package, or a program of one, by its name.
pub(super) const RUNNERS: [&str; 8] = [
    "npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx", "corepack",
];
/// Programs that run a folder, or take code from folders passed to them.
pub(super) const RUNTIMES: [&str; 11] = [
    "node", "bun", "deno", "tsx", "ts-node", "python", "perl", "ruby", "php", "lua", "pypy",
];
/// Programs that get a folder, and run its content.
const FOLDER_RUNNERS: [&str; 3] = ["bats", "prove", "run-parts"];
/// Programs that search a folder for files, and may run what they find.
const FINDERS: [&str; 3] = ["fd", "fdfind", "find"];
/// Maximum number of files of such a folder.
const MAX_BELOW: usize = 100;
const MAX_DEPTH: usize = 4;
/// Keys of a `package.json` that determine what is run if the package is named.
const FIELDS: [&str; 7] = [
    "bin",
    "exports",
    "imports",
    "main",
    "module",
    "type",
    "workspaces",
];
/// Runners that try a program of the package that they are in before the registry.
const OWN_PROGRAMS: [&str; 2] = ["npm", "npx"];
/// Extensions that are tried after the value of `main`.
const ENDINGS: [&str; 4] = ["js", "cjs", "mjs", "ts"];
/// Maximum number of code files of one folder.
const MAX_CODE: usize = 64;
/// Maximum number of files read to find them.
const MAX_ENTRIES: usize = 6400;
/// Maximum number of files named by one `package.json`.
const MAX_NAMED: usize = 32;

/// Adds programs and packages of `node_modules` that the words of a command name, if something runs them.
pub(super) fn of(search: &mut Search<'_>, all: &BTreeSet<String>, bases: &[PathBuf], by: &str) {
    if !all.iter().any(|it| is_one_of(it, &RUNNERS)) {
        return;
    }
    if all.iter().any(|it| is_one_of(it, &OWN_PROGRAMS)) {
        for base in bases {
            if search.is_projects(base) {
                manifest(search, base, by);
            }
        }
    }
    let above = bases
        .iter()
        .flat_map(|it| it.ancestors())
        .filter(|it| search.is_projects(it));
    let folders: BTreeSet<PathBuf> = above.map(|it| it.join("node_modules")).collect();
    let folders: Vec<PathBuf> = folders.into_iter().filter(|it| it.is_dir()).collect();
    for word in all {
        let Some(name) = package_name(word) else {
            continue;
        };
        let program = name.rsplit('/').next().unwrap_or(name);
        for modules in &folders {
            let link = modules.join(".bin").join(program);
            if search.file(&link, by)
                && let Ok(real) = link.canonicalize()
                && real.starts_with(&search.real)
                && real.starts_with(modules.canonicalize().as_deref().unwrap_or(modules))
            {
                let package = real.ancestors().skip(1).find(|it| is_package(it));
                let near = real.parent().filter(|it| !it.ends_with(".bin"));
                for folder in package.into_iter().chain(near) {
                    self::folder(search, folder, by);
                }
            }
            let package = modules.join(name);
            if package.is_dir() {
                self::folder(search, &package, by);
            }
        }
    }
}

/// Returns folders passed to a runtime before a file, and those in variables: their content is run by names that are
/// unknown here.
pub(super) fn code_folders(
    search: &Search<'_>,
    texts: &Texts,
    bases: &[PathBuf],
) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let expand = |word: &str, base: &Path| paths::expand(word, base, &search.options.home);
    for line in &texts.lines {
        let mut rest = line.iter();
        if !rest.any(|it| is_one_of(it, &RUNTIMES)) {
            continue;
        }
        // `python -m x` looks in its folder for all imports.
        let is_searching = |it: &String| it.starts_with("-m") || it.starts_with("-c");
        let is_python = line.iter().any(|it| is_one_of(it, &["python", "pypy"]));
        if is_python && line.iter().any(is_searching) {
            found.extend(bases.iter().cloned());
        }
        for word in rest {
            let is_file = |base: &PathBuf| expand(word, base).is_file();
            if !word.starts_with('-') && bases.iter().any(is_file) {
                break;
            }
            let mut parts = BTreeSet::new();
            words(word, &mut parts);
            let all = parts
                .iter()
                .flat_map(|part| bases.iter().map(move |it| (part, it)));
            found.extend(all.map(|(part, base)| expand(part, base)));
        }
    }
    let mut loads = BTreeSet::new();
    texts.loads.iter().for_each(|it| words(it, &mut loads));
    let all = loads
        .iter()
        .flat_map(|part| bases.iter().map(move |it| (part, it)));
    found.extend(all.map(|(part, base)| expand(part, base)));
    found.retain(|it| search.is_projects(it) && it.is_dir());
    found
}

/// Returns whether a line runs what it finds in folders.
pub(super) fn runs_folder(line: &[String]) -> bool {
    let has = |programs: &[&str]| line.iter().any(|it| is_one_of(it, programs));
    // `-exec sh {}` and `| xargs sh` run what is found, `-exec cat {}` reads it.
    let is_start = |it: &&String| {
        it.starts_with("-exec") || it.starts_with("-ok") || matches!(it.as_str(), "-x" | "xargs")
    };
    let starts = |at: usize| {
        let mut started = line.iter().skip(at + 1).take_while(|it| *it != "+");
        let mut first = started.clone().skip_while(|it| it.is_empty());
        first.next().is_some_and(|it| it == "{}")
            || started.any(|it| it != "." && is_one_of(it, &INTERPRETERS))
    };
    let runs_found = || {
        let mut all = line.iter().enumerate().filter(|(_, it)| is_start(it));
        all.any(|(at, _)| starts(at))
    };
    has(&FOLDER_RUNNERS) || has(&FINDERS) && runs_found()
}

/// Adds folders passed to a program that runs their content: every file is included, under any name.
pub(super) fn run_folders(search: &mut Search<'_>, texts: &Texts, bases: &[PathBuf], by: &str) {
    let words: BTreeSet<&String> = texts
        .lines
        .iter()
        .filter(|it| runs_folder(it))
        .flatten()
        .filter(|it| !it.starts_with('-'))
        .collect();
    for word in words {
        for base in bases {
            let folder = paths::expand(word, base, &search.options.home);
            let is_whole = folder == search.project || folder == search.real;
            if !is_whole && search.is_projects(&folder) && folder.is_dir() {
                all_files(search, &folder, by);
            }
        }
    }
}

fn all_files(search: &mut Search<'_>, folder: &Path, by: &str) {
    let (files, _) = walk(folder, &[]);
    for path in files {
        search.file(&path, by);
    }
}

/// Returns the files below a folder, of these names if there are any; `None` if there are more than are looked at.
pub(super) fn files_below(folder: &Path, names: &[String]) -> Option<Vec<PathBuf>> {
    let (files, is_whole) = walk(folder, names);
    is_whole.then_some(files)
}

/// Returns the files below a folder, and whether these are all.
fn walk(folder: &Path, names: &[String]) -> (Vec<PathBuf>, bool) {
    let mut waiting = vec![(folder.to_owned(), 0)];
    let (mut files, mut is_whole) = (Vec::new(), true);
    while let Some((folder, depth)) = waiting.pop() {
        let mut entries: Vec<PathBuf> = fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|it| it.path())
            .take(MAX_ENTRIES)
            .collect();
        is_whole &= entries.len() < MAX_ENTRIES;
        entries.sort();
        for path in entries {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() && !path.is_symlink() {
                is_whole &= depth < MAX_DEPTH;
                waiting.extend(Some((path, depth + 1)).filter(|_| depth < MAX_DEPTH));
            } else if names.is_empty() || names.iter().any(|it| matches(it, &name)) {
                is_whole &= files.len() < MAX_BELOW;
                files.extend(Some(path).filter(|_| files.len() < MAX_BELOW));
            }
        }
    }
    (files, is_whole)
}

/// Returns the file that `main` of the `package.json` of a folder names, in all forms in which a runtime looks for it.
pub(super) fn main_of(folder: &Path) -> Vec<PathBuf> {
    let text =
        outrigger_files::read_to_string(&folder.join("package.json"), outrigger_files::SETTINGS);
    let whole: Option<Value> = text.ok().and_then(|text| serde_json::from_str(&text).ok());
    let main = whole.as_ref().and_then(|it| it.get("main")?.as_str());
    main.map_or_else(Vec::new, |it| forms_of(&folder.join(it)))
}

/// Returns the files that a path in a `package.json` may mean.
fn forms_of(path: &Path) -> Vec<PathBuf> {
    let entry = |ending: &&str| path.join(format!("index.{ending}"));
    let ended = |ending: &&str| PathBuf::from(format!("{}.{ending}", path.display()));
    let forms = ENDINGS.iter().map(ended).chain(ENDINGS.iter().map(entry));
    std::iter::once(path.to_owned()).chain(forms).collect()
}

/// Returns the name without its version, if the word may be one.
pub(super) fn package_name(word: &str) -> Option<&str> {
    let name = match word.rfind('@') {
        Some(at) if at > 0 => word.get(..at)?,
        _ => word,
    };
    let slashes = usize::from(name.starts_with('@'));
    let plain = !name.is_empty() && !name.starts_with(['-', '.', '/', '~']);
    (plain && name.matches('/').count() == slashes).then_some(name)
}

/// Returns whether a folder is that of a package in a `node_modules`.
fn is_package(folder: &Path) -> bool {
    let mut above = folder.ancestors().skip(1);
    let scope = above.next();
    let is_scoped = |it: &Path| {
        let name = it.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with('@')
    };
    let modules = match scope {
        Some(it) if is_scoped(it) => above.next(),
        other => other,
    };
    modules.is_some_and(|it| it.ends_with("node_modules")) && !folder.ends_with(".bin")
}

/// Adds the files of a folder that run when it is named: those in its `package.json`, and the code directly in it.
pub(super) fn folder(search: &mut Search<'_>, folder: &Path, by: &str) {
    if !search.known.insert(folder.join("*")) {
        return;
    }
    search.lookups += 1;
    manifest(search, folder, by);
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.map(|it| it.path());
    let mut code: Vec<PathBuf> = files
        .filter(|it| paths::has_extension(it, &CODE))
        .take(MAX_ENTRIES)
        .collect();
    // Packages of Python.
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let packages = entries.map(|it| it.path().join("__init__.py"));
    code.extend(packages.filter(|it| it.is_file()).take(MAX_CODE));
    code.sort();
    for file in code.iter().take(MAX_CODE) {
        search.file(file, by);
    }
}

/// Adds what the `package.json` of a folder runs, and the files that it names: the rest of it may change freely.
fn manifest(search: &mut Search<'_>, folder: &Path, by: &str) {
    let file = folder.join("package.json");
    let text = outrigger_files::read_to_string(&file, outrigger_files::SETTINGS);
    let whole: Option<Value> = text.ok().and_then(|text| serde_json::from_str(&text).ok());
    let Some(Value::Object(mut whole)) = whole else {
        return;
    };
    let fields: Map<String, Value> = FIELDS
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), whole.get_mut(*name)?.take())))
        .collect();
    if fields.is_empty() {
        return;
    }
    let mut named = Vec::new();
    fields.values().for_each(|it| texts(it, &mut named));
    let mut ask = TrustRequest::new(&file, IS_RUN, &Value::Object(fields));
    ask.shown = format!("what it says is run, named in {by}");
    search.found.push(ask);
    for text in named.iter().take(MAX_NAMED) {
        let path = folder.join(text);
        if !search.is_projects(&path) || text.split('/').any(|it| it == "..") {
            continue;
        }
        for form in forms_of(&path).iter().filter(|it| it.is_file()) {
            search.file(form, by);
        }
    }
}

fn texts(value: &Value, all: &mut Vec<String>) {
    match value {
        Value::String(text) => all.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|it| texts(it, all)),
        Value::Object(fields) => fields.values().for_each(|it| texts(it, all)),
        _ => {}
    }
}

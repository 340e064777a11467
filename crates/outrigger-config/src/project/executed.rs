//! Project files that a command line executes: its programs, and the scripts passed to interpreters.
//!
//! The user's trust by content is wider ([`named_files`](super::named_files)): it covers every file that a word may name, once,
//! at the start. Only the files here are compared with their hash before each run, and protected from commands while the agent
//! works: a line that checks `src/*.ts` names files that the model is meant to change.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::project::TrustRequest;
use crate::project::command_words::{
    Texts, has_wildcard, is_one_of, shell_words, without_variables,
};
use crate::project::file_digest::content_hash;
use crate::project::named_files::{
    CODE, INTERPRETERS, IS_RUN, PACKAGE_SCRIPTS, is_plugin, runs, scripts_of,
};
use crate::project::patterns::matching;
use crate::{LoadOptions, paths};

/// Maximum number of words.
const MAX_WORDS: usize = 500;
/// Maximum nesting of lines: `sh -c "bash -c './x'"`, a script of a `package.json` that calls another.
const MAX_DEPTH: usize = 4;
/// Folders of build results and installed packages, which are regenerated during work.
const BUILT: [&str; 8] = [
    "node_modules",
    "dist",
    "build",
    "target",
    "out",
    "vendor",
    ".venv",
    "venv",
];
/// Files without a code extension that define what is run, and that are edited during work.
const RECIPES: [&str; 6] = [
    "GNUmakefile",
    "Makefile",
    "makefile",
    "Justfile",
    "justfile",
    "Rakefile",
];

/// Files by real path, with digests of their content, or of `scripts` of a `package.json`.
pub(crate) type Executed = BTreeMap<PathBuf, String>;

/// Returns what `value`, from a file of `folder`, executes of the project. Reads the disk.
pub(crate) fn executed_by(value: &Value, folder: &Path, options: &LoadOptions) -> Executed {
    let project = options.project_folder();
    let mut bases = vec![folder.to_owned()];
    for base in [options.directory.as_path(), project] {
        if !bases.iter().any(|it| it == base) {
            bases.push(base.to_owned());
        }
    }
    let mut search = Search {
        project: project.to_owned(),
        real: project
            .canonicalize()
            .unwrap_or_else(|_| project.to_owned()),
        home: &options.home,
        bases,
        words: 0,
        found: Executed::new(),
    };
    for line in Texts::of(value).lines {
        search.line(&line, MAX_DEPTH);
    }
    search.found
}

/// Returns project files that the requests execute, except those built, installed or written during work. Reads the disk.
pub(crate) fn kept(asks: &[TrustRequest], options: &LoadOptions) -> BTreeSet<PathBuf> {
    let mut all = BTreeSet::new();
    for ask in asks
        .iter()
        .filter(|it| runs(&it.what) && !is_plugin(&it.what))
    {
        let folder = folder_of(Path::new(&ask.file));
        all.extend(executed_by(&ask.value, folder, options).into_keys());
    }
    all.retain(|it| is_kept(it, options.project_folder()));
    all
}

/// Returns the base folder of paths in a settings file.
pub(crate) fn folder_of(file: &Path) -> &Path {
    let folder = file.parent().unwrap_or(file);
    match (folder.file_name(), folder.parent()) {
        // `CLAUDE_PROJECT_DIR`.
        (Some(name), Some(above)) if name == ".claude" => above,
        _ => folder,
    }
}

/// Returns whether an executed file is protected during work.
pub(crate) fn is_kept(file: &Path, project: &Path) -> bool {
    let real = project.canonicalize();
    let below = file
        .strip_prefix(real.as_deref().unwrap_or(project))
        .unwrap_or(file);
    let is_built = below.iter().any(|part| BUILT.iter().any(|it| part == *it));
    let name = file.file_name().unwrap_or_default();
    let is_recipe = RECIPES.iter().any(|it| name == *it) || name == "package.json";
    !is_built && !is_recipe && file.is_file()
}

struct Search<'a> {
    project: PathBuf,
    real: PathBuf,
    home: &'a Path,
    /// Possible base folders of a relative path.
    bases: Vec<PathBuf>,
    words: usize,
    found: Executed,
}

impl Search<'_> {
    fn line(&mut self, line: &[String], depth: usize) {
        let words: Vec<String> = line.iter().map(|it| without_variables(it)).collect();
        // `.` means a folder more often than `source`.
        let is_called =
            |programs: &[&str]| words.iter().any(|it| it != "." && is_one_of(it, programs));
        let is_interpreted = is_called(&INTERPRETERS) || words.first().is_some_and(|it| it == ".");
        let has_scripts = is_called(&PACKAGE_SCRIPTS);
        let folders: Vec<PathBuf> = words
            .iter()
            .flat_map(|word| self.places(word))
            .filter(|it| it.is_dir())
            .take(16)
            .collect();
        let known = self.bases.len();
        self.bases.extend(folders);
        for word in &words {
            self.words += 1;
            if self.words > MAX_WORDS {
                break;
            }
            let patterns = is_interpreted && word.contains('/') && has_wildcard(word);
            for path in self.places(word) {
                if patterns {
                    matching(&path)
                        .iter()
                        .for_each(|it| self.file(it, is_interpreted))
                } else {
                    self.file(&path, is_interpreted)
                }
            }
        }
        if has_scripts {
            self.scripts(&words, depth);
        }
        for word in line
            .iter()
            .filter(|it| depth > 0 && it.contains(char::is_whitespace))
        {
            self.line(&shell_words(word), depth - 1);
        }
        self.bases.truncate(known);
    }

    /// Returns the paths that a word may mean in the project.
    fn places(&self, word: &str) -> Vec<PathBuf> {
        // `ENV=./x`, `alias.x=!./x`
        let value = word.rsplit(['=', '!']).next().filter(|it| *it != word);
        let words = [Some(word), value]
            .into_iter()
            .flatten()
            .filter(|it| !it.is_empty() && !it.starts_with('-'));
        let bases = self.bases.iter();
        words
            .flat_map(|word| {
                let bases = bases.clone();
                bases.map(move |base| paths::expand(word, base, self.home))
            })
            .filter(|it| it.starts_with(&self.project) || it.starts_with(&self.real))
            .collect()
    }

    fn file(&mut self, path: &Path, is_interpreted: bool) {
        let Ok(meta) = path.metadata() else { return };
        let is_program = meta.permissions().mode() & 0o111 != 0;
        let is_code = path.extension().is_none() || paths::has_extension(path, &CODE);
        if !meta.is_file() || !(is_program || is_interpreted && is_code) {
            return;
        }
        let Ok(real) = path.canonicalize() else {
            return;
        };
        // A file elsewhere is not the project's.
        if real.starts_with(&self.real)
            && let Some(hash) = content_hash(&real)
        {
            self.found.insert(real, hash);
        }
    }

    /// Handles `scripts` of a `package.json`, and what the named ones execute.
    fn scripts(&mut self, words: &[String], depth: usize) {
        for base in self.bases.clone() {
            let file = base.join("package.json");
            let Some(scripts) = scripts_of(&file) else {
                continue;
            };
            let lines: Vec<Vec<String>> = scripts
                .iter()
                .filter(|(name, _)| words.contains(name))
                .filter_map(|(_, line)| Some(shell_words(line.as_str()?)))
                .collect();
            let hash = TrustRequest::new(&file, IS_RUN, &Value::Object(scripts)).hash;
            self.found.insert(file, hash);
            for line in lines.iter().filter(|_| depth > 0) {
                self.line(line, depth - 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn programs_and_scripts_are_executed_and_what_they_look_at_is_not() {
        let root = tempfile::tempdir().unwrap();
        let project = root.path().canonicalize().unwrap();
        for file in [
            "hooks/guard.sh",
            "hooks/guard.py",
            "start",
            "src/a.ts",
            "main.py",
            "node_modules/.bin/lint",
            "Makefile",
            "notes.md",
        ] {
            let path = project.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, file).unwrap();
            if matches!(file, "start" | "node_modules/.bin/lint") {
                let mode = std::fs::Permissions::from_mode(0o755);
                std::fs::set_permissions(&path, mode).unwrap();
            }
        }
        let scripts = json!({"scripts": {"check": "sh hooks/guard.sh", "other": "node x"}});
        std::fs::write(project.join("package.json"), scripts.to_string()).unwrap();
        let options = LoadOptions {
            directory: project.clone(),
            worktree: project.clone(),
            home: "/home/x".into(),
            ..LoadOptions::default()
        };
        for (line, want) in [
            (
                "bash \"$CLAUDE_PROJECT_DIR\"/hooks/guard.sh",
                "hooks/guard.sh",
            ),
            ("sh -c 'cd hooks && python3 guard.py'", "hooks/guard.py"),
            ("cat hooks/guard.sh | bash", "hooks/guard.sh"),
            ("./start --quiet src/a.ts notes.md", "start"),
            ("X=1 $CLAUDE_PROJECT_DIR/start", "start"),
            ("npm run check", "hooks/guard.sh package.json"),
            ("npx eslint src/*.ts src/a.ts", ""),
            ("prettier --check . main.py", ""),
            ("echo main", ""),
            ("sh -c 'hooks/*.sh'", "hooks/guard.sh"),
            ("ENV=hooks/guard.sh bash -i", "hooks/guard.sh"),
            ("node_modules/.bin/lint src/a.ts", "node_modules/.bin/lint"),
        ] {
            let value = json!({"type": "command", "command": line});
            let found: Vec<String> = executed_by(&value, &project.join(".claude"), &options)
                .keys()
                .map(|it| it.strip_prefix(&project).unwrap())
                .map(|it| it.display().to_string())
                .collect();
            assert_eq!(found.join(" "), want, "{line}");
            let asks = [TrustRequest::new(
                &project.join(".claude/settings.json"),
                "/hooks/Stop",
                &value,
            )];
            let kept = kept(&asks, &options);
            let stays = |it: &&str| !it.starts_with("node_modules") && *it != "package.json";
            let want = want.split_whitespace().filter(stays);
            assert!(
                kept.into_iter().eq(want.map(|it| project.join(it))),
                "{line}"
            );
        }
        let value = json!({"command": "./start", "args": ["hooks/guard.sh"]});
        assert_eq!(executed_by(&value, &project, &options).len(), 1);
    }
}

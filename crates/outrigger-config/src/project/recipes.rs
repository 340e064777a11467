//! Files in which build tools, task runners and runtimes find what they run without being given its name: `make guard` names no
//! file, and runs the `Makefile`.
//!
//! The user's trust, the check before each run and the protection of files use the same tables.

use std::collections::BTreeSet;
use std::path::Path;

use crate::paths;
use crate::project::command_words::{is_one_of, shell_words};

/// Programs whose recipes are written in such a file, with all its names. A file that is preferred over another may be added, so
/// all of them count.
const BUILDS: [(&[&str], &[&str]); 21] = [
    (
        &["make", "gmake", "bmake", "remake"],
        &["GNUmakefile", "makefile", "Makefile", "BSDmakefile"],
    ),
    (
        &["just"],
        &["justfile", "Justfile", ".justfile", "JUSTFILE", ".Justfile"],
    ),
    (
        &["task", "go-task"],
        &[
            "Taskfile.yml",
            "taskfile.yml",
            "Taskfile.yaml",
            "taskfile.yaml",
            "Taskfile.dist.yml",
            "taskfile.dist.yml",
            "Taskfile.dist.yaml",
            "taskfile.dist.yaml",
            ".taskrc.yml",
        ],
    ),
    (&["ninja", "samu"], &["build.ninja"]),
    (
        &["cmake", "ctest"],
        &[
            "CMakeLists.txt",
            "CMakePresets.json",
            "CMakeUserPresets.json",
            "CMakeCache.txt",
            "CTestTestfile.cmake",
            "build.ninja",
            "Makefile",
        ],
    ),
    (&["meson"], &["meson.build", "build.ninja"]),
    (
        &["rake"],
        &["rakefile", "Rakefile", "rakefile.rb", "Rakefile.rb"],
    ),
    (
        &["gradle", "gradlew"],
        &[
            "build.gradle",
            "build.gradle.kts",
            "settings.gradle",
            "settings.gradle.kts",
            "gradle.properties",
            "gradle/wrapper/gradle-wrapper.properties",
            "gradle/wrapper/gradle-wrapper.jar",
        ],
    ),
    (
        &["mvn", "mvnw"],
        &[
            "pom.xml",
            ".mvn/extensions.xml",
            ".mvn/jvm.config",
            ".mvn/maven.config",
            ".mvn/wrapper/maven-wrapper.properties",
        ],
    ),
    (&["ant"], &["build.xml"]),
    (&["scons"], &["SConstruct", "Sconstruct", "sconstruct"]),
    (&["pre-commit", "prek"], &[".pre-commit-config.yaml"]),
    (
        &["lefthook"],
        &[
            "lefthook.yml",
            "lefthook.yaml",
            ".lefthook.yml",
            "lefthook-local.yml",
        ],
    ),
    (&["tox"], &["tox.ini", "setup.cfg", "pyproject.toml"]),
    (&["nox"], &["noxfile.py"]),
    (&["invoke", "inv"], &["tasks.py"]),
    (&["doit"], &["dodo.py"]),
    (
        &["poe", "poetry", "pdm", "hatch", "rye"],
        &["pyproject.toml", "poetry.toml"],
    ),
    (&["composer"], &["composer.json"]),
    (
        &["mise", "rtx"],
        &["mise.toml", ".mise.toml", ".tool-versions"],
    ),
    (&["grunt", "gulp"], &["Gruntfile.js", "gulpfile.js"]),
];

/// Runtimes and package runners, and the settings that they read in their folder.
const RUNTIMES: [(&[&str], &[&str]); 11] = [
    (&["deno"], &["deno.json", "deno.jsonc"]),
    (&["bun"], &["bunfig.toml", ".npmrc", "tsconfig.json"]),
    (&["bunx"], &["bunfig.toml", ".npmrc"]),
    (&["npm"], &[".npmrc"]),
    (&["npx"], &[".npmrc"]),
    (&["pnpm"], &[".npmrc", ".pnpmfile.cjs", ".pnpmfile.mjs"]),
    (&["yarn"], &[".yarnrc", ".yarnrc.yml", ".npmrc"]),
    (&["tsx"], &["tsconfig.json"]),
    (&["ts-node"], &["tsconfig.json"]),
    (&["uv"], &["uv.toml", "pyproject.toml"]),
    (&["uvx"], &["uv.toml"]),
];

/// Extensions of recipe files that others include.
const ENDINGS: [&str; 7] = ["cmake", "gradle", "just", "kts", "mk", "ninja", "rake"];
/// Words at the start of a line that includes a file.
const INCLUDES: [&str; 8] = [
    "include", "-include", "sinclude", "import", "import?", "mod", "mod?", "subninja",
];
/// Maximum number of rules of one file.
const MAX_RULES: usize = 2000;

/// Returns the names of files in which one of these programs finds what it runs.
pub(super) fn of_builds<'a>(words: impl Iterator<Item = &'a str>) -> BTreeSet<&'static str> {
    names(&BUILDS, words)
}

/// Returns the names of settings that one of these programs reads in its folder.
pub(super) fn of_runtimes<'a>(words: impl Iterator<Item = &'a str>) -> BTreeSet<&'static str> {
    names(&RUNTIMES, words)
}

fn names<'a>(
    table: &[(&[&str], &[&'static str])],
    words: impl Iterator<Item = &'a str>,
) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    for word in words {
        let of_word = table
            .iter()
            .filter(|(programs, _)| is_one_of(word, programs));
        found.extend(of_word.flat_map(|(_, files)| files.iter().copied()));
    }
    found
}

/// Returns whether a file has the recipes of a build: it is written during work.
pub(super) fn is_build_file(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default();
    let mut names = BUILDS.iter().flat_map(|(_, files)| files.iter());
    names.any(|it| name == *it) || paths::has_extension(file, &ENDINGS)
}

/// Returns whether a file is written in the form of a makefile or of a justfile.
pub(super) fn has_rules(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_ascii_lowercase();
    name.ends_with("makefile") || name.ends_with("justfile") || paths::has_extension(file, &ENDINGS)
}

/// What a file of recipes takes from other files.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Included {
    /// Paths and patterns.
    pub(super) files: BTreeSet<String>,
    /// A line that names a file by a variable or a command.
    pub(super) unknown: Option<String>,
}

/// Returns what a file of recipes includes.
pub(super) fn included(file: &Path, text: &str) -> Included {
    let mut found = Included::default();
    let is_yaml = paths::has_extension(file, &["yml", "yaml"]);
    for line in text.replace("\\\n", " ").lines() {
        let words = shell_words(line.trim());
        let is_include = words.first().is_some_and(|it| INCLUDES.contains(&&**it));
        if is_include && line.replace("$(wildcard", "").contains('$') {
            found.unknown.get_or_insert_with(|| line.trim().to_owned());
        }
        for word in &words {
            let word = word.trim_matches(['"', '\'', ',', ':']);
            let path = Path::new(word);
            let is_recipe = paths::has_extension(path, &ENDINGS)
                || is_yaml && paths::has_extension(path, &["yml", "yaml"]);
            if (is_include || is_recipe) && !word.contains('$') && !word.is_empty() {
                found.files.insert(word.to_owned());
            }
        }
    }
    found
}

/// A rule of a makefile, or a recipe of a justfile.
struct Rule {
    targets: Vec<String>,
    needs: Vec<String>,
    lines: Vec<String>,
}

/// Returns the command lines that a makefile or justfile runs for the targets among these words, and those that it runs when it
/// is read.
pub(super) fn lines_of(text: &str, words: &[String]) -> Vec<String> {
    let (rules, mut lines) = rules_of(text);
    let is_named = |rule: &&Rule| rule.targets.iter().any(|it| words.contains(it));
    let is_open = |it: &String| it.contains(['$', '%']) || it.starts_with('.');
    let mut wanted: BTreeSet<&String> = rules
        .iter()
        .filter(is_named)
        .flat_map(|it| &it.targets)
        .collect();
    if wanted.is_empty() {
        let first = rules.iter().find(|it| !it.targets.iter().any(is_open));
        wanted.extend(first.into_iter().flat_map(|it| &it.targets));
    }
    loop {
        let before = wanted.len();
        for rule in &rules {
            if rule.targets.iter().any(|it| wanted.contains(it)) {
                wanted.extend(&rule.needs);
            }
        }
        if wanted.len() == before {
            break;
        }
    }
    let is_run = |rule: &&Rule| {
        let mut targets = rule.targets.iter();
        targets.any(|it| wanted.contains(it) || is_open(it))
    };
    lines.extend(rules.iter().filter(is_run).flat_map(|it| it.lines.clone()));
    lines
}

fn rules_of(text: &str) -> (Vec<Rule>, Vec<String>) {
    let (mut rules, mut at_once): (Vec<Rule>, _) = (Vec::new(), Vec::new());
    for line in text.replace("\\\n", " ").lines() {
        if line.starts_with([' ', '\t']) {
            let line = line.trim_start().trim_start_matches(['@', '-', '+']);
            if let Some(rule) = rules.last_mut() {
                rule.lines.push(line.to_owned());
            }
            continue;
        }
        let is_value = |at: usize| {
            let rest = line.get(at..).unwrap_or_default();
            line.get(..at).is_some_and(|it| it.contains('='))
                || rest.trim_start_matches(':').starts_with('=')
        };
        match line.find(':').filter(|at| !is_value(*at)) {
            Some(at) if !line.starts_with('#') && rules.len() < MAX_RULES => {
                let (targets, rest) = line.split_at(at);
                let (needs, recipe) = rest.split_once(';').unwrap_or((rest, ""));
                let words = |text: &str| {
                    let words = text.split(|c: char| c.is_whitespace() || ":|&".contains(c));
                    let words = words.filter(|it| !it.is_empty());
                    words.map(str::to_owned).collect()
                };
                rules.push(Rule {
                    targets: words(targets),
                    needs: words(needs),
                    lines: vec![recipe.to_owned()],
                });
            }
            // `SHELL = ./x`, `A := $(shell ./x)`
            _ => at_once.extend(line.split_once('=').map(|(_, value)| value.to_owned())),
        }
    }
    (rules, at_once)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_makefile_runs_the_named_targets_and_what_they_need() {
        let text = "SHELL := ./sh\nall: other\nguard: lib \\\n  x; ./first\n\t@./guard --x\nlib:\n\t-./lib\nother:\n\t./other\n";
        let words = ["make".to_owned(), "guard".to_owned()];
        let lines = lines_of(text, &words).join("|");
        for run in ["./sh", "./first", "./guard", "./lib"] {
            assert!(lines.contains(run), "{lines}");
        }
        assert!(!lines.contains("./other"), "{lines}");
        assert!(lines_of(text, &words[..1]).concat().contains("./other"));
    }

    #[test]
    fn what_is_included_is_found_and_what_a_variable_names_is_not() {
        let text = "-include a.mk mk/*.inc\ninclude \\\n  b\nx: c.mk\ny: $(D)/z.mk\n";
        let found = included(Path::new("Makefile"), text);
        let files: Vec<&str> = found.files.iter().map(String::as_str).collect();
        assert!(
            ["a.mk", "b", "c.mk", "mk/*.inc"]
                .iter()
                .all(|it| files.contains(it)),
            "{files:?}"
        );
        assert_eq!(found.unknown, None);
        let found = included(Path::new("Makefile"), "include $(D)/a.mk\n");
        assert_eq!(found.unknown.as_deref(), Some("include $(D)/a.mk"));
        let task = included(Path::new("Taskfile.yml"), "includes:\n  x: ./tools/x.yml\n");
        assert!(task.files.contains("./tools/x.yml"));
    }
}

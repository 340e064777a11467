//! Programs and code of a project that a command of the user's own settings would run: in a folder that nobody trusts, it is not started.
//!
//! `npx prettier` takes what `node_modules` has before it asks the registry, `make` and `npm run` what the project says. Files that a
//! command only looks at do not count, nor do settings of the project that its program reads.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::command_words::Texts;
use super::executed;
use super::hook_programs::HookPrograms;
use super::named_files::{CODE, of_entry, scripts_of};
use crate::{Loaded, paths};

/// Files of a project without an ending of code that say what is run.
const RECIPES: [&str; 9] = [
    "GNUmakefile",
    "Makefile",
    "makefile",
    "Justfile",
    "justfile",
    ".justfile",
    "Rakefile",
    "Taskfile.yml",
    "Taskfile.yaml",
];

impl Loaded {
    /// What of the project an entry of the user's settings would run. Reads the disk.
    #[must_use]
    pub fn project_program(&self, entry: &Value) -> Option<PathBuf> {
        self.program_below(entry, &self.options.directory)
    }

    /// The same of a command hook.
    #[must_use]
    pub fn project_program_of_hook(&self, hook: &HookPrograms) -> Option<PathBuf> {
        self.program_below(hook.entry(), hook.folder())
    }

    fn program_below(&self, entry: &Value, folder: &Path) -> Option<PathBuf> {
        let executed = executed::executed_by(entry, folder, &self.options);
        let named = of_entry(entry, &self.options).into_iter();
        let named = named.filter_map(|it| Some(PathBuf::from(it.rsplit_once(' ')?.0)));
        let lines = Texts::of(entry).lines;
        // Of a `package.json` the scripts that are named.
        let is_named = |file: &PathBuf| {
            let scripts = scripts_of(file).filter(|_| file.ends_with("package.json"));
            scripts.is_none_or(|all| lines.iter().flatten().any(|it| all.contains_key(it)))
        };
        let executed = executed.into_keys().filter(is_named);
        let mut all = executed.chain(named.filter(|it| is_run(it)));
        all.next()
    }
}

fn is_run(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default();
    let is_installed = file.iter().any(|part| part == "node_modules");
    is_installed || RECIPES.iter().any(|it| name == *it) || paths::has_extension(file, &CODE)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{LoadOptions, load};

    #[test]
    fn what_a_command_of_the_users_runs_of_the_project() {
        let root = tempfile::tempdir().unwrap();
        let project = root.path().canonicalize().unwrap();
        for (file, text) in [
            ("node_modules/.bin/foo", "x"),
            ("scripts/x.sh", "x"),
            ("Makefile", "x"),
            ("lintmod.py", "x"),
            (
                "package.json",
                r#"{"scripts": {"lint": "true"}, "type": "module"}"#,
            ),
            ("tsconfig.json", "{}"),
            ("README.md", "x"),
        ] {
            let path = project.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let options = LoadOptions {
            policy: project.join("none"),
            ..LoadOptions::new(
                project.clone(),
                project.clone(),
                "/home/x".into(),
                [].into(),
            )
        };
        let config = load(&options).unwrap();
        for (command, want) in [
            (
                json!(["npx", "foo", "--write", "$FILE"]),
                "node_modules/.bin/foo",
            ),
            (json!(["npm", "run", "lint"]), "package.json"),
            (json!(["make", "lint"]), "Makefile"),
            (json!(["python3", "-m", "lintmod"]), "lintmod.py"),
            (
                json!(["env", "PATH=node_modules/.bin:/bin", "foo"]),
                "node_modules/.bin/foo",
            ),
            (json!(["sh", "-c", "./scripts/x.sh"]), "scripts/x.sh"),
            (json!(["npx", "prettier", "--write", "$FILE"]), ""),
            (json!(["bun", "/home/x/.claude/hook.ts"]), ""),
            (json!(["prettier", "--check", "README.md"]), ""),
        ] {
            let found = config.project_program(&json!({ "command": command }));
            let found = found.map(|it| it.strip_prefix(&project).unwrap().display().to_string());
            assert_eq!(found.unwrap_or_default(), want, "{command}");
        }
    }
}

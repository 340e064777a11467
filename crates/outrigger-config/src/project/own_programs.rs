//! Project programs and code that a command of the user's own settings would run: in an untrusted folder it is not started.
//!
//! `npx prettier` prefers `node_modules` to the registry, `make` and `npm run` follow the project's files. Files that a command
//! only reads are ignored, as are project settings that its program reads.
//!
//! The same rules determine whether a user server runs files that commands may change. There a named file is included whether it
//! exists or not: a process that may write it could create it between the check and the start.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::command_words::{Texts, is_one_of};
use super::executed;
use super::hook_programs::HookPrograms;
use super::named_files::{CODE, DATA, INTERPRETERS, of_entry, scripts_of};
use super::recipes;
use crate::{Loaded, paths};

impl Loaded {
    /// Returns what an entry of the user's settings would run of the project. Reads the disk.
    #[must_use]
    pub fn project_program(&self, entry: &Value) -> Option<PathBuf> {
        self.program_below(entry, &self.options.directory)
    }

    /// Returns what an entry of the user's settings names as a program below one of these folders, existing or not. `program`:
    /// path of the first word of its command. Reads the disk.
    #[must_use]
    pub fn program_in(
        &self,
        entry: &Value,
        program: Option<&Path>,
        folders: &[PathBuf],
    ) -> Option<PathBuf> {
        let (directory, project) = (&self.options.directory, self.options.project_folder());
        let cwd = entry
            .get("cwd")
            .and_then(Value::as_str)
            .map(|it| paths::expand(it, directory, &self.options.home));
        let bases = [cwd.as_deref(), Some(directory), Some(project)];
        let names = Names {
            bases: bases.into_iter().flatten().collect(),
            home: &self.options.home,
            folders,
        };
        let texts = Texts::of(entry);
        // An argument is also a line of one word, but not a program.
        let only = match entry.get("command") {
            Some(Value::Array(words)) if words.len() == 1 => words.first(),
            command => command,
        };
        let only = only.and_then(Value::as_str);
        let is_line = |line: &&Vec<String>| {
            let mut words = line.iter().filter(|it| !it.is_empty());
            let first = words.next();
            words.next().is_some() || first.map(String::as_str) == only
        };
        let mut lines = texts.lines.iter().filter(is_line);
        let named = lines.find_map(|line| names.in_line(line));
        let loaded = || texts.loads.iter().find_map(|text| names.in_variable(text));
        let found = || program.and_then(|it| names.held(it));
        named.or_else(loaded).or_else(found)
    }

    /// Returns whether a project file is one that is run, by its name.
    #[must_use]
    pub fn is_program(file: &Path) -> bool {
        is_run(file)
    }

    /// Like [`Self::project_program`], for a command hook.
    #[must_use]
    pub fn project_program_of_hook(&self, hook: &HookPrograms) -> Option<PathBuf> {
        self.program_below(hook.entry(), hook.folder())
    }

    fn program_below(&self, entry: &Value, folder: &Path) -> Option<PathBuf> {
        let executed = executed::executed_by(entry, folder, &self.options);
        let named = of_entry(entry, &self.options)
            .into_iter()
            .filter_map(|it| Some(PathBuf::from(it.rsplit_once(' ')?.0)));
        let lines = Texts::of(entry).lines;
        // For a `package.json`, the named scripts.
        let is_named = |file: &PathBuf| {
            scripts_of(file)
                .filter(|_| file.ends_with("package.json"))
                .is_none_or(|all| lines.iter().flatten().any(|it| all.contains_key(it)))
        };
        let executed = executed.into_keys().filter(is_named);
        let mut all = executed.chain(named.filter(|it| is_run(it)));
        all.next()
    }
}

/// Programs that the words of a command name, by name alone.
struct Names<'a> {
    /// Possible base folders of a relative path.
    bases: Vec<&'a Path>,
    home: &'a Path,
    folders: &'a [PathBuf],
}

impl Names<'_> {
    fn in_line(&self, line: &[String]) -> Option<PathBuf> {
        let words = line.iter().filter(|it| !it.is_empty());
        let mut before: Option<&str> = None;
        for word in words {
            let is_program = before.is_none_or(|it| is_one_of(it, &INTERPRETERS));
            if let Some(found) = parts(word).find_map(|part| self.word(part, is_program)) {
                return Some(found);
            }
            if !word.starts_with('-') {
                before = Some(word);
            }
        }
        None
    }

    /// Checks a word; `is_program`: it is the first one, or follows an interpreter.
    fn word(&self, word: &str, is_program: bool) -> Option<PathBuf> {
        // `npx @scope/name` names a package.
        let is_path = !word.contains("://") && !word.starts_with(['@', '-']);
        let is_placed = ["/", "./", "../", "~/"]
            .iter()
            .any(|it| word.starts_with(it));
        // A line for a shell is split separately.
        let is_path = is_path && (is_placed || !word.contains(char::is_whitespace));
        let path = Path::new(word);
        let is_code = paths::has_extension(path, &CODE);
        let counts = match path.extension() {
            Some(_) if is_code => is_placed || word.contains('/') || is_program,
            Some(_) => is_program && word.contains('/') && !paths::has_extension(path, &DATA),
            None => {
                let is_hidden = path
                    .file_name()
                    .is_some_and(|it| it.to_string_lossy().starts_with('.'));
                (is_placed || is_program && word.contains('/')) && !is_hidden
            }
        };
        let expand = |base: &&Path| paths::expand(word, base, self.home);
        let mut all = self.bases.iter().map(expand).filter(|_| is_path && counts);
        all.find_map(|path| self.held(&path).filter(|_| !path.is_dir()))
    }

    /// Checks a variable: `PATH=./bin`, `NODE_OPTIONS=--require ./x.js`, including folders.
    fn in_variable(&self, text: &str) -> Option<PathBuf> {
        let words = text.split(char::is_whitespace).flat_map(parts);
        let mut placed = words.filter(|it| {
            ["/", "./", "../", "~/"]
                .iter()
                .any(|start| it.starts_with(start))
        });
        placed.find_map(|word| {
            let expand = |base: &&Path| paths::expand(word, base, self.home);
            let mut all = self.bases.iter().map(expand);
            all.find_map(|path| self.held(&path))
        })
    }

    /// Returns the path of a file in one of the folders, by its name or its target.
    fn held(&self, path: &Path) -> Option<PathBuf> {
        let real = path.canonicalize().ok().or_else(|| {
            let above = path.parent()?.canonicalize().ok()?;
            Some(above.join(path.file_name()?))
        });
        let mut all = [Some(path.to_path_buf()), real].into_iter().flatten();
        all.find(|it| self.folders.iter().any(|folder| it.starts_with(folder)))
    }
}

/// Returns a word, and the parts after `=`, `:` and similar characters (`--require=./x.js`, `-v /a:/b`).
fn parts(word: &str) -> impl Iterator<Item = &str> {
    word.split(['=', ',', ':', ';', '!', '"', '\''])
        .filter(|it| !it.is_empty())
}

fn is_run(file: &Path) -> bool {
    let is_installed = file.iter().any(|part| part == "node_modules");
    is_installed || recipes::is_build_file(file) || paths::has_extension(file, &CODE)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

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
            let found = config
                .project_program(&json!({ "command": command }))
                .map(|it| it.strip_prefix(&project).unwrap().display().to_string());
            assert_eq!(found.unwrap_or_default(), want, "{command}");
        }
    }

    #[test]
    fn what_a_command_names_in_a_folder_counts_before_it_is_there() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (project, home) = (root.join("project"), root.join("home"));
        for folder in ["project/docs", "project/real", "home/bin"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::fs::write(project.join("real/tool"), "x").unwrap();
        std::os::unix::fs::symlink(project.join("real/tool"), home.join("bin/tool")).unwrap();
        std::os::unix::fs::symlink(project.join("real"), home.join("linked")).unwrap();
        let options = LoadOptions {
            policy: project.join("none"),
            ..LoadOptions::new(project.clone(), project.clone(), home.clone(), [].into())
        };
        let config = load(&options).unwrap();
        let at = |path: &str| project.join(path).display().to_string();
        for (entry, want) in [
            (
                json!({"command": ["node", "dist/server.js"]}),
                "dist/server.js",
            ),
            (json!({"command": ["node", "dist/server"]}), "dist/server"),
            (
                json!({"command": ["node", at("x.mjs"), "--stdio"]}),
                "x.mjs",
            ),
            (json!({"command": ["./run"]}), "run"),
            (
                json!({"command": ["bun", "--require=./pre.ts", "/opt/x.ts"]}),
                "pre.ts",
            ),
            (
                json!({"command": ["sh", "-c", "cd sub; ./go && true"]}),
                "go",
            ),
            (json!({"command": ["python3", "tool.py"]}), "tool.py"),
            (
                json!({"command": ["node", "~/linked/new.js"]}),
                "real/new.js",
            ),
            (
                json!({"command": ["x"], "environment": {"PATH": "./bin:/bin"}}),
                "bin",
            ),
            (
                json!({"command": ["x"], "environment": {"NODE_OPTIONS": "--import ./a.mjs"}}),
                "a.mjs",
            ),
            (
                json!({"command": ["node", "server.js"], "cwd": at("sub")}),
                "sub/server.js",
            ),
            (
                json!({"command": ["npx", "-y", "@scope/server", ".", "./docs", at("docs")]}),
                "",
            ),
            (json!({"command": ["npm", "exec", "@scope/server"]}), ""),
            (
                json!({"command": ["node", "/opt/x.js", "--config", at("a.json")]}),
                "",
            ),
            (
                json!({"command": ["docker", "run", "-v", format!("{}:/w", at("docs")), "mcp/fs"]}),
                "",
            ),
            (
                json!({"command": ["uvx", "server", "--db", at("a.sqlite")]}),
                "",
            ),
            (
                json!({"command": ["x", "--env-file", "./.env", "https://a.test/x.js"]}),
                "",
            ),
        ] {
            let found = config
                .program_in(&entry, None, std::slice::from_ref(&project))
                .map(|it| it.strip_prefix(&project).unwrap().display().to_string());
            assert_eq!(found.unwrap_or_default(), want, "{entry}");
        }
        // A program found in `PATH` may be a link into it.
        let found = |program: &Path| {
            config.program_in(
                &json!({"command": ["tool"]}),
                Some(program),
                std::slice::from_ref(&project),
            )
        };
        assert_eq!(
            found(&home.join("bin/tool")),
            Some(project.join("real/tool"))
        );
        assert_eq!(found(Path::new("/bin/sh")), None);
    }
}

//! Files that direnv runs or loads because an `.envrc` names them (`dotenv`, `source_env`, `use flake`). A shell that is open in
//! the folder loads their new content at its next prompt, without asking.

use std::path::{Path, PathBuf};

/// The file that direnv runs in a folder and below.
pub(crate) const ENVRC: &str = ".envrc";
/// Commands of direnv and of shells that load the files they name, and whether these are scripts.
const LOADERS: [(&str, bool); 6] = [
    ("dotenv", false),
    ("dotenv_if_exists", false),
    ("source_env", true),
    ("source_env_if_exists", true),
    ("source", true),
    (".", true),
];
/// File that `dotenv` and `source_env` load if they name nothing or a folder.
const DOTENV: &str = ".env";
/// Commands that make direnv watch a file without running it.
const WATCHES: [&str; 2] = ["watch_file", "watch_dir"];
/// Files that `use flake` and `use nix` evaluate: their hooks run in the shell.
const OF_NIX: [&str; 4] = ["flake.nix", "flake.lock", "shell.nix", "default.nix"];
/// Extensions of files that a script reads and does not run.
const DATA: [&str; 7] = ["json", "lock", "md", "toml", "txt", "yaml", "yml"];
/// Suffixes of example `.env` files, which are copied and not loaded.
const EXAMPLES: [&str; 4] = ["example", "sample", "template", "dist"];
/// Maximum number of scripts that are read, one loading the next.
const MAX_SCRIPTS: usize = 32;

/// Returns the files that the `.envrc` of a folder loads, existing or not. Names that only a shell can compute stand for every
/// existing `.env.*`. Reads the disk.
#[must_use]
pub fn loaded(folder: &Path) -> Vec<PathBuf> {
    let mut scripts = vec![folder.join(ENVRC)];
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(script) = scripts.get(at).filter(|_| at < MAX_SCRIPTS).cloned() {
        at += 1;
        let Ok(text) = outrigger_files::read_to_string(&script, outrigger_files::SETTINGS) else {
            continue;
        };
        let base = script.parent().unwrap_or(folder);
        for line in text.lines() {
            for (path, is_script) in of_line(base, line) {
                if is_script && !scripts.contains(&path) {
                    scripts.push(path.clone());
                }
                if !found.contains(&path) {
                    found.push(path);
                }
            }
        }
    }
    found
}

/// Returns the files that one line of a script loads, and whether each is a script itself.
fn of_line(base: &Path, line: &str) -> Vec<(PathBuf, bool)> {
    let line = line.replace("${PWD}", ".").replace("$PWD", ".");
    let separators = |it: char| it.is_whitespace() || ";|&()<>`\"'={}".contains(it);
    let words: Vec<&str> = line
        .split(separators)
        .filter(|it| !it.is_empty())
        .take_while(|it| !it.starts_with('#'))
        .collect();
    if words.first().is_some_and(|it| WATCHES.contains(it)) {
        return Vec::new();
    }
    if let ["use", "flake" | "nix", ..] = words.as_slice() {
        return OF_NIX.iter().map(|it| (base.join(it), false)).collect();
    }
    let mut found = Vec::new();
    let mut loader = None;
    let mut names = false;
    for word in &words {
        if let Some((name, is_script)) = LOADERS.iter().find(|(name, _)| name == word) {
            loader = Some((*name, *is_script));
            continue;
        }
        let path = base.join(word.strip_prefix("./").unwrap_or(word));
        let is_there = path.is_file();
        match loader {
            Some(_) if word.contains('$') => {
                found.extend(all_of_name(base).map(|it| (it, false)));
                names = true;
            }
            Some((_, is_script)) if path.is_dir() => {
                let name = if is_script { ENVRC } else { DOTENV };
                found.push((path.join(name), is_script));
                names = true;
            }
            Some((_, is_script)) if is_there || word.contains(['.', '/']) => {
                found.push((path, is_script));
                names = true;
            }
            None if is_there && !is_data(&path) => found.push((path, false)),
            _ => {}
        }
    }
    if loader.is_some_and(|(_, is_script)| !is_script) && !names {
        found.push((base.join(DOTENV), false));
    }
    found
}

/// Returns every `.env` and `.env.*` of a folder.
fn all_of_name(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|it| {
            let name = it.file_name();
            let name = name.to_string_lossy();
            let rest = name.strip_prefix(DOTENV);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.') && !is_example(rest))
        })
        .map(|it| it.path())
        .chain(std::iter::once(folder.join(DOTENV)))
}

fn is_example(rest: &str) -> bool {
    EXAMPLES.iter().any(|it| rest.ends_with(it))
}

fn is_data(path: &Path) -> bool {
    path.extension()
        .and_then(|it| it.to_str())
        .is_some_and(|it| DATA.iter().any(|data| data.eq_ignore_ascii_case(it)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_envrc_loads() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        std::fs::create_dir_all(root.join("sub")).unwrap();
        for (name, text) in [
            (".env.prod", ""),
            (".env.example", ""),
            ("tools.sh", "source more.sh"),
            ("setup.py", ""),
            ("package.json", ""),
            ("sub/x.sh", ". ./y.sh"),
        ] {
            std::fs::write(root.join(name), text).unwrap();
        }
        for (text, want) in [
            ("PATH_add bin\nexport A=b\n", &[][..]),
            ("dotenv", &[".env"][..]),
            ("# dotenv\n  dotenv_if_exists # always", &[".env"]),
            ("dotenv .env.local", &[".env.local"]),
            ("dotenv_if_exists \"$PWD/.env.local\"", &[".env.local"]),
            ("[ -f .env ] && dotenv .env; echo hi", &[".env"]),
            ("set -a; source .env; set +a", &[".env"]),
            ("dotenv_if_exists .env.$USER", &[".env.prod", ".env"]),
            ("dotenv sub", &["sub/.env"]),
            ("source_env sub", &["sub/.envrc"]),
            ("source_env_if_exists sub/x.sh", &["sub/x.sh", "sub/y.sh"]),
            (". ./tools.sh", &["tools.sh", "more.sh"]),
            ("export T=$(python setup.py package.json)", &["setup.py"]),
            ("watch_file setup.py tools.sh", &[]),
            ("use flake", &OF_NIX),
        ] {
            std::fs::write(root.join(ENVRC), text).unwrap();
            let names: Vec<String> = loaded(root)
                .iter()
                .map(|it| it.strip_prefix(root).unwrap().display().to_string())
                .collect();
            assert_eq!(names, want, "{text}");
        }
        std::fs::remove_file(root.join(ENVRC)).unwrap();
        assert!(loaded(root).is_empty());
    }
}

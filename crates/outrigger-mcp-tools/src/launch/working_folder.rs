//! Detects user's servers that load code or settings by name from their working directory (`python -m x`, `npx x`,
//! `bun x.js`). A sandboxed process can create a file of that name in the project at any time, so no check before the start
//! shows what will be loaded: such servers are not started there with the user's rights.

use std::ffi::OsString;
use std::path::Path;

/// Programs that look for code or settings where they are started, whatever they are given.
const RUNNERS: [&str; 50] = [
    "ant",
    "asdf",
    "bun",
    "bunx",
    "bundle",
    "cargo",
    "compose",
    "corepack",
    "deno",
    "devbox",
    "direnv",
    "docker-compose",
    "dotnet",
    "go",
    "gradle",
    "gradlew",
    "hatch",
    "java",
    "jbang",
    "just",
    "make",
    "mise",
    "mvn",
    "mvnw",
    "nix",
    "nix-shell",
    "npm",
    "npx",
    "pdm",
    "pip",
    "pipenv",
    "pipx",
    "pixi",
    "pnpm",
    "pnpx",
    "podman-compose",
    "poetry",
    "rake",
    "rtx",
    "rye",
    "sbt",
    "swift",
    "task",
    "ts-node",
    "tsx",
    "uv",
    "uvx",
    "vite-node",
    "yarn",
    "zx",
];
/// Interpreters that look there unless they are given a script by its whole path.
const INTERPRETERS: [&str; 9] = [
    "lua", "luajit", "node", "nodejs", "perl", "php", "pypy", "python", "ruby",
];
/// Their options that name no code.
const HARMLESS: [&str; 12] = [
    "-B",
    "-E",
    "-I",
    "-O",
    "-OO",
    "-P",
    "-W",
    "-s",
    "-u",
    "--no-warnings",
    "--enable-source-maps",
    "--",
];
/// Variables with folders to load from.
const FOLDERS: [&str; 8] = [
    "CLASSPATH",
    "LD_LIBRARY_PATH",
    "LUA_PATH",
    "NODE_PATH",
    "PERL5LIB",
    "PERLLIB",
    "PYTHONPATH",
    "RUBYLIB",
];
/// Variables with one file to load.
const FILES: [&str; 3] = ["BASH_ENV", "ENV", "LD_PRELOAD"];
/// Variables with options.
const OPTIONS: [&str; 5] = [
    "BUN_OPTIONS",
    "JAVA_TOOL_OPTIONS",
    "NODE_OPTIONS",
    "PERL5OPT",
    "RUBYOPT",
];
/// Options that load code by a name.
const LOADING: [&str; 8] = [
    "-r",
    "-M",
    "-m",
    "--require",
    "--import",
    "--loader",
    "--preload",
    "--experimental-loader",
];
/// Shells, whose scripts are read for what they start.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ksh", "zsh", "fish"];

/// Whether a command with this environment loads code or settings from its working folder by names. `program`: where its first word was
/// found. What a program does that is not a script of a shell is not seen. Reads the disk.
pub(super) fn is_searched(
    command: &[String],
    env: &[(OsString, OsString)],
    program: Option<&Path>,
) -> bool {
    let words: Vec<&str> = command.iter().flat_map(|it| words(it)).collect();
    let named = words.iter().filter(|it| it.starts_with('/')).map(Path::new);
    let mut scripts = program.into_iter().chain(named);
    starts_runner(&words) || env.iter().any(is_loaded_from) || scripts.any(script_starts_runner)
}

/// The words of a text, in which a shell may see a command.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_between = |c: char| c.is_whitespace() || ";|&(){}<>\"'`".contains(c);
    text.split(is_between).filter(|it| !it.is_empty())
}

fn starts_runner(words: &[&str]) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        let name = name_of(word);
        let mut rest = words.iter().skip(at + 1);
        let is_whole = |word: &&str| ["/", "~/", "$"].iter().any(|it| word.starts_with(it));
        RUNNERS.contains(&name.as_str())
            || INTERPRETERS.contains(&name.as_str())
                && !rest
                    .find(|it| !HARMLESS.contains(*it))
                    .is_some_and(is_whole)
    })
}

/// The name of a program without its folder and version: `python` of `/usr/bin/python3.12`.
fn name_of(word: &str) -> String {
    let name = word.rsplit('/').next().unwrap_or(word).to_ascii_lowercase();
    let name = name.strip_suffix(".exe").unwrap_or(&name);
    let name = name.split('@').next().unwrap_or(name);
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
        .to_owned()
}

/// Whether a variable has a relative folder or file in it, or an option that loads by a name.
fn is_loaded_from((name, value): &(OsString, OsString)) -> bool {
    let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
    let name = name.as_ref();
    let is_relative = |it: &str| !it.starts_with('/');
    if value.is_empty() {
        false
    } else if FOLDERS.contains(&name) {
        value.split([':', ';']).any(is_relative)
    } else if FILES.contains(&name) {
        words(&value).any(is_relative)
    } else {
        let is_loading = |word: &str| {
            let option = word.split('=').next().unwrap_or(word);
            LOADING.contains(&option) || ["-r", "-M", "-m"].iter().any(|it| option.starts_with(it))
        };
        OPTIONS.contains(&name) && words(&value).any(is_loading)
    }
}

/// Whether a file is a script whose first line starts a runner, or one of a shell that does so in any line.
fn script_starts_runner(path: &Path) -> bool {
    let text = outrigger_files::read_to_string(path, outrigger_files::SETTINGS);
    let Ok(text) = text else {
        return false;
    };
    let first: Vec<&str> = text
        .lines()
        .next()
        .and_then(|it| it.strip_prefix("#!"))
        .map(|it| words(it).collect())
        .unwrap_or_default();
    let is_shell = |word: &&str| SHELLS.contains(&name_of(word).as_str());
    let of_shell = first.iter().any(is_shell) || path.extension().is_some_and(|it| it == "sh");
    if !of_shell {
        // The script itself is given by its whole path.
        let line: Vec<&str> = first.into_iter().chain(["/"]).collect();
        return starts_runner(&line);
    }
    let lines = text.lines().filter(|it| !it.trim_start().starts_with('#'));
    let all: Vec<&str> = lines.flat_map(words).collect();
    starts_runner(&all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_where_it_is_started_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let script = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let shim = script(
            "shim",
            "#!/bin/sh\n# npx\nexec node \"$basedir/x.js\" \"$@\"\n",
        );
        let starter = script("starter", "#!/usr/bin/env bash\ncd ~\nnpx -y x\n");
        let python = script("python-script", "#!/opt/venv/bin/python3\nimport npx\n");
        let bun = script("bun-script", "#!/usr/bin/env bun\n");
        let run = |command: &[&str], env: &[(&str, &str)]| {
            let command: Vec<String> = command.iter().map(|it| (*it).to_owned()).collect();
            let env: Vec<(OsString, OsString)> = env
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect();
            is_searched(&command, &env, command.first().map(Path::new))
        };
        for command in [
            &["npx", "-y", "x"][..],
            &["/usr/bin/npx", "x"],
            &["python3", "-m", "x"],
            &["python3.12", "-u", "-c", "import x"],
            &["python3", "x.py"],
            &["python3"],
            &["node", "-e", "require('x')"],
            &["node", "dist/server.js"],
            &["node", "--require", "x", "/opt/x.js"],
            &["bun", "/opt/x.js"],
            &["uvx", "x"],
            &["env", "A=b", "npx@10", "x"],
            &["sh", "-c", "sleep 1; exec python3 -m x"],
            &["docker", "compose", "run", "x"],
            &["bash", &starter],
            &[&starter],
            &[&bun],
        ] {
            assert!(run(command, &[]), "{command:?}");
        }
        for command in [
            &["node", "/opt/x.js", "."][..],
            &["python3", "-u", "/opt/x.py"],
            &["mcp-server", "--root", "."],
            &["docker", "run", "-i", "--rm", "x"],
            &["sh", "-c", "exec node $HOME/x.js"],
            &[&shim],
            &[&python],
        ] {
            assert!(!run(command, &[]), "{command:?}");
        }
        for (name, value, want) in [
            ("PYTHONPATH", ":/opt", true),
            ("PYTHONPATH", "/opt:lib", true),
            ("PYTHONPATH", "/opt", false),
            ("LD_LIBRARY_PATH", "/opt:", true),
            ("NODE_OPTIONS", "--require=x", true),
            ("NODE_OPTIONS", "--max-old-space-size=4096", false),
            ("RUBYOPT", "-rx", true),
            ("LD_PRELOAD", "x.so", true),
            ("HOME", "x", false),
        ] {
            assert_eq!(
                run(&["mcp-server"], &[(name, value)]),
                want,
                "{name}={value}"
            );
        }
    }
}

//! The forms of a command that a rule may name it by. They only make an answer stricter, so one too many does no harm.

use crate::Word;

/// Options of git that come before its subcommand and take the next word.
pub(crate) const GIT_VALUES: &[&str] = &[
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--config-env",
    "--attr-source",
];

/// Programs that start what a later word names, in their own environment.
const RUNNERS: &[&str] = &[
    "npx",
    "bunx",
    "pnpx",
    "cross-env",
    "dotenv",
    "ssh",
    "nix-shell",
    "xvfb-run",
];
/// They do so if one of these words follows.
const RUNNERS_BY: &[&str] = &["exec", "run", "x", "dlx", "foreach", "shell", "develop"];
const MAY_RUN: &[&str] = &[
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "uv",
    "poetry",
    "pipenv",
    "hatch",
    "rye",
    "pdm",
    "bundle",
    "mise",
    "asdf",
    "rbenv",
    "pyenv",
    "nvm",
    "conda",
    "mamba",
    "micromamba",
    "direnv",
    "devbox",
    "nix",
    "docker",
    "podman",
    "kubectl",
    "op",
    "doppler",
    "git",
    "just",
];

pub(crate) fn of(words: &[Word]) -> Vec<String> {
    let raws: Vec<&str> = words.iter().map(|word| word.raw.as_str()).collect();
    let values: Vec<&str> = words.iter().map(|word| word.value.as_str()).collect();
    let mut all = vec![raws.join(" ")];
    push(&mut all, values.join(" "));
    let Some((program, arguments)) = values.split_first() else {
        return Vec::new();
    };
    let name = program.rsplit('/').next().unwrap_or(program);
    push(&mut all, [&[name], arguments].concat().join(" "));
    let may_run = MAY_RUN.contains(&name) && arguments.iter().any(|it| RUNNERS_BY.contains(it));
    if RUNNERS.contains(&name) || may_run {
        for at in 0..arguments.len() {
            push(&mut all, arguments.get(at..).unwrap_or_default().join(" "));
        }
    }
    // A program of `git-core`, called directly.
    if let Some(subcommand) = name.strip_prefix("git-") {
        push(
            &mut all,
            [&["git", subcommand], arguments].concat().join(" "),
        );
    }
    if name == "git" {
        push(
            &mut all,
            [&[name], subcommand(arguments)].concat().join(" "),
        );
    }
    all
}

/// Returns what follows the options of git itself.
fn subcommand<'a>(mut arguments: &'a [&'a str]) -> &'a [&'a str] {
    while let Some((first, rest)) = arguments.split_first() {
        arguments = match first {
            option if GIT_VALUES.contains(option) => rest.get(1..).unwrap_or_default(),
            option if option.starts_with('-') => rest,
            _ => break,
        };
    }
    arguments
}

fn push(list: &mut Vec<String>, text: String) {
    if !list.contains(&text) {
        list.push(text);
    }
}

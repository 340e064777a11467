//! Git's own ways to start a program, or to call a subcommand by another name. One list; whatever is on it is a doubt.

use crate::spelling::GIT_VALUES;
use crate::{UNKNOWN, Word};

/// Settings that name programs, aliases of subcommands, or files with more settings; `*` matches one part including its dots.
const PROGRAMS: &[&str] = &[
    "alias.*",
    "core.alternaterefscommand",
    "core.askpass",
    "core.editor",
    "core.fsmonitor",
    "core.gitproxy",
    "core.hookspath",
    "core.pager",
    "core.sshcommand",
    "credential.helper",
    "credential.*.helper",
    "diff.external",
    "diff.*.command",
    "diff.*.textconv",
    "difftool.*.cmd",
    "filter.*.clean",
    "filter.*.process",
    "filter.*.smudge",
    "gpg.program",
    "gpg.*.program",
    "include.path",
    "includeif.*",
    "interactive.difffilter",
    "merge.*.driver",
    "mergetool.*.cmd",
    "pager.*",
    "protocol.ext.allow",
    "remote.*.receivepack",
    "remote.*.uploadpack",
    "remote.*.vcs",
    "sequence.editor",
    "submodule.*.update",
    "trailer.*.cmd",
    "trailer.*.command",
    "uploadpack.packobjectshook",
];
/// Common values that start no interesting program.
const PLAIN: &[&str] = &[
    "",
    "0",
    "1",
    "cat",
    "false",
    "less",
    "no",
    "off",
    "on",
    "true",
    "yes",
    ":",
    "/dev/null",
];

/// Returns whether a command is a call of git that starts a program named by its options, or may be an unknown subcommand.
pub(crate) fn starts_another(name: &str, mut arguments: &[Word]) -> bool {
    let subcommand = match name.strip_prefix("git-") {
        Some(subcommand) => subcommand,
        None if name != "git" => return false,
        None => {
            let Some((first, rest)) = after_options(arguments) else {
                return true;
            };
            arguments = rest;
            first
        }
    };
    let mut values = arguments.iter().map(|word| word.value.as_str());
    match subcommand {
        "filter-branch" => true,
        "rebase" | "difftool" => {
            values.any(|it| it.starts_with("--ex") || letters(it, "sXCS").contains('x'))
        }
        "grep" => values.any(|it| it.starts_with("--op") || letters(it, "efABCm").contains('O')),
        "clone" => {
            let of_program =
                |it: &str| it.starts_with("--upl") || letters(it, "bojc").contains('u');
            let settings = arguments.windows(2).any(|it| match it {
                [option, setting] => {
                    matches!(option.value.as_str(), "-c" | "--config")
                        && names_program(&setting.value)
                }
                _ => false,
            });
            let glued = |it: &str| it.strip_prefix("--config=").is_some_and(names_program);
            settings || values.any(|it| of_program(it) || glued(it))
        }
        "fetch" | "pull" | "push" | "ls-remote" | "archive" | "fetch-pack" | "send-pack" => values
            .any(|it| {
                ["--upl", "--rece", "--exec"]
                    .iter()
                    .any(|option| it.starts_with(option))
            }),
        _ => false,
    }
}

/// Returns the subcommand and what follows it; `None` if an option of git itself starts something, or may.
fn after_options(mut arguments: &[Word]) -> Option<(&str, &[Word])> {
    while let Some((first, rest)) = arguments.split_first() {
        let option = first.value.as_str();
        let next = rest.first().map_or("", |it| it.value.as_str());
        let is_program = match option {
            "-c" => names_program(next),
            // The value comes from a variable.
            "--config-env" => names_program(&unknown_value(next)),
            _ => {
                option
                    .strip_prefix("--config-env=")
                    .is_some_and(|it| names_program(&unknown_value(it)))
                    || option.starts_with("--exec-path=")
            }
        };
        if is_program {
            return None;
        }
        arguments = match option {
            option if GIT_VALUES.contains(&option) => rest.get(1..).unwrap_or_default(),
            option if option.starts_with('-') => rest,
            _ => return Some((option, rest)),
        };
    }
    Some(("", arguments))
}

fn unknown_value(setting: &str) -> String {
    let key = setting.rsplit_once('=').map_or(setting, |(key, _)| key);
    format!("{key}={UNKNOWN}")
}

/// Returns whether `KEY=VALUE` names a program to start.
fn names_program(setting: &str) -> bool {
    let (key, value) = setting.split_once('=').unwrap_or((setting, "true"));
    let key = key.to_ascii_lowercase();
    let is_one = |pattern: &&&str| match pattern.split_once('*') {
        Some((begin, end)) => key.strip_prefix(begin).is_some_and(|it| it.ends_with(end)),
        None => key == **pattern,
    };
    let takes_plain = !key.starts_with("alias.") && !key.starts_with("include");
    let listed = PROGRAMS.iter().find(is_one).is_some();
    key.contains(UNKNOWN) || listed && !(takes_plain && PLAIN.contains(&value))
}

/// Returns the letters of `-abc`, up to one that takes the rest as its value.
fn letters<'a>(option: &'a str, valued: &str) -> &'a str {
    let letters = option
        .strip_prefix('-')
        .filter(|it| !it.starts_with('-'))
        .unwrap_or_default();
    letters
        .split(|it| valued.contains(it))
        .next()
        .unwrap_or_default()
}

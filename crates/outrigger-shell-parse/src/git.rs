//! Git's own ways to start a program, or to call a subcommand by another name. One list; whatever is on it is a doubt.

use crate::spelling::GIT_VALUES;
use crate::{UNKNOWN, Word};

/// Options before the subcommand that take no further word.
const FLAGS: &[&str] = &[
    "-P",
    "-h",
    "-v",
    "-p",
    "--bare",
    "--exec-path",
    "--glob-pathspecs",
    "--help",
    "--html-path",
    "--icase-pathspecs",
    "--info-path",
    "--literal-pathspecs",
    "--man-path",
    "--no-advice",
    "--no-lazy-fetch",
    "--no-optional-locks",
    "--no-pager",
    "--no-replace-objects",
    "--noglob-pathspecs",
    "--paginate",
    "--version",
];

/// Subcommands that start no program which their arguments name, but for the options below. Any other word may be an alias, a program
/// `git-WORD`, or a typing error that git corrects (`help.autocorrect`).
const SUBCOMMANDS: &[&str] = &[
    "",
    "add",
    "am",
    "annotate",
    "apply",
    "archive",
    "bisect",
    "blame",
    "branch",
    "bundle",
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-ref-format",
    "checkout",
    "checkout-index",
    "cherry",
    "cherry-pick",
    "clean",
    "clone",
    "column",
    "commit",
    "commit-graph",
    "commit-tree",
    "config",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "difftool",
    "fetch",
    "fetch-pack",
    "for-each-ref",
    "format-patch",
    "fsck",
    "gc",
    "grep",
    "hash-object",
    "help",
    "init",
    "interpret-trailers",
    "lfs",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "maintenance",
    "merge",
    "merge-base",
    "merge-file",
    "merge-tree",
    "mergetool",
    "mktag",
    "mktree",
    "mv",
    "name-rev",
    "notes",
    "pack-objects",
    "pack-refs",
    "prune",
    "pull",
    "push",
    "range-diff",
    "read-tree",
    "rebase",
    "reflog",
    "remote",
    "repack",
    "replace",
    "rerere",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "send-pack",
    "shortlog",
    "show",
    "show-branch",
    "show-ref",
    "sparse-checkout",
    "stash",
    "status",
    "stripspace",
    "submodule",
    "switch",
    "symbolic-ref",
    "tag",
    "unpack-objects",
    "update-index",
    "update-ref",
    "var",
    "verify-commit",
    "verify-pack",
    "verify-tag",
    "version",
    "whatchanged",
    "worktree",
    "write-tree",
];

/// Settings that name programs, aliases of subcommands, or files with more settings; `*` matches one part including its dots.
const PROGRAMS: &[&str] = &[
    "alias.*",
    "browser.*",
    "core.alternaterefscommand",
    "core.askpass",
    "core.editor",
    "core.fsmonitor",
    "core.gitproxy",
    "core.hookspath",
    "core.pager",
    "core.sshcommand",
    "credential.*.helper",
    "credential.helper",
    "diff.*.command",
    "diff.*.textconv",
    "diff.external",
    "difftool.*.cmd",
    "difftool.*.path",
    "filter.*.clean",
    "filter.*.process",
    "filter.*.smudge",
    "gpg.*.program",
    "gpg.program",
    "gpg.ssh.defaultkeycommand",
    "guitool.*",
    "help.autocorrect",
    "include.path",
    "includeif.*",
    "init.templatedir",
    "interactive.difffilter",
    "man.*",
    "merge.*.driver",
    "mergetool.*.cmd",
    "mergetool.*.path",
    "pager.*",
    "protocol.ext.allow",
    "remote.*.receivepack",
    "remote.*.uploadpack",
    "remote.*.vcs",
    "sendemail.*",
    "sequence.editor",
    "submodule.*.update",
    "tar.*.command",
    "trailer.*.cmd",
    "trailer.*.command",
    "uploadpack.packobjectshook",
    "web.browser",
];
/// Common values that start no interesting program.
pub(crate) const PLAIN: &[&str] = &[
    "",
    "0",
    "1",
    "cat",
    "clang",
    "clang++",
    "false",
    "g++",
    "gcc",
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
        // What may be an option in an unknown word is up to the rules about git.
        name if name.contains(UNKNOWN) => false,
        name if !SUBCOMMANDS.contains(&name) => true,
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
                    || option.starts_with('-') && !is_known(option)
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

/// Returns whether it is an option of git itself that starts nothing.
fn is_known(option: &str) -> bool {
    let with_value = option
        .split_once('=')
        .is_some_and(|(name, _)| GIT_VALUES.contains(&name) || name == "--list-cmds");
    with_value || GIT_VALUES.contains(&option) || FLAGS.contains(&option)
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
    // The value of these is no program, but a folder or a file.
    let takes_plain = !["alias.", "include", "core.hookspath", "init.templatedir"]
        .iter()
        .any(|begin| key.starts_with(begin))
        || value == "/dev/null" && key == "core.hookspath";
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

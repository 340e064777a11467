//! Git commands that can show files which rules keep from reading: git reads its own objects, of which no sandbox can hide single
//! files. A command that names a denied file is denied; one that shows everything committed needs approval if there was such a
//! file.
//!
//! This covers named commands; a program that runs git itself, or reads `.git/objects`, is not covered (docs/bypass.md).

use std::path::Path;

use outrigger_kernel::permission::paths::is_everything;
use outrigger_protocol::permission::Action;
use outrigger_sandbox::paths::resolve;

use super::{Operation, PathRules};

/// Subcommands that never show file contents.
const SILENT: [&str; 30] = [
    "add",
    "branch",
    "check-ignore",
    "check-ref-format",
    "config",
    "count-objects",
    "describe",
    "fetch",
    "for-each-ref",
    "fsck",
    "gc",
    "help",
    "init",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge-base",
    "mv",
    "name-rev",
    "prune",
    "push",
    "remote",
    "rev-list",
    "rev-parse",
    "rm",
    "shortlog",
    "show-ref",
    "symbolic-ref",
    "tag",
    "version",
];
/// Subcommands that show none with these options. An option that ends with `=` may have a value; a single letter may be part of a
/// group (`-am`), or be followed by digits.
const WITHOUT_CONTENT: [(&[&str], &[&str]); 4] = [
    (
        &["log", "reflog"],
        &[
            "--",
            "--abbrev-commit",
            "--after=",
            "--all",
            "--author=",
            "--before=",
            "--branches",
            "--color=",
            "--date=",
            "--decorate=",
            "--first-parent",
            "--follow",
            "--format=",
            "--graph",
            "--grep=",
            "--max-count=",
            "--merges",
            "--name-only",
            "--name-status",
            "--no-color",
            "--no-decorate",
            "--no-merges",
            "--no-patch",
            "--numstat",
            "--oneline",
            "--pretty=",
            "--reverse",
            "--shortstat",
            "--since=",
            "--skip=",
            "--stat",
            "--summary",
            "--tags",
            "--until=",
            "-i",
            "-n",
            "-s",
        ],
    ),
    (
        &["status"],
        &[
            "--",
            "--branch",
            "--ignored=",
            "--long",
            "--porcelain=",
            "--short",
            "--show-stash",
            "--untracked-files=",
            "-b",
            "-s",
            "-u",
            "-z",
        ],
    ),
    (
        &["commit"],
        &[
            "--",
            "--all",
            "--allow-empty",
            "--amend",
            "--author=",
            "--date=",
            "--file=",
            "--fixup=",
            "--message=",
            "--no-edit",
            "--no-gpg-sign",
            "--no-verify",
            "--quiet",
            "--signoff",
            "-F",
            "-a",
            "-m",
            "-n",
            "-q",
            "-s",
        ],
    ),
    (
        &[
            "checkout",
            "cherry-pick",
            "merge",
            "pull",
            "rebase",
            "reset",
            "restore",
            "revert",
            "stash",
            "switch",
        ],
        &[
            "--",
            "--abort",
            "--autostash",
            "--continue",
            "--create=",
            "--detach",
            "--ff-only",
            "--hard",
            "--include-untracked",
            "--keep-index",
            "--message=",
            "--mixed",
            "--no-commit",
            "--no-edit",
            "--no-ff",
            "--onto=",
            "--ours",
            "--quiet",
            "--rebase=",
            "--skip",
            "--soft",
            "--source=",
            "--squash",
            "--staged",
            "--theirs",
            "--track=",
            "--worktree",
            "-B",
            "-b",
            "-c",
            "-f",
            "-m",
            "-q",
            "-s",
            "-u",
        ],
    ),
];
/// Options of git itself that change neither what is read nor what is run.
const OF_GIT: [&str; 4] = [
    "--literal-pathspecs",
    "--no-optional-locks",
    "--no-pager",
    "-P",
];
/// Maximum size of an index that is read; with a larger one denied files count as committed.
const MAX_INDEX_BYTES: u64 = 64 * 1024 * 1024;
/// Maximum size of the `.git` file of a linked worktree.
const MAX_LINK_BYTES: u64 = 64 * 1024;

impl PathRules {
    /// Returns the action for a command, or a line with substitutions and several commands, if it runs git.
    pub(super) fn of_command(&self, command: &str) -> Option<Action> {
        if !self.denies() {
            return None;
        }
        let actions = commands(command)
            .into_iter()
            .filter_map(|it| self.of_words(&it));
        actions.max_by_key(|action| *action == Action::Deny)
    }

    fn of_words(&self, words: &[String]) -> Option<Action> {
        let is_git = |word: &String| word.rsplit('/').next() == Some("git");
        let after = words.iter().position(is_git)? + 1;
        let args = words.get(after..).unwrap_or_default();
        if args.iter().any(|arg| self.denies_argument(arg)) {
            return Some(Action::Deny);
        }
        let elsewhere = words.iter().take(after).any(|it| it.starts_with("GIT_"));
        ((elsewhere || !is_silent(args)) && self.has_committed()).then_some(Action::Ask)
    }

    /// Returns whether an argument names a denied file: as a path, after `REVISION:`, or in a path pattern.
    fn denies_argument(&self, arg: &str) -> bool {
        let parts = arg.match_indices([':', '=', ')']).map(|(at, _)| at + 1);
        let mut parts = std::iter::once(0).chain(parts);
        parts.any(|at| {
            let part = arg.get(at..).unwrap_or_default();
            let location = &self.access.location;
            let mut from = [&location.directory, &location.worktree].into_iter();
            !part.is_empty() && from.any(|base| self.denies_some(&resolve(base, Path::new(part))))
        })
    }

    fn denies_some(&self, path: &Path) -> bool {
        let verdict = self.decide(Operation::Read, path);
        let by = verdict.rule.filter(|rule| !is_everything(&rule.pattern));
        verdict.action == Action::Deny && by.is_some()
    }

    /// Returns whether git tracks a denied file, by its index. An unreadable index counts as yes.
    fn has_committed(&self) -> bool {
        let worktree = &self.access.location.worktree;
        let dir = worktree.join(".git");
        let dir = match outrigger_files::read_to_string(&dir, MAX_LINK_BYTES) {
            Ok(text) => {
                let named = text.strip_prefix("gitdir:").unwrap_or_default().trim();
                resolve(worktree, Path::new(named))
            }
            Err(_) => dir,
        };
        let bytes = match outrigger_files::read(&dir.join("index"), MAX_INDEX_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return false,
            Err(_) => return true,
        };
        match names(&bytes) {
            Some(names) => names
                .iter()
                .any(|name| self.denies_some(&worktree.join(name))),
            None => true,
        }
    }
}

/// Returns the words of a text, and of each command in it, without quotes: also of those in substitutions, and behind separators. It
/// only has to find words: what is quoted may be taken for a command, too. The whole text is among them because a quoted separator
/// ends no command (`git log --format=';' -p`).
fn commands(whole: &str) -> Vec<Vec<String>> {
    let text = ["$(", "<(", ">(", "`", ";", "|", "&"]
        .into_iter()
        .fold(whole.to_owned(), |text, mark| text.replace(mark, "\n"));
    let plain = |word: &str| {
        let word = word.replace(['"', '\'', '\\'], "");
        let word = word.trim_start_matches(['(', '{', '!']);
        // A pathspec may have its own (`:(top)`), but none at its end.
        word.trim_end_matches([')', '}']).to_owned()
    };
    let lines = std::iter::once(whole)
        .chain(text.lines())
        .map(|line| line.split_whitespace().map(plain).collect());
    lines.collect()
}

/// Returns whether a git call is known to show no file contents: unknown ones need approval.
fn is_silent(mut args: &[String]) -> bool {
    loop {
        args = match args {
            [option, rest @ ..] if OF_GIT.contains(&option.as_str()) => rest,
            [option, _, rest @ ..] if option == "-C" => rest,
            _ => break,
        };
    }
    let Some((subcommand, rest)) = args.split_first() else {
        return true;
    };
    if SILENT.contains(&subcommand.as_str()) {
        return true;
    }
    let known = WITHOUT_CONTENT
        .iter()
        .find(|(names, _)| names.contains(&subcommand.as_str()));
    let shows_stash = subcommand == "stash" && rest.first().is_some_and(|it| it == "show");
    let mut options = rest.iter().filter(|it| it.starts_with('-') && *it != "-");
    known.is_some_and(|(_, known)| !shows_stash && options.all(|it| is_known(it, known)))
}

/// Returns whether an option is one of these.
fn is_known(option: &str, known: &[&str]) -> bool {
    let is_one = |option: &str| known.contains(&option);
    let long = option.split_once('=').map_or_else(
        || is_one(option) || is_one(&format!("{option}=")),
        |(name, _)| is_one(&format!("{name}=")),
    );
    let short = option.strip_prefix('-').filter(|it| !it.starts_with('-'));
    long || short.is_some_and(|letters| {
        letters
            .chars()
            .all(|it| it.is_ascii_digit() || is_one(&format!("-{it}")))
    })
}

/// Returns the paths of an index, of version 2 or 3.
fn names(index: &[u8]) -> Option<Vec<String>> {
    let word = |at: usize| -> Option<u32> {
        Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?))
    };
    let known = index.get(..4)? == b"DIRC" && (2..=3).contains(&word(4)?);
    let count = known.then(|| word(8))??;
    let mut names = Vec::new();
    let mut at = 12;
    for _ in 0..count {
        let flags = u16::from_be_bytes(index.get(at + 60..at + 62)?.try_into().ok()?);
        // Some entries of version 3 have further flags.
        let head = if flags & 0x4000 == 0 { 62 } else { 64 };
        let rest = index.get(at + head..)?;
        let length = rest.iter().position(|byte| *byte == 0)?;
        names.push(String::from_utf8_lossy(rest.get(..length)?).into_owned());
        at += (head + length + 8) / 8 * 8;
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Access;
    use outrigger_protocol::permission::Rule;
    use outrigger_workspace::ProjectLocation;

    /// Creates an index with these files.
    fn index(files: &[&str]) -> Vec<u8> {
        let mut bytes = b"DIRC\0\0\0\x02".to_vec();
        bytes.extend(u32::try_from(files.len()).unwrap().to_be_bytes());
        for file in files {
            let start = bytes.len();
            bytes.extend([0; 60]);
            bytes.extend(u16::try_from(file.len()).unwrap().to_be_bytes());
            bytes.extend(file.bytes());
            let length = (bytes.len() - start + 8) / 8 * 8;
            bytes.resize(start + length, 0);
        }
        bytes
    }

    #[test]
    fn commands_of_git_that_show_denied_files() {
        use Action::{Allow, Ask, Deny};
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join(".git")).unwrap();
        std::fs::create_dir_all(root.join("sub")).unwrap();
        let location = ProjectLocation {
            directory: root.join("sub"),
            worktree: root.clone(),
            git: true,
        };
        let access = Access::new(&location, &root);
        let rule = |permission: &str, pattern: &str, action| Rule {
            permission: permission.into(),
            pattern: pattern.into(),
            action,
        };
        let denying = [rule("*", "*", Allow), rule("read", "*.env", Deny)];
        let free = [rule("*", "*", Allow)];
        for (files, rules, command, want) in [
            (&["a.txt"][..], &denying[..], "git show HEAD:.env", Deny),
            (&["a.txt"], &denying, "git show 'HEAD~3:sub/x.env'", Deny),
            (&["a.txt"], &denying, "git cat-file -p :0:.env", Deny),
            (&["a.txt"], &denying, "git diff HEAD -- .env", Deny),
            (&["a.txt"], &denying, "git log -p -- ':(glob)**/.env'", Deny),
            (
                &["a.txt"],
                &denying,
                "/usr/bin/git checkout-index --prefix=x/ ../.env",
                Deny,
            ),
            (&["a.txt"], &denying, "git diff", Allow),
            (
                &["a.txt"],
                &denying,
                "x=$(git show HEAD:.env); echo $x",
                Deny,
            ),
            (&["a.txt"], &denying, "echo \"$(git show HEAD:.env)\"", Deny),
            (&["a.txt"], &denying, "echo `git show HEAD:.env`", Deny),
            (&["a.txt"], &denying, "cat <(git show HEAD:.env)", Deny),
            (&["a.txt"], &denying, "(git show HEAD:.env)", Deny),
            (
                &["a.txt"],
                &denying,
                "declare -a 'x=($(git show HEAD:.env))'",
                Deny,
            ),
            (
                &["a.txt"],
                &denying,
                "git tag; x=$(/usr/bin/git show HEAD:.env)",
                Deny,
            ),
            (
                &["a.txt", ".env"],
                &denying,
                "git tag; x=$(git log -p)",
                Ask,
            ),
            (&["a.txt"], &denying, "git tag; x=$(git log -p)", Allow),
            (
                &["a.txt", ".env"],
                &denying,
                "x=$(git rev-parse HEAD) && git tag $x",
                Allow,
            ),
            (&["a.txt"], &denying, "git show HEAD -- ':(top).env'", Deny),
            (&["a.txt", ".env"], &denying, "git log --format=';' -p", Ask),
            (&["a.txt"], &denying, "git log --format=';' -- .env", Deny),
            (&["a.txt"], &denying, "git show HEAD", Allow),
            (&["a.txt", ".env"], &denying, "git diff", Ask),
            (&["a.txt", ".env"], &denying, "git show", Ask),
            (&["a.txt", ".env"], &denying, "git -C . archive HEAD", Ask),
            (&["a.txt", ".env"], &denying, "git log -p", Ask),
            (&["a.txt", ".env"], &denying, "git log", Allow),
            (&["a.txt", ".env"], &denying, "git status", Allow),
            (&["a.txt", ".env"], &denying, "git commit -m x", Allow),
            (
                &["a.txt", ".env"],
                &denying,
                "git commit -am x --no-edit",
                Allow,
            ),
            (
                &["a.txt", ".env"],
                &denying,
                "git commit -v --dry-run --amend",
                Ask,
            ),
            (
                &["a.txt", ".env"],
                &denying,
                "git log -3 --oneline --since=1.day",
                Allow,
            ),
            (&["a.txt", ".env"], &denying, "git log -U1", Ask),
            (&["a.txt", ".env"], &denying, "git log --stat -U1 -- .", Ask),
            (&["a.txt", ".env"], &denying, "git log --remerge-diff", Ask),
            (&["a.txt", ".env"], &denying, "git reflog -U1", Ask),
            (&["a.txt", ".env"], &denying, "git status -v -v", Ask),
            (&["a.txt", ".env"], &denying, "git status -sb", Allow),
            (
                &["a.txt", ".env"],
                &denying,
                "git difftool -y -x cat HEAD",
                Ask,
            ),
            (
                &["a.txt", ".env"],
                &denying,
                "git checkout-index -a --prefix=q/",
                Ask,
            ),
            (
                &["a.txt", ".env"],
                &denying,
                "git --work-tree q checkout -f",
                Ask,
            ),
            (
                &["a.txt", ".env"],
                &denying,
                "git -c core.worktree=q restore .",
                Ask,
            ),
            (
                &["a.txt", ".env"],
                &denying,
                "GIT_DIR=.git GIT_WORK_TREE=q git checkout -f",
                Ask,
            ),
            (
                &["a.txt", ".env"],
                &denying,
                "git read-tree --prefix=x/ HEAD",
                Ask,
            ),
            (
                &["a.txt", ".env"],
                &denying,
                "git --no-pager -C . checkout -q -b side",
                Allow,
            ),
            (&["a.txt", ".env"], &denying, "git checkout -p", Ask),
            (&["a.txt", ".env"], &denying, "git stash show", Ask),
            (&["a.txt", ".env"], &denying, "git stash pop -q", Allow),
            (&["a.txt", ".env"], &denying, "git new-command", Ask),
            (&["a.txt", ".env"], &free, "git show HEAD:.env", Allow),
            (&["a.txt", ".env"], &denying, "cat a.txt", Allow),
        ] {
            std::fs::write(root.join(".git/index"), index(files)).unwrap();
            let got = access.evaluate("bash", command, &[rules]);
            assert_eq!(got, want, "{files:?} {command}");
        }
        std::fs::write(root.join(".git/index"), "DIRC\0\0\0\x04").unwrap();
        assert_eq!(access.evaluate("bash", "git show", &[&denying]), Ask);
    }
}

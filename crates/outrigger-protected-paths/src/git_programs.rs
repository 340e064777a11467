//! Files of a project that git runs although their names say nothing of it: what a hook is a link to, and the programs that its settings name
//! (`core.fsmonitor`, `filter.*.clean`, aliases with `!`). They are files that run later, as hooks are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use outrigger_sandbox::absent::{FolderEntry, SUFFIX};
use outrigger_stdx::path::normalize;

use crate::git_config::{self, Setting};
use crate::git_files::{hooks_path, included};
use crate::nested_git::is_harmless;

/// Settings that name files which git reads as text.
const TEXTS: [(&str, &str); 7] = [
    ("blame", "ignorerevsfile"),
    ("commit", "template"),
    ("core", "excludesfile"),
    ("diff", "orderfile"),
    ("format", "signaturefile"),
    ("gpg", "allowedsignersfile"),
    ("mailmap", "file"),
];
/// Programs that run the file that they are given.
const INTERPRETERS: [&str; 22] = [
    ".", "ash", "bash", "bun", "dash", "deno", "env", "exec", "fish", "ksh", "lua", "node",
    "nodejs", "perl", "php", "pypy", "python", "ruby", "sh", "source", "tsx", "zsh",
];
/// Links on the way to a file.
const MAX_LINKS: usize = 16;
/// Entries of a folder of hooks.
const MAX_HOOKS: usize = 500;
/// Files of one project.
const MAX_FILES: usize = 500;

/// What git runs of a work tree.
#[derive(Clone, Debug, Default)]
pub struct Named {
    /// Files, whether they are there or not.
    pub files: BTreeSet<PathBuf>,
    /// Links on the way to them, with what they say.
    pub links: BTreeMap<PathBuf, PathBuf>,
}

impl Named {
    /// Puts links back that lead elsewhere now, and says so. Blocking.
    pub(crate) fn restore_links(&self, root: &Path) -> Vec<String> {
        let mut report = Vec::new();
        for (link, target) in &self.links {
            if fs::read_link(link).is_ok_and(|now| now == *target) {
                continue;
            }
            FolderEntry::of(root, link).and_then(|it| it.move_aside());
            match FolderEntry::free(root, link).and_then(|it| it.link_to(target)) {
                Ok(()) => report.push(format!(
                    "Commands must not change what git runs: {} was a link, and is one again (what came in its place: NAME{SUFFIX}-*).",
                    link.strip_prefix(root).unwrap_or(link).display()
                )),
                Err(error) => tracing::warn!("[sandbox] cannot restore {}: {error}", link.display()),
            }
        }
        report
    }
}

/// The files of a work tree that git runs by the repository `git`: relative names count from the root of the work tree, where git starts
/// them. Reads the settings and hooks: blocking.
#[must_use]
pub fn named_by(git: &Path, worktree: &Path) -> Named {
    let own = git.join("config");
    let mut files = vec![own.clone(), git.join("config.worktree")];
    files.extend(included(&own));
    let real = worktree.canonicalize();
    let real = real.as_deref().unwrap_or(worktree);
    let mut search = Search {
        roots: [worktree, real],
        named: Named::default(),
    };
    for setting in files.iter().flat_map(|it| git_config::read(it)) {
        if runs(&setting) {
            search.line(setting.text());
        }
    }
    let folders = [Some(git.join("hooks")), hooks_path(git, worktree)];
    let by_habit = [".husky", ".githooks"].map(|it| Some(worktree.join(it)));
    for folder in folders.into_iter().chain(by_habit).flatten() {
        search.hooks(&folder);
    }
    search.named
}

/// Whether git starts what a setting says, or a program that does.
fn runs(setting: &Setting) -> bool {
    let (section, name) = (setting.section.as_str(), setting.name.as_str());
    let is_command = section != "alias" || setting.text().trim_start().starts_with('!');
    !is_harmless(setting) && !TEXTS.contains(&(section, name)) && is_command
}

struct Search<'a> {
    /// As it is called, and where it really is.
    roots: [&'a Path; 2],
    named: Named,
}

impl Search<'_> {
    /// A command line: its programs, what interpreters run, and other words that name a program.
    fn line(&mut self, text: &str) {
        let is_between = |c: char| c.is_whitespace() || ";|&(){}<>\"'`=!".contains(c);
        let mut before = None;
        for word in text.split(is_between).filter(|it| !it.is_empty()) {
            if word.starts_with('-') {
                continue;
            }
            let name = before
                .map(|it: &str| it.rsplit('/').next().unwrap_or(it))
                .map(|it| it.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'));
            // All of it may have been a `.`.
            let is_given = before == Some(".") || name.is_some_and(|it| INTERPRETERS.contains(&it));
            for path in self.paths(word) {
                let mode = path
                    .metadata()
                    .map(|it| (it.is_file(), it.permissions().mode()));
                let (is_file, is_program) = mode.map_or((false, false), |(is_file, mode)| {
                    (is_file, mode & 0o111 != 0)
                });
                let leads = word.contains('/') && (before.is_none() || is_given);
                if is_file && (leads || is_given || is_program) || !path.exists() && leads {
                    self.file(&path);
                }
            }
            before = Some(word);
        }
    }

    /// What a word may name in the work tree: also behind a variable, or what a substitution answers (`$PWD/x`).
    fn paths(&self, word: &str) -> Vec<PathBuf> {
        let root = self.roots[0];
        let below = match word.strip_prefix(['$', '~']) {
            Some(rest) => rest.split_once('/').map(|(_, rest)| rest),
            None => word.strip_prefix('/'),
        };
        let below = below.map(|it| root.join(it.trim_start_matches('/')));
        let mut all = vec![root.join(word)];
        // What is not there under such a name, nobody knows to be meant.
        all.extend(below.filter(|it| it.exists()));
        all.retain(|it| self.holds(it));
        all
    }

    fn holds(&self, path: &Path) -> bool {
        let path = normalize(path);
        let holds = |root: &&Path| path.starts_with(root) && path != **root;
        self.roots.iter().any(holds)
    }

    /// What the hooks of a folder are links to.
    fn hooks(&mut self, folder: &Path) {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        for entry in entries.take(MAX_HOOKS) {
            if entry.file_type().is_ok_and(|it| it.is_symlink()) {
                self.file(&entry.path());
            }
        }
    }

    /// A file, and each that its links lead to.
    fn file(&mut self, path: &Path) {
        let mut path = normalize(path);
        for _ in 0..MAX_LINKS {
            let real = path
                .parent()
                .and_then(|it| it.canonicalize().ok())
                .zip(path.file_name())
                .map(|(folder, name)| folder.join(name));
            let all: Vec<PathBuf> = [Some(path.clone()), real]
                .into_iter()
                .flatten()
                .filter(|it| self.holds(it) && !is_gits(it))
                .collect();
            let is_full = self.named.files.len() >= MAX_FILES;
            let Ok(target) = fs::read_link(&path) else {
                self.named
                    .files
                    .extend(all.into_iter().filter(|_| !is_full));
                return;
            };
            let links = all.into_iter().filter(|_| !is_full);
            self.named
                .links
                .extend(links.map(|it| (it, target.clone())));
            let folder = path.parent().unwrap_or(Path::new("/"));
            // As the system goes: links of the folder first.
            let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
            path = normalize(&folder.join(target));
        }
    }
}

/// It is kept by its name.
fn is_gits(path: &Path) -> bool {
    path.components().any(|it| it.as_os_str() == ".git")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_settings_and_hooks_run_of_a_project_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for (file, mode) in [
            ("scripts/fsm.sh", 0o755),
            ("scripts/clean.py", 0o644),
            ("scripts/conv", 0o755),
            ("scripts/last.sh", 0o755),
            ("build.sh", 0o644),
            ("top.sh", 0o755),
            ("text.md", 0o644),
            ("src/main.rs", 0o644),
            (".ignored", 0o644),
            (".git/hooks/own", 0o755),
        ] {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let link = |to: &str, at: &str| std::os::unix::fs::symlink(to, root.join(at)).unwrap();
        link("last.sh", "scripts/hop.sh");
        link("../../scripts/hop.sh", ".git/hooks/pre-commit");
        link("/usr/bin/true", ".git/hooks/pre-push");
        link("scripts", "tools");
        fs::create_dir(root.join(".husky")).unwrap();
        link("../scripts/coming.sh", ".husky/pre-commit");
        let config = "[core]\n\tfsmonitor = ./scripts/fsm.sh\n\teditor = vim\n\texcludesFile = ./.ignored\n\
            \tsshCommand = ssh -F x\n\tpager = tools/pager\n\
            [filter \"x\"]\n\tclean = python3 -u scripts/clean.py %f\n\tsmudge = cat text.md\n\
            [diff \"x\"]\n\ttextconv = env A=1 scripts/conv\n\
            [alias]\n\tb = !sh build.sh src/main.rs\n\tt = \"!$(git rev-parse --show-toplevel)/top.sh\"\n\tst = status text.md\n\
            [include]\n\tpath = more\n";
        fs::write(root.join(".git/config"), config).unwrap();
        let more = "[credential]\n\thelper = !./scripts/missing.sh get\n[remote \"o\"]\n\turl = ../scripts/fsm\n";
        fs::write(root.join(".git/more"), more).unwrap();
        let named = named_by(&root.join(".git"), &root);
        let below = |it: &PathBuf| it.strip_prefix(&root).unwrap().display().to_string();
        let found: Vec<String> = named.files.iter().map(below).collect();
        let want = [
            "build.sh",
            "scripts/clean.py",
            "scripts/coming.sh",
            "scripts/conv",
            "scripts/fsm.sh",
            "scripts/last.sh",
            "scripts/missing.sh",
            "scripts/pager",
            "tools/pager",
            "top.sh",
        ];
        let (found, want): (BTreeSet<&str>, BTreeSet<&str>) = (
            found.iter().map(String::as_str).collect(),
            want.into_iter().collect(),
        );
        assert_eq!(found, want);
        let links: Vec<String> = named.links.keys().map(below).collect();
        assert_eq!(links, [".husky/pre-commit", "scripts/hop.sh"]);
        assert_eq!(named.restore_links(&root), [""; 0]);
        fs::remove_file(root.join("scripts/hop.sh")).unwrap();
        fs::write(root.join("scripts/hop.sh"), "evil").unwrap();
        assert_eq!(named.restore_links(&root).len(), 1);
        assert_eq!(
            fs::read_link(root.join("scripts/hop.sh")).unwrap(),
            Path::new("last.sh")
        );
    }
}

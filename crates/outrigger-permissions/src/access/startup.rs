//! Files that make something run later, if a tool would change them: the user must approve that even if a general rule allows it.
//! The list is that of the command sandbox: [`outrigger_protocol::startup`] and [`crate::home_files`].

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use outrigger_kernel::permission::matches;
use outrigger_kernel::permission::paths::is_about;
use outrigger_protected_paths::{direnv, git_files, git_programs};
use outrigger_protocol::permission::{Action, Rule};
use outrigger_protocol::startup::{GIT, Startup, read_by_git, read_by_shells, startup_file};
use outrigger_sandbox::paths::{follow, resolve};
use outrigger_workspace::Folders;
use outrigger_workspace::git_policy;

use super::Access;
use crate::home_files;

/// System folders.
const OF_THE_SYSTEM: [&str; 10] = [
    "/etc",
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/boot",
    "/var/spool",
];
const BY_SYSTEM: &str = "it is part of the system";
const AT_LOGIN: &str = "it is used at your next login or the next start of a program";
const BY_SETTINGS: &str =
    "settings of this folder run it, and they are trusted with what it holds now";
const BY_PROGRAMS: &str = "programs obey hidden files of the home folder";
const BY_OPENCODE: &str =
    "OpenCode takes keys from it, and settings from the servers that it names, when it starts next";
const IS_OURS: &str = "it is Outrigger's own or the runtime of plugins";

/// Paths outside projects.
#[derive(Debug, Default)]
pub struct Outside {
    /// `None`: projects only.
    folders: Option<Folders>,
    /// This program and the runtimes of plugins.
    programs: Vec<PathBuf>,
    /// Project files that trusted settings execute, by real path.
    projects: BTreeSet<PathBuf>,
}

impl Outside {
    /// Creates it from a user's folders and the program folders that were found.
    pub fn new(folders: &Folders, programs: Vec<PathBuf>) -> Self {
        Self {
            folders: Some(folders.clone()),
            programs,
            projects: BTreeSet::new(),
        }
    }

    /// Adds project files that trusted settings execute.
    #[must_use]
    pub fn with_projects(mut self, files: Vec<PathBuf>) -> Self {
        self.projects = files.into_iter().collect();
        self
    }

    /// Returns Outrigger's data folder, as named and with links resolved. Reads the disk.
    pub(super) fn data(&self) -> Vec<PathBuf> {
        let data = self.folders.iter().map(|folders| &folders.data);
        data.flat_map(|data| [Some(data.clone()), data.canonicalize().ok()])
            .flatten()
            .collect()
    }

    /// Returns the names of start-up files that may not be there yet.
    fn beginnings(&self) -> impl Iterator<Item = home_files::Beginning> {
        self.folders.iter().flat_map(home_files::of_startup)
    }

    /// Returns the paths that contain such files, with the program that runs them.
    fn places(&self) -> Vec<(PathBuf, &'static str)> {
        let Some(folders) = &self.folders else {
            return Vec::new();
        };
        let ours = [
            folders.config.join("outrigger"),
            folders.config.join("opencode"),
            folders.data.clone(),
            folders.cache.clone(),
        ];
        let ours = ours.into_iter().chain(self.programs.iter().cloned());
        let home = home_files::startup(folders).into_iter();
        let system = OF_THE_SYSTEM.iter().map(PathBuf::from);
        let logins = folders
            .data
            .parent()
            .map(|data| (data.join("opencode/auth.json"), BY_OPENCODE));
        ours.map(|it| (it, IS_OURS))
            .chain(logins)
            .chain(home.map(|it| (it, AT_LOGIN)))
            .chain(system.map(|it| (it, BY_SYSTEM)))
            .collect()
    }
}

/// Returns whether no tool may read a file below the data folder, regardless of the rules: the audit's key could sign anything,
/// and the trust store is for this program only.
pub(super) fn is_ours_alone(data: &Path, file: &Path) -> bool {
    file.strip_prefix(data)
        .ok()
        .and_then(|it| it.iter().next())
        .map(|it| it.to_string_lossy())
        .is_some_and(|it| it == "trust" || it.ends_with("-audit-key"))
}

/// A file that the user must let a tool change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunsLater {
    /// Pattern of the question.
    pub pattern: String,
    /// What runs it, and when.
    pub runs: &'static str,
}

impl RunsLater {
    /// Returns entries for files that could not be checked.
    pub fn unknown(patterns: Vec<String>) -> Vec<Self> {
        let unknown = |pattern| Self {
            pattern,
            runs: "it cannot be inspected",
        };
        patterns.into_iter().map(unknown).collect()
    }

    /// Returns the reason for the question.
    pub fn why(&self) -> String {
        format!("{} is executed later: {}", self.pattern, self.runs)
    }
}

impl Access {
    /// Adds the paths outside projects.
    pub fn with_startup(mut self, outside: Outside) -> Self {
        self.outside = outside.into();
        self
    }

    /// Returns those of these files, relative to `base`, that make something run later and that no rule of `written`, the user's
    /// own, names. Reads the disk.
    pub fn runs_later(&self, base: &Path, patterns: &[String], written: &[Rule]) -> Vec<RunsLater> {
        let mut places: Option<Vec<(PathBuf, &'static str)>> = None;
        let mut found = Vec::new();
        for pattern in patterns {
            let named = resolve(base, Path::new(pattern));
            let real = follow(&named).ok().filter(|it| *it != named);
            let places = places.get_or_insert_with(|| self.outside.places());
            let startup = [Some(&named), real.as_ref()].into_iter().flatten();
            let mut startup = startup.filter_map(|it| Some((it, self.startup(it, places)?)));
            let unnamed = startup.find(|(path, it)| !self.is_named(path, &it.name, written));
            found.extend(unnamed.map(|(_, it)| RunsLater {
                pattern: pattern.clone(),
                runs: it.runs,
            }));
        }
        found
    }

    fn startup(&self, path: &Path, places: &[(PathBuf, &'static str)]) -> Option<Startup> {
        let (folder, worktree) = (&self.location.directory, &self.location.worktree);
        let roots = [worktree, folder].into_iter();
        let root = roots
            .filter(|it| it.parent().is_some())
            .find(|it| path.starts_with(it));
        // Ignore the path of the project root itself.
        let below = root.map_or(path, |root| path.strip_prefix(root).unwrap_or(path));
        startup_file(below)
            .or_else(|| {
                let is_run = self.outside.projects.contains(path);
                let name = path.file_name().filter(|_| is_run)?;
                Some(Startup {
                    name: name.to_string_lossy().into_owned(),
                    runs: BY_SETTINGS,
                })
            })
            .or_else(|| self.of_git(path, root.map(PathBuf::as_path)))
            .or_else(|| of_direnv(path, root?))
            .or_else(|| {
                let mut beginnings = self.outside.beginnings();
                let entry = beginnings.find_map(|it| it.holds(path).map(Path::to_path_buf))?;
                Some(Startup {
                    name: entry.file_name()?.to_string_lossy().into_owned(),
                    runs: AT_LOGIN,
                })
            })
            .or_else(|| {
                let holds = |place: &Path| path.starts_with(place) && !folder.starts_with(place);
                let found = places.iter().find(|(place, _)| {
                    holds(place) || place.canonicalize().is_ok_and(|it| holds(&it))
                })?;
                let name = found.0.file_name()?.to_string_lossy().into_owned();
                Some(Startup {
                    name,
                    runs: found.1,
                })
            })
            .or_else(|| self.of_home(path).filter(|_| root.is_none()))
    }

    /// Detects the settings of programs in the home folder. No list names all that can start a program (`~/.kube/config`,
    /// `~/.docker/cli-plugins`, `~/.gemrc`), so a hidden file that is not a cache is taken for one.
    fn of_home(&self, path: &Path) -> Option<Startup> {
        let home = &self.outside.folders.as_ref()?.home;
        let first = path.strip_prefix(home).ok()?.iter().next()?;
        let is_hidden = first.as_encoded_bytes().starts_with(b".") && first != ".cache";
        named_file(path).filter(|_| is_hidden).map(|it| Startup {
            runs: BY_PROGRAMS,
            ..it
        })
    }

    /// Detects files that git reads outside a `.git` folder: in a bare repository, in that of a linked worktree or submodule, or
    /// in a hooks folder named by its settings.
    fn of_git(&self, path: &Path, root: Option<&Path>) -> Option<Startup> {
        // It would make its folder one.
        if path.file_name().is_some_and(|name| name == "HEAD") {
            return named_file(path);
        }
        let mut above = path
            .ancestors()
            .skip(1)
            .take_while(|it| root.is_none_or(|root| it.starts_with(root)));
        if let Some(folder) = above.find(|it| git_files::is_repository(it)) {
            return named_file(folder);
        }
        let worktree = &self.location.worktree;
        let mut stores = git_policy::stores(worktree);
        stores.push(worktree.join(GIT));
        let hooks = stores
            .iter()
            .filter_map(|it| git_files::hooks_path(it, worktree));
        let included = stores.iter().flat_map(|it| git_files::of_repository(it));
        let named = stores.iter().flat_map(|it| {
            let named = git_programs::named_by(it, worktree);
            let links = named.links.into_keys();
            named.files.into_iter().chain(links).collect::<Vec<_>>()
        });
        let all: Vec<PathBuf> = hooks.chain(included).chain(named).collect();
        // A link itself may be replaced.
        if let Some(found) = all.iter().find(|it| *it == path) {
            return named_file(found);
        }
        all.iter()
            .filter_map(|it| follow(&resolve(worktree, it)).ok())
            .find(|it| path.starts_with(it) && !worktree.starts_with(it))
            .and_then(|it| named_file(&it))
    }

    /// Returns whether one of the rules allows changing the file and names it, not by wildcards alone.
    fn is_named(&self, path: &Path, name: &str, written: &[Rule]) -> bool {
        let rules = self.rules(&[written]);
        let names = self.names(path);
        rules.rules.iter().any(|rule| {
            rule.action == Action::Allow
                && matches(&rule.permission, "edit")
                && rule
                    .pattern
                    .split('/')
                    .any(|part| part.trim_matches(['*', '?']).eq_ignore_ascii_case(name))
                && is_about(rule, &names)
        })
    }
}

fn named_file(path: &Path) -> Option<Startup> {
    let name = path.file_name()?;
    Some(read_by_git(name.to_string_lossy().into_owned()))
}

/// What an `.envrc` in the project loads: one in the file's folder or above, to the root.
fn of_direnv(path: &Path, root: &Path) -> Option<Startup> {
    let mut above = path
        .ancestors()
        .skip(1)
        .take_while(|it| it.starts_with(root));
    let is_loaded = |it: &PathBuf| follow(it).is_ok_and(|it| it == path) || it == path;
    above.find(|folder| direnv::loaded(folder).iter().any(is_loaded))?;
    let name = path.file_name()?.to_string_lossy().into_owned();
    Some(read_by_shells(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Operation;
    use outrigger_workspace::ProjectLocation;

    #[test]
    fn a_file_that_runs_later_takes_a_rule_that_names_it() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        for folder in [
            "home/p/.git/hooks",
            "home/p/scripts/hooks",
            "home/p/bare.git/objects",
            "home/p/bare.git/refs",
            "home/.config/fish",
        ] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        for (file, text) in [
            ("home/p/.git/HEAD", "ref: refs/heads/main\n"),
            (
                "home/p/.git/config",
                "[core]\n\thooksPath = scripts/hooks\n[include]\n\tpath = ../shared\n\tfsmonitor = no\n\
                 [core]\n\tfsmonitor = ./scripts/fsm.sh\n[filter \"x\"]\n\tclean = sh tools/clean.sh\n",
            ),
            ("home/p/scripts/fsm.sh", ""),
            ("home/p/tools/clean.sh", ""),
            ("home/p/tools/hook.sh", ""),
            ("home/p/bare.git/HEAD", ""),
            (
                "home/p/.envrc",
                "dotenv\nsource_env_if_exists sub/local.sh\n",
            ),
            ("home/bin/bun", ""),
        ] {
            std::fs::create_dir_all(at(file).parent().unwrap()).unwrap();
            std::fs::write(at(file), text).unwrap();
        }
        std::os::unix::fs::symlink("../../tools/hook.sh", at("home/p/.git/hooks/pre-push"))
            .unwrap();
        std::os::unix::fs::symlink(".git", at("home/p/door")).unwrap();
        std::os::unix::fs::symlink(at("home/.config"), at("home/p/settings")).unwrap();
        let location = ProjectLocation {
            directory: at("home/p"),
            worktree: at("home/p"),
            git: true,
        };
        let folders = Folders {
            home: at("home"),
            config: at("home/.config"),
            data: at("home/.local/share/outrigger"),
            cache: at("home/.cache/outrigger"),
        };
        let outside = Outside::new(&folders, vec![at("home/bin/bun")])
            .with_projects(vec![at("home/p/tools/guard.sh")]);
        let access = Access::new(&location, &folders.home).with_startup(outside);
        let runs = |file: &str, pattern: &str, permission: &str| {
            let rule = Rule {
                permission: permission.to_owned(),
                pattern: pattern.to_owned(),
                action: Action::Allow,
            };
            let found = access.runs_later(&location.directory, &[file.to_owned()], &[rule]);
            !found.is_empty()
        };
        for (file, names) in [
            (".git/hooks/pre-commit", ".git/hooks/*"),
            (".git/config", ".git/config"),
            (".git/rebase-merge/git-rebase-todo", ".git/*"),
            ("sub/.git", "*/.git"),
            ("door/config", "*/.git/*"),
            ("scripts/hooks/pre-push", "scripts/hooks/*"),
            ("shared", "shared"),
            ("scripts/fsm.sh", "scripts/fsm.sh"),
            ("tools/clean.sh", "tools/clean.sh"),
            ("tools/hook.sh", "tools/hook.sh"),
            ("bare.git/config", "bare.git/*"),
            ("x/HEAD", "x/HEAD"),
            (".vscode/tasks.json", ".vscode/tasks.json"),
            ("a/b/.envrc", "*.envrc"),
            (".env", ".env"),
            ("sub/local.sh", "sub/local.sh"),
            (".opencode/plugin/x.js", "**/.opencode/**"),
            ("opencode.json", "opencode.json"),
            ("../.bashrc", "~/.bashrc"),
            ("../.config/fish/config.fish", "~/.config/fish/*"),
            ("settings/fish/config.fish", "~/.config/fish/*"),
            ("../bin/bun", "~/bin/*"),
            (
                "../.local/share/outrigger/trust.json",
                "~/.local/share/outrigger/*",
            ),
            (
                "../.local/share/opencode/auth.json",
                "~/.local/share/opencode/auth.json",
            ),
            (
                "../.cache/p10k-instant-prompt-me.zsh",
                "~/.cache/p10k-instant-prompt-me.zsh",
            ),
            ("../other/.git/hooks/x", "~/other/.git/*"),
            ("tools/guard.sh", "tools/guard.sh"),
            ("/etc/profile", "/etc/profile"),
        ] {
            for wide in ["*", "**", "**/*", "*.json", "*/*"] {
                assert!(runs(file, wide, "edit"), "{file} {wide}");
            }
            assert!(runs(file, names, "read"), "{file}");
            let lifted = match file {
                // The rule is also matched against the resolved path.
                "door/config" | "settings/fish/config.fish" => continue,
                "../bin/bun" => !runs(file, names, "edit") || !runs(file, "~/bin/bun", "edit"),
                _ => !runs(file, names, "edit"),
            };
            assert!(lifted, "{file} {names}");
        }
        let everything = Rule {
            permission: "*".to_owned(),
            pattern: "*".to_owned(),
            action: Action::Allow,
        };
        let rules = access.rules(&[&[everything]]);
        for (file, action) in [
            ("trust/outrigger.lock", Action::Deny),
            ("outrigger.db-audit-key", Action::Deny),
            ("tool-output/x", Action::Allow),
        ] {
            let verdict = rules.decide(Operation::Read, &folders.data.join(file));
            assert_eq!(verdict.action, action, "{file}");
        }
        for file in [
            "src/a.rs",
            "package.json",
            "sub/.env",
            ".env.example",
            "Makefile",
            ".github/workflows/x.yml",
            ".opencode/plans/x.md",
            "../other/a.txt",
            "AGENTS.md",
        ] {
            assert!(!runs(file, "*", "edit"), "{file}");
        }
    }
}

//! The sandbox of processes started for the model: one set of rules decides for tools and for what they start, so that a path
//! which `read` is denied cannot be read with `cat` either.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use outrigger_config::Loaded;
use outrigger_config::settings::{Profile, Sandbox, Settings};
use outrigger_protocol::diagnose::Diagnose as _;
use outrigger_sandbox::folders::movable_above_all;
use outrigger_sandbox::path_masks::Covers;
use outrigger_sandbox::{
    CoversFn, Forbids as _, Level, Policy, SandboxError, Spawner, private_tmp,
};
use outrigger_workspace::Folders;
use outrigger_workspace::ProjectLocation;

use crate::access::{Access, PathRules};
use crate::deny_policy::DenyPolicy;
use crate::home_files;
use crate::reserved_paths;
use crate::workspace_trust::WorkspaceTrust;

/// Returns whether a sandbox that shows only `reads` shows all of these folders (`FOLDER/*`); without a list it shows all.
#[must_use]
pub fn shows(reads: Option<&[PathBuf]>, folders: &[String]) -> bool {
    let Some(reads) = reads else { return true };
    let reads: Vec<PathBuf> = reads.iter().flat_map(|it| it.canonicalize()).collect();
    folders.iter().all(|pattern| {
        let folder = Path::new(pattern).parent();
        folder.is_some_and(|folder| reads.iter().any(|it| folder.starts_with(it)))
    })
}

/// Why a process is not started.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// The rules cannot be turned into a sandbox.
    #[error("cannot apply the permission rules to the process sandbox: {0}")]
    Rules(#[from] SandboxError),
    /// Its changes of the settings could not be determined.
    #[error("{0}")]
    Noted(SandboxError),
    /// Commands have no folder for temporary files.
    #[error("cannot create the temporary folder of commands: {0}")]
    Temporary(std::io::Error),
    /// `sandbox = "strict"`, and the system cannot enforce all of it.
    #[error(
        "the system can enforce only a part of the process's sandbox, and `sandbox` is \"strict\""
    )]
    Strict,
    /// The system has neither Landlock nor user namespaces: no file would be protected.
    #[error(
        "this system has neither Landlock nor user namespaces, so nothing can be kept from commands"
    )]
    Nothing,
}

impl ConfineError {
    /// Returns what to do about the error.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Rules(error) | Self::Noted(error) => error.hint().unwrap_or_default(),
            Self::Temporary(_) => {
                "make room in the system's folder for temporary files, or name another one with TMPDIR"
                    .to_owned()
            }
            Self::Strict => {
                "`outrigger doctor` shows what is missing; `sandbox = \"on\"` starts it anyway"
                    .to_owned()
            }
            Self::Nothing => "`tools.sandbox = \"full\"` in your own outrigger.toml runs them without a sandbox; a kernel with Landlock (5.13 or \
                 later, `landlock` in `lsm=`) has one"
                .to_owned(),
        }
    }
}

static WARNED: Once = Once::new();

/// Whether the system enforces enough of a command's sandbox under this profile.
///
/// # Errors
/// [`ConfineError::Strict`], [`ConfineError::Nothing`].
pub fn is_enforced(
    policy: &Policy,
    settings: &Settings,
    profile: Profile,
    has_views: bool,
) -> Result<(), ConfineError> {
    match policy.level() {
        Level::Full => {}
        _ if settings.sandbox == Sandbox::Strict => return Err(ConfineError::Strict),
        Level::None if profile != Profile::Full && !has_views => return Err(ConfineError::Nothing),
        // Once: it applies to every command.
        level => WARNED.call_once(|| warn_of_partial(level, has_views)),
    }
    Ok(())
}

fn warn_of_partial(level: Level, has_views: bool) {
    let what = if has_views {
        "the system can enforce only a part of the rules"
    } else {
        "without user namespaces, sandboxed commands cannot create files next to denied ones, and see other processes"
    };
    tracing::warn!(?level, "{what}; see `outrigger doctor`");
}

/// Folder of tool output that is too long for a model, by session.
pub const OUTPUTS: &str = "tool-output";

/// Folders in the data folder that processes may see: those created for them, and nothing else.
const PROCESS_FOLDERS: [&str; 8] = [
    OUTPUTS,
    "plugin-homes",
    "plugin-files",
    reserved_paths::SERVER_FOLDERS,
    "tmux",
    "modules",
    "bun",
    "plugin-scripts",
];
/// Those of them whose files they run, and must not change for others.
const READ_ONLY_FOLDERS: [&str; 3] = ["modules", "bun", "plugin-scripts"];

/// Returns Outrigger's files that are hidden from every process started for the model or a plugin, regardless of the rules: the
/// trust store, the store with the audit and its keys, credentials. The settings, which could loosen the sandbox, are read-only.
pub fn own_files(folders: &Folders) -> Covers {
    // Credentials of OpenCode, which are used as well.
    let keys = folders
        .data
        .parent()
        .map(|data| data.join("opencode/auth.json"));
    let hide: Vec<PathBuf> = keys.filter(|path| path.exists()).into_iter().collect();
    let shared = READ_ONLY_FOLDERS.iter().map(|name| folders.data.join(name));
    let settings = folders.config.join("outrigger");
    // Fetched plugins and skills, and OpenCode's list of models, which determines where keys are sent.
    let models = folders
        .cache
        .parent()
        .map(|cache| cache.join(reserved_paths::MODELS));
    let fetched = [folders.cache.clone()].into_iter().chain(models);
    let fetched: Vec<PathBuf> = fetched.collect();
    let ours = [&folders.data, &settings].into_iter();
    let ours = ours.chain(&fetched).chain(&hide).map(PathBuf::as_path);
    let mut held: Vec<PathBuf> = movable_above_all(ours).into_iter().collect();
    held.extend(PROCESS_FOLDERS.iter().map(|name| folders.data.join(name)));
    held.sort();
    held.dedup();
    // Other sessions are invisible: their tool output, temporary files and transcripts.
    let mut closed = vec![folders.data.clone(), folders.data.join(OUTPUTS)];
    closed.extend(private_tmp::all());
    let read_only = shared
        .chain([settings])
        .chain(fetched)
        .filter(|path| path.exists());
    Covers {
        hide,
        read_only: read_only.collect(),
        held,
        closed,
        ..Covers::default()
    }
}

/// Returns what is hidden from processes, or read-only for them: what rules deny, what the machine policy forbids, and
/// [`own_files`].
///
/// # Errors
/// [`SandboxError::TooMany`].
pub fn covers(
    rules: &PathRules,
    folders: &Folders,
    forbidden: &DenyPolicy,
) -> Result<Covers, SandboxError> {
    let mut found = rules.covers()?;
    let forbids = forbidden.covers()?;
    found
        .held
        .extend(movable_above_all(forbids.iter().map(PathBuf::as_path)));
    found.hide.extend(forbids);
    let own = own_files(folders);
    found.hide.extend(own.hide);
    found.read_only.extend(own.read_only);
    found.held.extend(own.held);
    let code = outrigger_plugin_trust::kept_code::kept_code(rules.worktree());
    found.read_only.extend(code.read_only);
    found.held.extend(code.held);
    found.closed = own.closed;
    // The machine policy, which only root could change.
    let policy = Path::new(reserved_paths::POLICY);
    found.read_only.extend(
        Some(policy.to_owned())
            .filter(|path| outrigger_sandbox::folders::is_root() && path.exists()),
    );
    Ok(found)
}

/// Project paths hidden from processes, for checks of single files without a process.
pub struct Withheld {
    rules: PathRules,
    /// Outrigger's folders.
    folders: Vec<PathBuf>,
    forbidden: DenyPolicy,
}

impl Withheld {
    /// Creates it for this project; `None` if nothing is sandboxed.
    pub fn of(config: &Loaded, location: &ProjectLocation, folders: &Folders) -> Option<Self> {
        let own = own_files(folders);
        (config.settings.sandbox != Sandbox::Off).then(|| Self {
            rules: Access::new(location, &folders.home).rules(&[&config.config.permission]),
            folders: own.hide.into_iter().chain(own.closed).collect(),
            forbidden: DenyPolicy::of(config, location),
        })
    }

    /// Returns whether a project file, by its absolute path, is hidden from processes. Reads the disk.
    pub fn holds(&self, path: &Path) -> bool {
        self.folders.iter().any(|folder| path.starts_with(folder))
            || self.rules.keeps(path)
            || self.forbidden.file(path).is_some()
    }
}

/// Returns a spawner for helper programs (MCP servers, language servers, formatters): they may do what the user may, but do not
/// see what is denied.
pub fn spawner(
    spawner: &Spawner,
    config: &Loaded,
    location: &ProjectLocation,
    folders: &Folders,
    trust: Option<&Arc<WorkspaceTrust>>,
) -> Spawner {
    let sandbox = config.settings.sandbox;
    if sandbox == Sandbox::Off {
        return spawner.clone();
    }
    let (access, folders) = (Access::new(location, &folders.home), folders.clone());
    let rules = config.config.permission.clone();
    let trust = trust.cloned();
    let forbidden = DenyPolicy::of(config, location);
    let covers = Arc::new(move || {
        if let Some(trust) = &trust {
            trust.before_process()?;
        }
        covers(&access.rules(&[&rules]), &folders, &forbidden)
    });
    spawner
        .clone()
        .with_covers(covers, sandbox == Sandbox::Strict)
}

/// Like [`plugin_covers`], for plugin installers, which fill the folders that plugins only read. Their own sandbox limits where
/// they write.
pub fn installer_covers(of_plugins: CoversFn, folders: &Folders) -> CoversFn {
    let (data, cache) = (folders.data.clone(), folders.cache.clone());
    Arc::new(move || {
        let mut found = of_plugins()?;
        found
            .read_only
            .retain(|path| *path != cache && !path.starts_with(&data));
        Ok(found)
    })
}

/// Returns what is hidden from plugins, in the current state, at each start of one.
pub fn plugin_covers(config: &Loaded, location: &ProjectLocation, folders: &Folders) -> CoversFn {
    let access = Access::new(location, &folders.home);
    let rules = config.config.permission.clone();
    let forbidden = DenyPolicy::of(config, location);
    let (location, folders) = (location.clone(), folders.clone());
    let shown = config.settings.tools.secrets.clone();
    Arc::new(move || {
        let mut found = covers(&access.rules(&[&rules]), &folders, &forbidden)?;
        let project = [location.directory.as_path(), location.worktree.as_path()];
        home_files::keep_from_plugins(&mut found, &folders, &shown, project);
        Ok(found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_protocol::permission::{Action, Rule};

    fn rule(permission: &str, pattern: &str, action: Action) -> Rule {
        Rule {
            permission: permission.into(),
            pattern: pattern.into(),
            action,
        }
    }

    #[test]
    fn what_is_ours_is_kept_from_everybody() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for file in [
            "data/outrigger/auth.json",
            "data/outrigger/tool-output/1",
            "data/outrigger/modules/x",
            "data/opencode/auth.json",
            "config/outrigger/outrigger.toml",
            "cache/outrigger/x",
            "cache/opencode/models.json",
        ] {
            std::fs::create_dir_all(at(file).parent().unwrap()).unwrap();
            std::fs::write(at(file), "").unwrap();
        }
        let folders = Folders {
            home: at("home"),
            config: at("config"),
            data: at("data/outrigger"),
            cache: at("cache/outrigger"),
        };
        let found = own_files(&folders);
        let names = |paths: &[PathBuf]| -> Vec<String> {
            paths
                .iter()
                .map(|path| path.strip_prefix(root.path()).unwrap())
                .map(|path| path.display().to_string())
                .collect()
        };
        assert_eq!(names(&found.hide), ["data/opencode/auth.json"]);
        assert_eq!(
            names(&found.read_only),
            [
                "data/outrigger/modules",
                "config/outrigger",
                "cache/outrigger",
                "cache/opencode/models.json"
            ]
        );
        let of_data = found.closed.iter().filter(|it| it.starts_with(root.path()));
        assert_eq!(
            names(&of_data.cloned().collect::<Vec<_>>()),
            ["data/outrigger", "data/outrigger/tool-output"]
        );
        assert!(found.held.contains(&at("data/outrigger/tool-output")));
        assert!(found.held.contains(&at("config")) && found.held.contains(&at("data")));
    }

    const FILES: [&str; 6] = [
        "project/.env",
        "project/keys/id",
        "project/keys/deep/id",
        "project/docs/keys",
        "project/a.lock",
        "ssh/id",
    ];

    #[test]
    fn what_rules_keep_from_processes() {
        let root = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(root.path()).unwrap();
        let project = root.join("project");
        for file in FILES {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), "").unwrap();
        }
        let ssh = format!("{}/ssh/*", root.display());
        let deny = Action::Deny;
        // What is hidden, what is read-only, and the folder that must not be moved for that.
        type Row<'a> = (&'a [Rule], &'a [&'a str], &'a [&'a str], &'a [&'a str]);
        let rows: [Row<'_>; 9] = [
            (&[], &[], &[], &[]),
            (
                &[rule("read", "*", deny), rule("*", "*", deny)],
                &[],
                &[],
                &[],
            ),
            (&[rule("read", "*.env", deny)], &["project/.env"], &[], &[]),
            (
                &[rule("read", "keys/*", deny), rule("edit", "*.lock", deny)],
                &["project/keys"],
                &["project/a.lock"],
                &["project"],
            ),
            (
                &[
                    rule("read", "*.env", deny),
                    rule("read", "*", Action::Allow),
                ],
                &[],
                &[],
                &[],
            ),
            (
                &[rule("external_directory", &ssh, deny)],
                &["ssh"],
                &[],
                &[],
            ),
            (
                &[rule("read", "keys/deep/id", deny)],
                &["project/keys/deep/id"],
                &[],
                &["project", "project/keys", "project/keys/deep"],
            ),
            (
                &[rule("edit", "*/deep/*", deny)],
                &[],
                &["project/keys/deep"],
                &["project", "project/keys"],
            ),
            // It stays denied wherever it is moved, with one exception.
            (
                &[
                    rule("read", "*id", deny),
                    rule("read", "public/*", Action::Allow),
                ],
                &["project/keys/deep/id", "project/keys/id", "ssh/id"],
                &[],
                &["project", "project/keys", "project/keys/deep"],
            ),
        ];
        for git in [true, false] {
            let location = ProjectLocation {
                directory: project.clone(),
                worktree: project.clone(),
                git,
            };
            for (rules, hide, read_only, held) in &rows {
                // Outside version control patterns begin at the root of the system.
                let moved = |rule: &Rule| match rule.pattern.as_str() {
                    pattern if !git && pattern.starts_with("keys/") => Rule {
                        pattern: format!("{}/{pattern}", &project.display().to_string()[1..]),
                        ..rule.clone()
                    },
                    _ => rule.clone(),
                };
                let rules: Vec<Rule> = rules.iter().map(moved).collect();
                let access = Access::new(&location, &root.join("home"));
                let found = access.rules(&[&rules]).covers().unwrap();
                let full = |names: &[&str]| -> Vec<PathBuf> {
                    names.iter().map(|name| root.join(name)).collect()
                };
                assert_eq!(found.hide, full(hide), "{rules:?} {git}");
                assert_eq!(found.read_only, full(read_only), "{rules:?} {git}");
                let below = found.held.iter().filter(|it| it.starts_with(&project));
                assert_eq!(
                    below.cloned().collect::<Vec<_>>(),
                    full(held),
                    "{rules:?} {git}"
                );
                // Single-file checks give the same result.
                let withheld = Withheld {
                    rules: access.rules(&[&rules]),
                    folders: Vec::new(),
                    forbidden: DenyPolicy::here(Default::default(), &location),
                };
                for file in FILES.into_iter().filter(|_| git) {
                    let file = root.join(file);
                    let hidden = found.hide.iter().any(|it| file.starts_with(it));
                    assert_eq!(withheld.holds(&file), hidden, "{rules:?} {file:?}");
                }
            }
        }
    }
}

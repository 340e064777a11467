//! The home folder in the sandbox of commands: the files that the [lists] mean, for this user and environment.

mod beginnings;
mod cache_table;
pub mod command_caches;
mod lists;
mod settings;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use outrigger_sandbox::Listings;
use outrigger_sandbox::path_masks::Covers;
use outrigger_workspace::Folders;

pub use beginnings::{Beginning, keep_free, of_startup};
pub use settings::settings_folders;

use lists::{SECRETS, SECRETS_BY_VARIABLE, STARTUP};

/// A user's files and folders from the lists. Created once for an agent.
#[derive(Clone, Debug, Default)]
pub struct HomeFiles {
    /// Hidden from commands.
    pub secrets: Vec<PathBuf>,
    /// Read-only for commands.
    pub startup: Vec<PathBuf>,
    /// Writable for commands.
    pub caches: Vec<PathBuf>,
}

impl HomeFiles {
    /// Returns the existing ones, without the secrets that the user shows to commands. Reads the disk.
    pub fn of(folders: &Folders, shown: &[String], listings: &mut Listings) -> Self {
        let shown: Vec<&Path> = shown.iter().map(Path::new).collect();
        let mut secrets = secrets(folders, listings);
        secrets
            .retain(|it| listings.exists(it) && !shown.iter().any(|shown| it.starts_with(shown)));
        Self {
            secrets,
            startup: startup_in(folders, listings),
            caches: caches_in(folders, listings),
        }
    }
}

/// Returns existing caches, which commands can change. Reads the disk.
pub fn caches(folders: &Folders) -> Vec<PathBuf> {
    caches_in(folders, &mut Listings::default())
}

fn caches_in(folders: &Folders, listings: &mut Listings) -> Vec<PathBuf> {
    let mut caches = all(
        folders,
        cache_table::changed_by_commands(),
        cache_table::BY_VARIABLE,
        listings,
    );
    let inner = folders.cache.parent().unwrap_or(&folders.home);
    caches
        .retain(|it| listings.exists(it) && is_a_cache(it, &folders.home) && is_a_cache(it, inner));
    caches
}

/// Protects the home folder's secrets and start-up files from plugins whose project contains them: if the user works in the home
/// folder itself, or has its settings under version control. Otherwise plugins reach no home folder. If such a file does not
/// exist yet, nothing new can be created next to it. Reads the disk.
pub fn keep_from_plugins(
    covers: &mut Covers,
    folders: &Folders,
    shown: &[String],
    project: [&Path; 2],
) {
    let files = HomeFiles::of(folders, shown, &mut Listings::default());
    let secrets = files.secrets.into_iter();
    covers
        .hide
        .extend(secrets.filter(|it| is_held_by(project, it)));
    let beginnings = of_startup(folders).map(|it| it.folder.join("*"));
    let startup = files.startup.into_iter().chain(beginnings);
    for path in startup.filter(|it| is_held_by(project, it)) {
        if path.exists() {
            covers.read_only.push(path)
        } else {
            covers.fixed.extend(
                path.ancestors()
                    .skip(1)
                    .find(|it| it.is_dir())
                    .map(Path::to_owned),
            )
        }
    }
    covers.fixed.sort();
    covers.fixed.dedup();
}

/// Returns patterns of the secrets in the project, existing or not.
pub fn secrets_of_project(folders: &Folders, shown: &[String], project: [&Path; 2]) -> Vec<String> {
    let listed = SECRETS.iter().flat_map(|entry| places(folders, entry));
    let all: BTreeSet<PathBuf> = listed
        .chain(by_variable(folders, SECRETS_BY_VARIABLE))
        .filter(|it| is_held_by(project, it) && !shown.iter().any(|shown| it.starts_with(shown)))
        .collect();
    all.iter().map(|it| it.display().to_string()).collect()
}

/// Returns whether a file is in the project while the working directory is not in it.
fn is_held_by(project: [&Path; 2], path: &Path) -> bool {
    let mut roots = project.iter().filter(|root| root.parent().is_some());
    roots.any(|root| path != *root && path.starts_with(root)) && !project[0].starts_with(path)
}

/// Returns the start-up files, existing or not; of names with `*` ([`of_startup`]) the existing ones.
pub fn startup(folders: &Folders) -> Vec<PathBuf> {
    startup_in(folders, &mut Listings::default())
}

fn startup_in(folders: &Folders, listings: &mut Listings) -> Vec<PathBuf> {
    all(folders, startup_entries(), &[], listings)
}

/// Warns of grants without effect.
pub fn check(folders: &Folders, shown: &[String]) {
    if shown.is_empty() {
        return;
    }
    for name in unknown(folders, shown) {
        tracing::warn!(
            "[config] tools.secrets: {name} is not a secret that is hidden as a whole, so this shows nothing; docs/sandbox.md has the list"
        );
    }
}

/// Returns the places of secrets, also those where nothing exists. Reads the disk.
fn secrets(folders: &Folders, listings: &mut Listings) -> Vec<PathBuf> {
    let named = SECRETS.iter().copied();
    let mut found = all(folders, named, SECRETS_BY_VARIABLE, listings);
    found.extend(settings::with_keys(folders, listings));
    found
}

/// Returns secrets that a user shows and that are not on the list.
fn unknown<'a>(folders: &Folders, shown: &'a [String]) -> Vec<&'a str> {
    let secrets = secrets(folders, &mut Listings::default());
    let known = |it: &&String| secrets.iter().any(|secret| secret.starts_with(it));
    shown
        .iter()
        .filter(|it| !known(it))
        .map(String::as_str)
        .collect()
}

/// Returns whether a path can be a cache: a variable that names the home folder or that of all caches, or one above it, would open
/// all of it.
fn is_a_cache(path: &Path, inner: &Path) -> bool {
    path.parent().is_some() && !inner.starts_with(path)
}

/// Returns the entries of start-up files, caches whose files are executed later among them.
fn startup_entries() -> impl Iterator<Item = &'static str> {
    STARTUP.iter().copied().chain(cache_table::of_programs())
}

fn all(
    folders: &Folders,
    entries: impl Iterator<Item = &'static str>,
    variables: &'static [(&str, &str)],
    listings: &mut Listings,
) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in entries {
        for path in places(folders, entry) {
            let begins = entry.ends_with('*').then(|| Beginning::of(&path));
            match begins.flatten() {
                Some(all) => found.extend(all.there(listings)),
                None => found.push(path),
            }
        }
    }
    found.extend(by_variable(folders, variables));
    // By bytes: comparing hundreds of paths component by component takes a twentieth of a start.
    found.sort_unstable_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
    found.dedup();
    found
}

/// Returns entries at other paths in the home folder, given by variables.
fn by_variable(
    folders: &Folders,
    variables: &'static [(&str, &str)],
) -> impl Iterator<Item = PathBuf> {
    variables.iter().filter_map(|(variable, below)| {
        let named = std::env::var_os(variable).map(PathBuf::from)?;
        let is_below = named.is_absolute() && named.starts_with(&folders.home);
        is_below.then(|| {
            if below.is_empty() {
                named
            } else {
                named.join(below)
            }
        })
    })
}

/// Returns the paths of an entry: in the home folder, and in its XDG folder.
fn places(folders: &Folders, entry: &str) -> impl Iterator<Item = PathBuf> {
    let xdg = [
        (".config/", Some(folders.config.as_path())),
        (".local/share/", folders.data.parent()),
        (".cache/", folders.cache.parent()),
    ]
    .into_iter()
    .find_map(|(kind, base)| {
        let below = entry.strip_prefix(kind)?;
        Some(base?.join(below))
    });
    let at_home = folders.home.join(entry);
    // The usual XDG folders are those of the home folder.
    let xdg = xdg.filter(|it| *it != at_home);
    [at_home].into_iter().chain(xdg)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(root: &Path) -> Folders {
        Folders {
            home: root.join("home"),
            config: root.join("xdg"),
            data: root.join("home/.local/share/outrigger"),
            cache: root.join("home/.cache/outrigger"),
        }
    }

    #[test]
    fn plugins_of_the_home_folder_have_neither_its_secrets_nor_its_startup_files() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for folder in ["home/.ssh", "home/notes"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        std::fs::write(at("home/.bashrc"), "").unwrap();
        let folders = folders(root.path());
        std::fs::create_dir_all(at("home/.config")).unwrap();
        for (directory, worktree, kept) in [
            ("home", "home", true),
            ("home/notes", "home", true),
            ("", "", true),
            ("home/notes", "home/notes", false),
        ] {
            let mut covers = Covers::default();
            keep_from_plugins(&mut covers, &folders, &[], [&at(directory), &at(worktree)]);
            assert_eq!(covers.hide.contains(&at("home/.ssh")), kept, "{directory}");
            let startup = covers.read_only.contains(&at("home/.bashrc"));
            assert_eq!(startup, kept, "{directory}");
            // `.zshrc` and `.config/fish` do not exist yet.
            for folder in ["home", "home/.config"].map(at) {
                assert_eq!(covers.fixed.contains(&folder), kept, "{directory}");
            }
            let asked = secrets_of_project(&folders, &[], [&at(directory), &at(worktree)]);
            let netrc = at("home/.netrc").display().to_string();
            assert_eq!(asked.contains(&netrc), kept, "{directory}");
        }
        let ssh = at("home/.ssh").display().to_string();
        let home = at("home");
        let asked = secrets_of_project(&folders, std::slice::from_ref(&ssh), [&home, &home]);
        assert!(!asked.contains(&ssh) && !asked.is_empty());
    }

    /// Programs of a kind that is hidden keep their secrets in the same way under other names.
    #[test]
    fn secrets_of_the_same_kinds_are_hidden() {
        let root = tempfile::tempdir().unwrap();
        let folders = folders(root.path());
        for name in SECRETS_OF_KINDS {
            let file = folders.home.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "x").unwrap();
        }
        let hidden = HomeFiles::of(&folders, &[], &mut Listings::default()).secrets;
        for name in SECRETS_OF_KINDS {
            let file = folders.home.join(name);
            assert!(hidden.iter().any(|it| file.starts_with(it)), "{name}");
        }
    }

    const SECRETS_OF_KINDS: [&str; 28] = [
        ".config/rbw/config.json",
        ".local/share/lpass/x",
        ".vault_pass",
        ".config/borg/keys/k",
        ".local/share/mkcert/rootCA-key.pem",
        ".step/secrets/x",
        ".acme.sh/account.conf",
        ".openvpn/x.ovpn",
        ".config/wireguard/wg0.conf",
        ".mc/config.json",
        ".config/atlascli/config.toml",
        ".config/railway/config.json",
        ".config/turborepo/config.json",
        ".transifexrc",
        ".local/state/syncthing/key.pem",
        ".davfs2/secrets",
        ".muttrc",
        ".config/msmtp/config",
        ".offlineimaprc",
        ".config/aerc/accounts.conf",
        ".config/kaggle/kaggle.json",
        ".continue/config.json",
        ".codeium/config.json",
        ".config/weechat/sec.conf",
        ".near-credentials/x",
        ".config/nushell/history.txt",
        ".dbshell",
        ".lesshst",
    ];

    #[test]
    fn secrets_are_those_that_are_there_and_are_not_shown() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for folder in [
            "home/.ssh",
            "home/.aws",
            "xdg/gh",
            "home/.config/google-chrome-beta",
            "xdg/opencode/agent",
            "xdg/opencode/keys",
            "home/.opencode",
        ] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        let settings = [
            "home/.opencode/opencode.jsonc",
            "xdg/opencode/.env",
            "xdg/opencode/keys/acme",
            "xdg/opencode/opencode.json.bak",
        ];
        let others = [
            "agent/a.md",
            "agent/x.json",
            "AGENTS.md",
            "package.json",
            "bun.lock",
        ]
        .map(|it| format!("xdg/opencode/{it}"));
        for file in settings
            .iter()
            .copied()
            .chain(others.iter().map(String::as_str))
        {
            std::fs::write(at(file), "x").unwrap();
        }
        let folders = folders(root.path());
        let shown = [at("home/.ssh").display().to_string()];
        let names =
            |shown: &[String]| HomeFiles::of(&folders, shown, &mut Listings::default()).secrets;
        let listed = [
            "home/.aws",
            "home/.config/google-chrome-beta",
            "home/.ssh",
            "xdg/gh",
        ];
        let all: Vec<PathBuf> = listed.into_iter().chain(settings).map(at).collect();
        assert_eq!(names(&[]), all);
        let without_ssh: Vec<PathBuf> = all
            .into_iter()
            .filter(|it| *it != at("home/.ssh"))
            .collect();
        assert_eq!(names(&shown), without_ssh);
        assert_eq!(unknown(&folders, &shown), [""; 0]);
        let wrong = [at("home/.sshh").display().to_string()];
        assert_eq!(unknown(&folders, &wrong), [wrong[0].as_str()]);
    }

    /// Nothing of the state before one command is left for the next one.
    #[test]
    fn what_one_command_leaves_is_hidden_from_the_next() {
        let root = tempfile::tempdir().unwrap();
        let folders = folders(root.path());
        let at = |name: &str| folders.home.join(name);
        let hidden = || HomeFiles::of(&folders, &[], &mut Listings::default()).secrets;
        std::fs::create_dir_all(at("elsewhere/gh")).unwrap();
        assert!(hidden().is_empty());
        std::fs::create_dir_all(at(".config/gh")).unwrap();
        std::fs::write(at(".netrc"), "x").unwrap();
        assert_eq!(hidden(), [at(".config/gh"), at(".netrc")]);
        std::fs::remove_file(at(".netrc")).unwrap();
        std::fs::create_dir(at(".ssh")).unwrap();
        assert_eq!(hidden(), [at(".config/gh"), at(".ssh")]);
        // A folder above it becomes a link.
        std::fs::rename(at(".config"), at("moved")).unwrap();
        assert_eq!(hidden(), [at(".ssh")]);
        std::os::unix::fs::symlink("elsewhere", at(".config")).unwrap();
        assert_eq!(hidden(), [at(".config/gh"), at(".ssh")]);
    }

    #[test]
    fn a_cache_holds_no_home_and_no_entry_is_there_twice() {
        assert!(!is_a_cache(Path::new("/home/me"), Path::new("/home/me")));
        assert!(!is_a_cache(Path::new("/home"), Path::new("/home/me")));
        assert!(is_a_cache(
            Path::new("/home/me/.cache/x"),
            Path::new("/home/me/.cache")
        ));
        let startup: Vec<&str> = startup_entries().collect();
        let caches: Vec<&str> = cache_table::CACHES.iter().map(|cache| cache.path).collect();
        for list in [SECRETS, &startup, &caches] {
            let unique: BTreeSet<_> = list.iter().collect();
            assert_eq!(unique.len(), list.len());
            assert!(
                list.iter()
                    .all(|it| !it.starts_with('/') && !it.contains(".."))
            );
        }
    }
}

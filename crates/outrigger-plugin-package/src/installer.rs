//! Bun or npm as the installer of packages.
//!
//! Install scripts never run (OpenCode sets `ignoreScripts`), and the user's own npm configuration applies. Installers run in a
//! [`sandbox`], and the `.npmrc` of a package does not override the user's settings.

mod sandbox;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_sandbox::host_path::which_of_host;
use outrigger_sandbox::{Policy, Spawner, Spec, env, run};

use crate::error::PackageError;
use crate::growth::{Growing, watched};

/// Time limit of one installation.
const DEADLINE: Duration = Duration::from_secs(300);

/// Maximum size in bytes of the stored installer output.
const OUTPUT: usize = 64 * 1024;

/// Number of its last lines that go into an error.
const LINES: usize = 12;

/// Prefix of npm's failure lines, and how many of them go into an error.
const NPM: &str = "npm error";
const NPM_LINES: usize = 4;

/// Further variables that installers read: where the registry is and how to reach it.
const VARIABLES: &[&str] = &[
    "npm_config_*",
    "NPM_CONFIG_*",
    "NPM_TOKEN",
    "BUN_CONFIG_*",
    "BUN_INSTALL*",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "NODE_EXTRA_CA_CERTS",
];

/// npm settings that a package could change for its own preparation, and the variables that override them.
const SETTINGS: [(&str, &str); 2] = [
    ("registry", "npm_config_registry"),
    ("strict-ssl", "npm_config_strict_ssl"),
];

/// Time limit for npm to report one.
const ANSWER: Duration = Duration::from_secs(30);

/// Bun would make hard links into its cache, through which a program that may write there could change what is installed.
const COPY: &str = "--backend=copyfile";

/// Git runs this after it has checked out a repository. npm prepares a git dependency by installing in its clone, whose `.npmrc`
/// would send tokens of the user to a registry or a proxy of the package's choice.
const AFTER_CHECKOUT: &str = "#!/bin/sh\nrm -rf -- .[nN][pP][mM][rR][cC]\n";

/// A program that installs npm packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Installer {
    /// `bun add`.
    Bun(PathBuf),
    /// `npm install`.
    Npm(PathBuf),
}

impl Installer {
    /// Returns Bun if it is known or on `PATH`, else npm.
    #[must_use]
    pub fn find(bun: Option<&Path>) -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self::find_in(bun, &path)
    }

    /// Like [`Installer::find`], with the caller's search path.
    #[must_use]
    pub fn find_in(bun: Option<&Path>, path: &OsString) -> Option<Self> {
        bun.map(Path::to_path_buf)
            .or_else(|| which_of_host("bun", path))
            .map(Self::Bun)
            .or_else(|| which_of_host("npm", path).map(Self::Npm))
    }

    /// Returns `bun` or `npm`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bun(_) => "bun",
            Self::Npm(_) => "npm",
        }
    }

    fn program(&self) -> &Path {
        match self {
            Self::Bun(program) | Self::Npm(program) => program,
        }
    }

    /// Adds one package to the folder, which holds a `package.json`; `growing` is called with how much has come.
    ///
    /// # Errors
    /// `plugin.install` with the installer's last lines, `plugin.installer` when it could not be run.
    pub async fn add(
        &self,
        spawner: &Spawner,
        dir: &Path,
        spec: &str,
        package: &str,
        growing: Growing<'_>,
    ) -> Result<(), PackageError> {
        let spec_for = match self {
            Self::Bun(bun) => {
                let how = ["add", "--ignore-scripts", "--exact", "--no-progress", COPY];
                Spec::new(bun).args(how)
            }
            Self::Npm(npm) => npm_install(npm),
        };
        let command = spec_for.arg(package);
        self.run(spawner, command, dir, Some(package), spec, growing)
            .await
    }

    /// Installs what the folder's `package.json` and `package-lock.json` name.
    ///
    /// # Errors
    /// As [`Installer::add`].
    pub async fn install(
        &self,
        spawner: &Spawner,
        dir: &Path,
        spec: &str,
        growing: Growing<'_>,
    ) -> Result<(), PackageError> {
        let spec_for = match self {
            Self::Bun(bun) => Spec::new(bun).args([
                "install",
                "--ignore-scripts",
                "--frozen-lockfile",
                "--no-progress",
                COPY,
            ]),
            // Not `npm ci`: it refuses the whole lock when a registry lacks an optional package of another platform.
            Self::Npm(npm) => npm_install(npm),
        };
        self.run(spawner, spec_for, dir, None, spec, growing).await
    }

    async fn run(
        &self,
        spawner: &Spawner,
        command: Spec,
        dir: &Path,
        package: Option<&str>,
        spec: &str,
        growing: Growing<'_>,
    ) -> Result<(), PackageError> {
        let confined = Confined::new(self.program(), dir, package);
        let spawner = spawner.clone().with_policy(confined.policy.clone());
        let label = format!("{} for {spec}", self.name());
        let mut variables = confined.variables.clone();
        if let Self::Npm(npm) = self {
            variables.extend(users_settings(npm, &spawner, &confined).await);
        }
        let command = command.vars(variables).cwd(dir).label(label);
        let work = run(&spawner, command, DEADLINE, OUTPUT);
        let output = watched(dir, growing, work)
            .await
            .map_err(|error| PackageError::Sandbox {
                spec: spec.to_owned(),
                installer: self.name().to_owned(),
                message: error.to_string(),
            })?;
        if output.exit.success() && !output.timed_out {
            return Ok(());
        }
        let mut lines = last_lines(&output.stdout, &output.stderr);
        if output.timed_out {
            lines.push_str(&format!("\n(stopped after {} s)", DEADLINE.as_secs()));
        }
        Err(PackageError::Install {
            spec: spec.to_owned(),
            installer: self.name().to_owned(),
            lines,
        })
    }
}

/// The environment and the sandbox of one installation.
struct Confined {
    dir: PathBuf,
    variables: Vec<(OsString, OsString)>,
    policy: Policy,
}

impl Confined {
    /// Creates its folders; reads the disk.
    fn new(program: &Path, dir: &Path, package: Option<&str>) -> Self {
        // Next to the folder in which installations are staged.
        let folder = dir.ancestors().nth(2).unwrap_or(dir).join(".installer");
        let mut variables = env::of_host(VARIABLES);
        let caches = caches(&mut variables, &folder);
        defaults(&mut variables);
        let hooks = folder.join("hooks");
        if let Err(error) = write_hooks(&hooks) {
            tracing::warn!("cannot write {}: {error}", hooks.display());
            // Without the hook, no repository is fetched.
            variables.retain(|(name, _)| !name.eq_ignore_ascii_case("npm_config_git"));
            variables.push(("npm_config_git".into(), "/nonexistent/git".into()));
        }
        variables.extend(git_settings(&hooks));
        let temporary = folder.join("tmp");
        for made in caches.iter().chain([&temporary]) {
            if let Err(error) = std::fs::create_dir_all(made) {
                tracing::debug!("cannot create {}: {error}", made.display());
            }
        }
        let policy = sandbox::Installation {
            program,
            dir,
            package,
            environment: &variables,
            caches: &caches,
            hooks: &hooks,
            temporary,
        }
        .policy();
        Self {
            dir: dir.to_owned(),
            variables,
            policy,
        }
    }
}

/// Sets separate caches, unless the user's environment names some: commands of the model can write those in the home folder and
/// could plant another package there.
fn caches(variables: &mut Vec<(OsString, OsString)>, folder: &Path) -> Vec<PathBuf> {
    let caches = [
        ("BUN_INSTALL_CACHE_DIR", "bun"),
        ("npm_config_cache", "npm"),
    ];
    for (name, below) in caches {
        set_unless_there(variables, name, folder.join(below).into());
    }
    caches
        .iter()
        .flat_map(|(name, _)| values(variables, name))
        .collect()
}

/// Sets by environment, which overrides it, what a package's own `.npmrc` could set while npm prepares it: the program that is
/// run as git, and options that make an npm program load a file.
fn defaults(variables: &mut Vec<(OsString, OsString)>) {
    let path = variables.iter().find(|(name, _)| name == "PATH");
    let path = path.map(|(_, path)| path.clone()).unwrap_or_default();
    // Without git, nothing is run either.
    let git = which_of_host("git", &path).unwrap_or_else(|| "/usr/bin/git".into());
    set_unless_there(variables, "npm_config_git", git.into());
    // npm ignores an empty value.
    set_unless_there(
        variables,
        "npm_config_node_options",
        "--no-deprecation".into(),
    );
}

/// Writes the hook that git runs in a clone; the sandbox does not allow changing it.
fn write_hooks(hooks: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;

    std::fs::create_dir_all(hooks)?;
    let (hook, new) = (hooks.join("post-checkout"), hooks.join(".new"));
    std::fs::write(&new, AFTER_CHECKOUT)?;
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o700))?;
    std::fs::rename(new, hook)
}

/// Returns the variables with which git runs our hook, and no other.
fn git_settings(hooks: &Path) -> [(OsString, OsString); 3] {
    [
        ("GIT_CONFIG_COUNT", "1".into()),
        ("GIT_CONFIG_KEY_0", "core.hooksPath".into()),
        ("GIT_CONFIG_VALUE_0", hooks.into()),
    ]
    .map(|(name, value): (&str, OsString)| (name.into(), value))
}

/// Returns the user's npm settings as variables: a package's `.npmrc` cannot redirect its own dependencies.
async fn users_settings(
    npm: &Path,
    spawner: &Spawner,
    confined: &Confined,
) -> Vec<(OsString, OsString)> {
    let mut found = Vec::new();
    for (key, variable) in SETTINGS {
        if values(&confined.variables, variable).next().is_some() {
            continue;
        }
        let ask = Spec::new(npm)
            .args(["config", "get", key])
            .vars(confined.variables.clone())
            .cwd(&confined.dir);
        let answer = run(spawner, ask, ANSWER, OUTPUT).await;
        let said = answer
            .ok()
            .filter(|it| it.exit.success())
            .map(|it| String::from_utf8_lossy(&it.stdout).trim().to_owned());
        let one_word = |it: &String| !it.is_empty() && !it.contains(char::is_whitespace);
        found.extend(
            said.filter(one_word)
                .map(|it| (OsString::from(variable), OsString::from(it))),
        );
    }
    found
}

/// Returns the values of a variable, ignoring case as npm does.
fn values<'a>(
    variables: &'a [(OsString, OsString)],
    name: &'a str,
) -> impl Iterator<Item = PathBuf> + 'a {
    variables
        .iter()
        .filter(move |(it, _)| it.eq_ignore_ascii_case(name))
        .filter(|(_, value)| !value.is_empty())
        .map(|(_, value)| PathBuf::from(value))
}

fn set_unless_there(variables: &mut Vec<(OsString, OsString)>, name: &str, value: OsString) {
    if values(variables, name).next().is_none() {
        variables.push((name.into(), value));
    }
}

// A start waits for this. By default npm tries for more than a minute to reach an unreachable registry; one retry after a second
// is enough for a transient failure.
fn npm_install(npm: &Path) -> Spec {
    Spec::new(npm).args([
        "install",
        "--fetch-retries=1",
        "--fetch-retry-mintimeout=1000",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--no-update-notifier",
        "--save-exact",
        "--omit-lockfile-registry-resolved",
    ])
}

// Errors go to stderr in both; the rest of stdout is rarely more than a summary.
fn last_lines(stdout: &[u8], stderr: &[u8]) -> String {
    let text = if stderr.iter().all(u8::is_ascii_whitespace) {
        stdout
    } else {
        stderr
    };
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty() && !line.starts_with("npm warn"))
        .collect();
    if lines.iter().any(|line| line.starts_with(NPM)) {
        let causes = lines.iter().filter(|line| says_why(line)).take(NPM_LINES);
        return causes.copied().collect::<Vec<_>>().join("\n");
    }
    lines
        .get(lines.len().saturating_sub(LINES)..)
        .unwrap_or_default()
        .join("\n")
}

// Returns whether a line is the cause: npm prints it first, followed by a stack, a dump of the error and advice.
fn says_why(line: &str) -> bool {
    let Some(rest) = line.strip_prefix(NPM) else {
        return false;
    };
    let noise = ["   ", " }", " syscall ", " errno ", " A complete log"];
    !rest.is_empty() && !noise.iter().any(|start| rest.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_stderr_or_else_of_stdout() {
        let many: String = (0..40).map(|i| format!("line {i}\n")).collect();
        let tail = last_lines(b"out", many.as_bytes());
        assert!(
            tail.starts_with("line 28") && tail.ends_with("line 39"),
            "{tail}"
        );
        assert_eq!(last_lines(b"only out\n", b" \n"), "only out");
        let npm = b"npm warn old\nnpm error code ECONNREFUSED\nnpm error syscall connect\nnpm error errno ECONNREFUSED\n\
            npm error FetchError: request to http://x/zod failed\nnpm error     at f (x.js:1:1) {\n\
            npm error   code: 'ECONNREFUSED',\nnpm error }\nnpm error\nnpm error A complete log of this run is there\n";
        insta::assert_snapshot!(last_lines(b"", npm), @r"
        npm error code ECONNREFUSED
        npm error FetchError: request to http://x/zod failed
        ");
    }

    #[test]
    fn caches_are_our_own_unless_the_user_names_some() {
        let folder = Path::new("/cache/plugins/.installer");
        let mut variables = vec![("NPM_CONFIG_CACHE".into(), "/mine".into())];
        let found = caches(&mut variables, folder);
        assert_eq!(found, [&folder.join("bun"), Path::new("/mine")]);
        assert_eq!(variables.len(), 2);
        defaults(&mut variables);
        assert!(values(&variables, "npm_config_git").all(|it| it.is_absolute()));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the user's own git")]
    fn the_npmrc_of_a_clone_is_removed_before_npm_reads_it() {
        let root = tempfile::tempdir().unwrap();
        let (hooks, origin) = (root.path().join("hooks"), root.path().join("origin"));
        write_hooks(&hooks).unwrap();
        let git = |directory: &Path, arguments: &[&str]| {
            let ran = std::process::Command::new("git")
                .args(["-c", "user.name=x", "-c", "user.email=x@example.com"])
                .args(arguments)
                .current_dir(directory)
                .envs(git_settings(&hooks))
                .output()
                .unwrap();
            assert!(ran.status.success(), "{arguments:?} {ran:?}");
        };
        git(root.path(), &["init", "-q", "-b", "main", "origin"]);
        std::fs::write(origin.join(".npmrc"), "proxy=http://127.0.0.1:1/").unwrap();
        std::fs::write(origin.join("package.json"), "{}").unwrap();
        git(&origin, &["add", "-A"]);
        git(&origin, &["commit", "-qm", "x"]);
        // As npm does: a branch or the default one by `clone`, a commit by `fetch` and `checkout`.
        git(root.path(), &["clone", "-q", "origin", "cloned"]);
        git(root.path(), &["init", "-q", "fetched"]);
        let fetched = root.path().join("fetched");
        git(&fetched, &["fetch", "-q", "../origin", "main"]);
        git(&fetched, &["checkout", "-q", "FETCH_HEAD"]);
        for clone in ["cloned", "fetched"] {
            let clone = root.path().join(clone);
            assert!(clone.join("package.json").exists());
            assert!(!clone.join(".npmrc").exists(), "{}", clone.display());
        }
    }

    #[test]
    fn a_known_bun_comes_first_and_an_empty_path_has_nothing() {
        assert_eq!(
            Installer::find_in(Some(Path::new("/x/bun")), &"".into()),
            Some(Installer::Bun("/x/bun".into()))
        );
        assert_eq!(Installer::find_in(None, &"".into()), None);
    }
}

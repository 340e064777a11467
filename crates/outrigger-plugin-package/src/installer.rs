//! Bun or npm, as the program that fetches packages.
//!
//! Install scripts never run (facts 3.2: OpenCode sets `ignoreScripts`), and the user's own npm configuration holds.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_sandbox::host_path::which_of_host;
use outrigger_sandbox::{Spawner, Spec, env, run};

use crate::error::PackageError;
use crate::growth::{Growing, watched};

/// How long one installation may take.
const DEADLINE: Duration = Duration::from_secs(300);

/// How much of the installer's output is kept, in bytes.
const OUTPUT: usize = 64 * 1024;

/// How many of its last lines go into an error.
const LINES: usize = 12;

/// How npm begins a line about a failure, and how many of them go into an error.
const NPM: &str = "npm error";
const NPM_LINES: usize = 4;

/// Variables that installers read beyond the usual ones: where the registry is and how to reach it.
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

/// Bun would make hard links into its cache, through which a program that may write there changes what is installed.
const COPY: &str = "--backend=copyfile";

/// A program that installs npm packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Installer {
    /// `bun add`.
    Bun(PathBuf),
    /// `npm install`.
    Npm(PathBuf),
}

impl Installer {
    /// Bun where it is known or on `PATH`, else npm.
    #[must_use]
    pub fn find(bun: Option<&Path>) -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self::find_in(bun, &path)
    }

    /// As [`Installer::find`], with a search path of the caller's.
    #[must_use]
    pub fn find_in(bun: Option<&Path>, path: &OsString) -> Option<Self> {
        bun.map(Path::to_path_buf)
            .or_else(|| which_of_host("bun", path))
            .map(Self::Bun)
            .or_else(|| which_of_host("npm", path).map(Self::Npm))
    }

    /// `bun` or `npm`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bun(_) => "bun",
            Self::Npm(_) => "npm",
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
        self.run(spawner, spec_for.arg(package), dir, spec, growing)
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
        self.run(spawner, spec_for, dir, spec, growing).await
    }

    async fn run(
        &self,
        spawner: &Spawner,
        command: Spec,
        dir: &Path,
        spec: &str,
        growing: Growing<'_>,
    ) -> Result<(), PackageError> {
        let command = command
            .vars(env::of_host(VARIABLES))
            .vars(own_caches(dir))
            .cwd(dir)
            .label(format!("{} for {spec}", self.name()));
        let work = run(spawner, command, DEADLINE, OUTPUT);
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

/// Caches of our own, unless the user's environment names some: those in the home folder are written by commands of the model, which
/// could put another package there in advance.
fn own_caches(dir: &Path) -> Vec<(OsString, OsString)> {
    // Beside the folder in which installations are staged.
    let folder = dir.ancestors().nth(2).unwrap_or(dir).join(".installer");
    let caches = [
        ("BUN_INSTALL_CACHE_DIR", "bun"),
        ("npm_config_cache", "npm"),
    ];
    let unset = caches
        .iter()
        .filter(|(name, _)| std::env::var_os(name).is_none());
    unset
        .map(|(name, below)| (OsString::from(name), folder.join(below).into()))
        .collect()
}

// A start waits for this. By itself npm tries for more than a minute to reach a registry that cannot be reached; one more
// attempt a second later is enough for one that stumbles.
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

// Errors go to stderr in both; what stdout says behind them is seldom more than a summary.
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

// npm says what happened first; then come a stack, a dump of the error and advice.
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
        let found = own_caches(Path::new("/cache/plugins/.staging/x.1"));
        for (name, place) in found {
            assert!(std::env::var_os(&name).is_none());
            assert!(
                Path::new(&place).starts_with("/cache/plugins/.installer"),
                "{place:?}"
            );
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

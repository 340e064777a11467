//! The part of the user's environment that plugins get.
//!
//! Plugins are configured by variables of their own names, which no list here can know; OpenCode passes the whole
//! environment. Here a variable passes unless its name or value indicates a secret, a socket, or something that loads code
//! into a runtime. A variable that names a single file grants that file: it can be read and written, or created in its
//! folder; the modules of a package can be read. Folders, hidden paths and the system's own are never granted this way.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use outrigger_sandbox::env::is_forbidden;

/// Parts of names that indicate a secret or access to another program.
const SECRET: &[&str] = &[
    "KEY",
    "TOKEN",
    "SECRET",
    "PASS",
    "PWD",
    "CRED",
    "AUTH",
    "COOKIE",
    "SOCK",
    "DOCKER",
    "DBUS",
    "KUBE",
    "WEBHOOK",
    "DSN",
    "PRIVATE",
    "CERT",
    "JWT",
    "OTP",
    "SIGN",
    "CONNECTION",
    "CONNSTR",
    "BEARER",
    "_PAT",
    "_PW",
];
/// Names a file of public certificates, although its name looks like a secret. Behind a proxy that intercepts TLS, a plugin
/// reaches nothing without it.
const AUTHORITIES: &str = "NODE_EXTRA_CA_CERTS";
/// Parts of names whose files control other programs; the variable may pass, its file is not granted.
const STEERING: &[&str] = &[
    "CONFIG", "RC", "GIT", "NPM", "NODE", "BUN", "PYTHON", "PERL", "RUBY", "JAVA", "CARGO", "RUST",
    "GO", "SSL", "PG", "EXEC", "BIN", "EDITOR", "PAGER", "HIST", "PROFILE", "STARTUP", "ENV",
    "SHELL", "LOCAL",
];
/// Outrigger's own variables, and those that are replaced for every process.
const OURS: [&str; 3] = ["OUTRIGGER_", "XDG_", "OPENCODE_SERVER_"];
/// Variables that name folders of the system and of the user, not files for a plugin.
const PLACES: [&str; 9] = [
    "PATH", "HOME", "PWD", "OLDPWD", "SHELL", "TMPDIR", "MAIL", "_", "INFOPATH",
];
/// Folders that belong to the system.
const SYSTEM: [&str; 8] = [
    "/proc", "/sys", "/dev", "/etc", "/boot", "/run", "/var/run", "/usr",
];

/// Folders in which programs keep keys and settings, at any depth.
const PRIVATE: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".config",
    ".kube",
    ".docker",
    ".local",
    ".git",
    ".cargo",
    ".npm",
    ".mozilla",
    ".password-store",
];

/// Variables and files for plugin processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// Variables that pass, by name.
    pub variables: Vec<(OsString, OsString)>,
    /// Folders of packages; they are read with the modules around them, like a plugin's own.
    pub packages: Vec<PathBuf>,
    /// Files that can be read and written.
    pub write: Vec<PathBuf>,
    /// Files that can be read.
    pub read: Vec<PathBuf>,
    /// Files that do not exist yet; they are created empty, since a sandbox rule needs an existing file.
    pub make: Vec<PathBuf>,
}

impl Grants {
    /// Reads the grants from an environment.
    pub fn of(environment: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let variables: Vec<_> = environment
            .into_iter()
            .filter(|(name, value)| passes(name, value))
            .collect();
        let home = variables
            .iter()
            .find(|(name, _)| name == "HOME")
            .map(|(_, value)| PathBuf::from(value));
        let mut grants = Self::default();
        for (_, value) in variables.iter().filter(|(name, _)| names_a_file(name)) {
            grants.add(Path::new(value), home.as_deref());
        }
        let authorities = variables.iter().find(|(name, _)| name == AUTHORITIES);
        let authorities = authorities.map(|(_, path)| PathBuf::from(path));
        grants
            .read
            .extend(authorities.filter(|path| path.is_absolute() && path.is_file()));
        grants.variables = variables;
        grants
    }

    fn add(&mut self, path: &Path, home: Option<&Path>) {
        if !path.is_absolute() || !is_open_place(path, home) {
            return;
        }
        // A plugin may have replaced the file by a link: only a regular file is granted.
        let Some(folder) = path
            .parent()
            .filter(|folder| folder.canonicalize().is_ok_and(|real| real == *folder))
        else {
            return;
        };
        let in_package = path
            .ancestors()
            .any(|dir| dir.file_name() == Some(OsStr::new("node_modules")));
        match path.symlink_metadata() {
            Ok(meta) if meta.is_file() && in_package => self.packages.push(folder.to_path_buf()),
            Ok(_) if is_plain(path) => self.write.push(path.to_path_buf()),
            // A name without an extension is more likely a folder (`M2_HOME`, `GRADLE_HOME`).
            Err(error)
                if error.kind() == ErrorKind::NotFound
                    && !in_package
                    && path.extension().is_some() =>
            {
                self.make.push(path.to_path_buf());
            }
            _ => {}
        }
    }

    /// Creates the missing files, accessible to this user alone, and grants them.
    pub fn make(&mut self) {
        for path in std::mem::take(&mut self.make) {
            // `create_new` follows no link.
            let made = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path);
            match made {
                Ok(_) => self.write.push(path),
                // Another plugin's process that starts concurrently has the same variable.
                Err(error) if error.kind() == ErrorKind::AlreadyExists && is_plain(&path) => {
                    self.write.push(path);
                }
                Err(error) => tracing::info!(
                    "[plugin] {} is not granted: it cannot be made: {error}",
                    path.display()
                ),
            }
        }
    }
}

/// Returns whether a path is a regular file. An executable must not be rewritten: that would be a way out of the sandbox.
fn is_plain(path: &Path) -> bool {
    let meta = path.symlink_metadata();
    meta.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 == 0)
}

/// Returns whether a variable's name indicates a secret, or access to another program.
pub fn is_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    is_forbidden(name) || SECRET.iter().any(|part| upper.contains(part))
}

fn passes(name: &OsStr, value: &OsStr) -> bool {
    let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else {
        return false;
    };
    let upper = name.to_ascii_uppercase();
    let login_in_url = value
        .split_once("://")
        .is_some_and(|(_, rest)| rest.contains('@'));
    !is_forbidden(name)
        && !OURS.iter().any(|start| upper.starts_with(start))
        && (PLACES.contains(&name)
            || name == AUTHORITIES
            || !SECRET.iter().any(|part| upper.contains(part)))
        && !login_in_url
        && !looks_like_a_key(value)
}

/// Returns whether a value contains a login or a key, or is nothing else: long, of letters and digits, without a break.
/// Nobody types such a value, and few settings look like it.
fn looks_like_a_key(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let named = ["key=", "password=", "pwd=", "token=", "secret="]
        .iter()
        .any(|word| lower.contains(word));
    let login = value.split_once(':').is_some_and(|(_, rest)| {
        rest.split(['/', ' '])
            .next()
            .is_some_and(|host| host.contains('@'))
    });
    let blob = value.len() >= 20
        && !value.starts_with('/')
        && value
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_+=./".contains(&b))
        && value.bytes().any(|b| b.is_ascii_digit())
        && value.bytes().any(|b| b.is_ascii_alphabetic());
    named || login || blob
}

fn names_a_file(name: &OsStr) -> bool {
    let upper = name.to_string_lossy().to_ascii_uppercase();
    !PLACES.iter().any(|place| name == *place) && !STEERING.iter().any(|part| upper.contains(part))
}

/// Returns whether a path is open: not private to a program, not the system's, and without `..`.
fn is_open_place(path: &Path, home: Option<&Path>) -> bool {
    let hidden = |name: &OsStr| name.as_encoded_bytes().starts_with(b".");
    let private = path.components().any(|part| match part {
        Component::Normal(name) => PRIVATE.iter().any(|folder| name == *folder),
        Component::ParentDir => true,
        _ => false,
    });
    // Hidden paths in the home folder belong to a program, whatever their name.
    let of_home = home
        .and_then(|home| path.strip_prefix(home).ok())
        .and_then(|rest| rest.components().next())
        .is_some_and(|first| hidden(first.as_os_str()));
    !private
        && !of_home
        && !path.file_name().is_some_and(hidden)
        && !SYSTEM.iter().any(|root| path.starts_with(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_code_loaders_stay_out() {
        for (name, value, want) in [
            ("ACME_MODE", "fast", true),
            ("PATH", "/bin", true),
            ("NODE_EXTRA_CA_CERTS", "/a/ca.pem", true),
            ("CLIENT_CERT", "x", false),
            ("ANTHROPIC_API_KEY", "x", false),
            ("GITHUB_TOKEN", "x", false),
            ("DB_PASSWORD", "x", false),
            ("MY_CRED", "x", false),
            ("SSH_AUTH_SOCK", "/tmp/a/b", false),
            ("NODE_OPTIONS", "--require x", false),
            ("LD_PRELOAD", "x.so", false),
            ("OUTRIGGER_LOG", "debug", false),
            ("DATABASE_URL", "postgres://user:pass@host/db", false),
            ("ACME_URL", "https://example.invalid/", true),
            (
                "SLACK_WEBHOOK",
                "https://hooks.example.invalid/T0/B0",
                false,
            ),
            ("ACME_ID", "ghp1234567890abcdefghij", false),
            ("ACME_NAME", "a-long-but-plain-name-of-words", true),
        ] {
            assert_eq!(passes(OsStr::new(name), OsStr::new(value)), want, "{name}");
        }
    }

    #[test]
    fn named_files_are_granted_and_folders_are_not() {
        let root = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(root.path()).unwrap();
        for dir in [
            "out",
            "pkg/node_modules/acme/dist",
            ".ssh",
            ".work",
            "home/.acme",
            "home/notes",
        ] {
            std::fs::create_dir_all(base.join(dir)).unwrap();
        }
        for file in [
            "out/there.txt",
            "pkg/node_modules/acme/dist/index.js",
            ".ssh/key",
            "home/.acme/state",
            "out/tool",
        ] {
            std::fs::write(base.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink(base.join(".ssh/key"), base.join("out/link.txt")).unwrap();
        std::os::unix::fs::symlink(base.join(".ssh"), base.join("linked")).unwrap();
        let runs = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(base.join("out/tool"), runs).unwrap();
        let var = |name: &str, path: &str| (OsString::from(name), base.join(path).into_os_string());
        let grants = Grants::of([
            var("HOME", "home"),
            var("A", "out/there.txt"),
            var("B", "out/new.txt"),
            var("C", "pkg/node_modules/acme/dist/index.js"),
            var("D", ".work/new.txt"),
            var("E", "home/notes/new.txt"),
            // None of these: keys, hidden paths in the home folder, folders, programs, files that control another program,
            // the system's own, links, and folders that contain links.
            var("F", ".ssh/key"),
            var("G", "home/.acme/state"),
            var("H", "out"),
            var("I", "out/tool"),
            var("GIT_CONFIG_GLOBAL", "out/there.txt"),
            ("J".into(), "/etc/passwd".into()),
            var("K", "out/missing-folder"),
            var("L", "out/link.txt"),
            var("M", "linked/new.txt"),
        ]);
        assert_eq!(grants.write, [base.join("out/there.txt")]);
        let made =
            ["out/new.txt", ".work/new.txt", "home/notes/new.txt"].map(|path| base.join(path));
        assert_eq!(grants.make, made);
        let mut grants = grants;
        grants.make();
        assert!(
            made.iter()
                .all(|path| path.is_file() && grants.write.contains(path)),
            "{grants:?}"
        );
        assert_eq!(grants.packages, [base.join("pkg/node_modules/acme/dist")]);
    }

    /// Two processes that start concurrently have the same variable.
    #[test]
    fn a_file_that_another_process_has_made_meanwhile_is_granted_and_a_link_is_not() {
        let root = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(root.path()).unwrap();
        std::fs::write(base.join("secret"), "x").unwrap();
        let names = ["both.txt", "link.txt"].map(|name| base.join(name));
        let of = || {
            let named = names.iter().cloned().map(PathBuf::into_os_string);
            Grants::of(
                named
                    .zip(["B", "L"])
                    .map(|(path, name)| (name.into(), path)),
            )
        };
        let (mut one, mut other) = (of(), of());
        std::os::unix::fs::symlink(base.join("secret"), &names[1]).unwrap();
        one.make();
        other.make();
        assert_eq!(
            (&one.write[..], &other.write[..]),
            (&names[..1], &names[..1])
        );
    }
}

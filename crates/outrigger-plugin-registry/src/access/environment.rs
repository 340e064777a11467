//! The part of the user's environment that plugins get.
//!
//! Plugins are configured by variables of their own names, which no list here can know; OpenCode passes the whole
//! environment. Here a variable passes unless its name or value indicates a secret, a socket, or something that loads code
//! into a runtime. That a variable names a file is no grant: the user set it for another program. Only where the user's
//! settings name the variable for the plugin, the file can be read, and of a package its modules; a manifest is not the user's
//! word. Folders, hidden paths and the system's own are never granted this way.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
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
    "_PIN",
    "LOGIN",
    "MNEMONIC",
    "HEADER",
];
/// Starts of names whose values are settings of package managers and git, which hold credentials in forms of their own.
const CREDENTIALS: [&str; 3] = ["BUNDLE_", "GIT_CONFIG_", "NIX_CONFIG"];
/// Names a file of public certificates, although its name looks like a secret. Behind a proxy that intercepts TLS, a plugin
/// reaches nothing without it.
const AUTHORITIES: &str = "NODE_EXTRA_CA_CERTS";
/// Parts of names whose files control other programs; the variable may pass, its file is not granted.
const STEERING: &[&str] = &[
    "CONFIG", "RC", "GIT", "NPM", "NODE", "BUN", "PYTHON", "PERL", "RUBY", "JAVA", "CARGO", "RUST",
    "GO", "SSL", "PG", "EXEC", "BIN", "EDITOR", "PAGER", "HIST", "PROFILE", "STARTUP", "ENV",
    "SHELL", "LOCAL",
];
/// Outrigger's own variables, those that are replaced for every process, and the one that holds a whole configuration with
/// its keys, of which the `config` hook shows a plugin the redacted form.
const OURS: [&str; 4] = [
    "OUTRIGGER_",
    "XDG_",
    "OPENCODE_SERVER_",
    "OPENCODE_CONFIG_CONTENT",
];
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
    /// Files that can be read.
    pub read: Vec<PathBuf>,
}

impl Grants {
    /// Reads the grants from an environment. `is_named` says whether the user's settings name a variable for the plugin.
    pub fn of(
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        is_named: impl Fn(&str) -> bool,
    ) -> Self {
        let variables: Vec<_> = environment
            .into_iter()
            .filter(|(name, value)| passes(name, value))
            .collect();
        let home = variables
            .iter()
            .find(|(name, _)| name == "HOME")
            .map(|(_, value)| PathBuf::from(value));
        let mut grants = Self::default();
        let is_named = |name: &OsString| name.to_str().is_some_and(&is_named);
        let named = variables.iter().filter(|(name, _)| is_named(name));
        for (_, value) in named.filter(|(name, _)| names_a_file(name)) {
            grants.add(Path::new(value), home.as_deref());
        }
        let authorities = variables
            .iter()
            .find(|(name, _)| name == AUTHORITIES)
            .map(|(_, path)| PathBuf::from(path));
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
            Ok(_) if is_plain(path) => self.read.push(path.to_path_buf()),
            _ => {}
        }
    }
}

/// Returns whether a path is a regular file and no program.
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
        && !OURS
            .iter()
            .chain(&CREDENTIALS)
            .any(|start| upper.starts_with(start))
        && (PLACES.contains(&name)
            || name == AUTHORITIES
            || !SECRET.iter().any(|part| upper.contains(part)))
        && !login_in_url
        && !looks_like_a_key(value)
        && !outrigger_protocol::keys::contains_secret(value)
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
            ("MNEMONIC", "abandon abandon about", false),
            ("DB_LOGIN", "admin:hunter2", false),
            ("ACCESS_PIN", "4711", false),
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
            ("OPENCODE_CONFIG_CONTENT", "{}", false),
            ("NIX_CONFIG", "cores = 4", false),
            (
                "ACME_FLAGS",
                "--tokens github.com=ghp_abcdefghij0123456789",
                false,
            ),
            ("GIT_CONFIG_VALUE_0", "Authorization: x", false),
            ("GIT_CONFIG_PARAMETERS", "'a'='b'", false),
            ("BUNDLE_GEMS__ACME__COM", "cafe1234:hunter2", false),
            ("OTEL_HEADERS", "x-team: abc", false),
            ("ACME_PEM", "-----BEGIN PRIVATE KEY-----\nMIIE", false),
            (
                "ACME_ACCOUNT",
                "{\"key\":\"-----BEGIN PRIVATE KEY-----\"}",
                false,
            ),
            ("ACME_OPTIONS", "-u bob:hunter2hunter2", false),
            ("ACME_ARGS", "-p 8080 -v", true),
            ("ACME_MAP", "a:b", true),
            ("ACME_NAME", "a-long-but-plain-name-of-words", true),
        ] {
            assert_eq!(passes(OsStr::new(name), OsStr::new(value)), want, "{name}");
        }
    }

    #[test]
    fn files_of_named_variables_are_read_and_no_others() {
        let root = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(root.path()).unwrap();
        for dir in ["out", "pkg/node_modules/acme/dist", ".ssh", "home/.acme"] {
            std::fs::create_dir_all(base.join(dir)).unwrap();
        }
        for file in [
            "out/there.txt",
            "out/other.txt",
            "pkg/node_modules/acme/dist/index.js",
            ".ssh/key",
            "home/.acme/state",
            "out/tool",
        ] {
            std::fs::write(base.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink(base.join(".ssh/key"), base.join("out/link.txt")).unwrap();
        std::os::unix::fs::symlink(base.join("out"), base.join("linked")).unwrap();
        let runs = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(base.join("out/tool"), runs).unwrap();
        let var = |name: &str, path: &str| (OsString::from(name), base.join(path).into_os_string());
        let environment = [
            var("HOME", "home"),
            var("A", "out/there.txt"),
            var("C", "pkg/node_modules/acme/dist/index.js"),
            // None of these: keys, hidden paths in the home folder, folders, programs, files that control another program, the
            // system's own, what is not there, links, and folders that contain links.
            var("F", ".ssh/key"),
            var("G", "home/.acme/state"),
            var("H", "out"),
            var("I", "out/tool"),
            var("GIT_CONFIG_GLOBAL", "out/there.txt"),
            ("J".into(), "/etc/passwd".into()),
            var("B", "out/new.txt"),
            var("L", "out/link.txt"),
            var("M", "linked/there.txt"),
            // Set for other programs.
            var("MAKEFILES", "out/other.txt"),
            var("CMAKE_TOOLCHAIN_FILE", "out/other.txt"),
            var("X509_USER_PROXY", "out/other.txt"),
        ];
        let grants = Grants::of(environment.clone(), |name| {
            name.len() == 1 || name == "GIT_CONFIG_GLOBAL"
        });
        assert_eq!(grants.read, [base.join("out/there.txt")]);
        assert_eq!(grants.packages, [base.join("pkg/node_modules/acme/dist")]);
        assert!(!base.join("out/new.txt").exists());
        let grants = Grants::of(environment, |_| false);
        assert!(grants.read.is_empty() && grants.packages.is_empty());
        assert!(grants.variables.iter().any(|(name, _)| name == "MAKEFILES"));
    }
}

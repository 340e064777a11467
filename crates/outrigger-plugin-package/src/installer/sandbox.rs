//! The sandbox of an installer. npm prepares a git dependency by installing in its clone, where the package's own `.npmrc`
//! applies, and git reads the files in there: both process a stranger's files before the user has trusted them.
//!
//! It reads the system, the programs on `PATH`, the user's settings of npm, Bun and git, and what the request names; nothing else
//! of the home folder. It writes the folder that it fills, and its caches.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use outrigger_sandbox::{Calls, Loopback, Policy, host_path};

/// Settings in the home folder that installers read, and version managers whose shims are called `npm`.
const SETTINGS: &[&str] = &[
    ".npmrc",
    ".bunfig.toml",
    ".config/.bunfig.toml",
    ".gitconfig",
    ".config/git/config",
    ".config/git/ignore",
    ".config/git/attributes",
    ".config/mise",
    ".tool-versions",
    ".asdfrc",
    ".prototools",
    ".node-version",
    ".nvmrc",
];

/// Further system paths that installers read.
const SYSTEM: &[&str] = &["/opt", "/var/lib/ca-certificates", "/etc/resolv.conf"];

/// Variables that name a file or a folder to read.
const NAMED: &[&str] = &[
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NPM_CONFIG_USERCONFIG",
    "npm_config_userconfig",
    "NPM_CONFIG_GLOBALCONFIG",
    "npm_config_globalconfig",
    "NPM_CONFIG_CAFILE",
    "npm_config_cafile",
];

/// Folders in the home folder that contain files of more than one program.
const SHARED: &[&str] = &[
    ".local",
    ".config",
    ".cache",
    ".local/share",
    ".local/state",
];

/// Input for the sandbox of one installation.
pub(super) struct Installation<'a> {
    /// The installer.
    pub(super) program: &'a Path,
    /// The folder that it fills.
    pub(super) dir: &'a Path,
    /// Spec of the package, if it is a single one.
    pub(super) package: Option<&'a str>,
    /// Its environment.
    pub(super) environment: &'a [(std::ffi::OsString, std::ffi::OsString)],
    /// Its caches.
    pub(super) caches: &'a [PathBuf],
    /// The hooks of its git.
    pub(super) hooks: &'a Path,
    /// Its folder for temporary files.
    pub(super) temporary: PathBuf,
}

impl Installation<'_> {
    /// Returns the sandbox policy. Reads the disk.
    pub(super) fn policy(&self) -> Policy {
        let home = self
            .variable("HOME")
            .map(PathBuf::from)
            .unwrap_or_else(|| PathBuf::from("/nonexistent"));
        let settings = self.settings(&home);
        let mut policy = Policy::system();
        policy.read.extend(self.programs(&home));
        policy.read.extend(SYSTEM.iter().map(PathBuf::from));
        let named = NAMED.iter().filter_map(|name| self.variable(name));
        policy.read.extend(named.map(PathBuf::from));
        policy.read.extend(files_named_in(&settings, &home));
        policy.read.extend(settings);
        policy.read.push(self.hooks.to_owned());
        let local = self.package.and_then(local).map(|it| in_home(&it, &home));
        policy
            .read
            .extend(local.iter().flat_map(|it| neighbours(it, &home)));
        policy.read.extend(local);
        // Rules apply to the target of a path.
        let real: BTreeSet<PathBuf> = policy
            .read
            .iter()
            .filter_map(|it| it.canonicalize().ok())
            .collect();
        policy.read = real.into_iter().collect();
        policy.write.push(self.dir.to_owned());
        policy.write.extend(self.caches.iter().cloned());
        policy.write.push(self.temporary.clone());
        policy.temporary = Some(self.temporary.clone());
        policy.own_memory = true;
        policy.own_terminals = true;
        policy.loopback = Some(Loopback::new(self.ports(&home)));
        policy.calls = Some(Calls {
            udp: true,
            ..Calls::default()
        });
        policy
    }

    fn variable(&self, name: &str) -> Option<&OsStr> {
        let mut found = self.environment.iter().filter(|(it, _)| it == name);
        found.next().map(|(_, value)| value.as_os_str())
    }

    fn settings(&self, home: &Path) -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> = SETTINGS.iter().map(|it| home.join(it)).collect();
        if let Some(config) = self.variable("XDG_CONFIG_HOME").map(Path::new) {
            all.extend([".bunfig.toml", "git/config", "mise"].map(|it| config.join(it)));
        }
        all
    }

    /// Returns the folders of the programs that it may start, each with the folder that belongs to it: `~/.nvm/versions/node/v24`
    /// for its `bin`.
    fn programs(&self, home: &Path) -> Vec<PathBuf> {
        let path = self.variable("PATH").unwrap_or_default();
        let real = self.program.canonicalize().ok();
        let links = ["node", "npm", "git", "bun"];
        let real = links
            .iter()
            .filter_map(|name| host_path::which_of_host(name, path)?.canonicalize().ok())
            .chain(real);
        // npm itself: `<prefix>/lib/node_modules/npm/bin/npm-cli.js`.
        let real: Vec<PathBuf> = real
            .filter_map(|file| match modules_around(&file) {
                Some(modules) => modules.parent().map(|it| it.join("bin")),
                None => file.parent().map(Path::to_owned),
            })
            .collect();
        std::env::split_paths(path)
            .chain(self.program.parent().map(Path::to_owned))
            .chain(real)
            .filter(|it| it.is_absolute())
            .map(|it| whole(&it, home))
            .collect()
    }

    /// Returns the local ports that the user's settings name: a registry, a proxy.
    fn ports(&self, home: &Path) -> Vec<u16> {
        let values = self.environment.iter();
        let texts = values.map(|(_, value)| value.to_string_lossy().into_owned());
        let files = self
            .settings(home)
            .into_iter()
            .chain(
                NAMED
                    .iter()
                    .filter_map(|it| Some(PathBuf::from(self.variable(it)?))),
            )
            .filter_map(|it| outrigger_files::read_to_string(&it, 1 << 20).ok());
        let package = self.package.and_then(host).map(str::to_owned);
        let all: Vec<String> = texts.chain(files).chain(package).collect();
        all.iter().flat_map(|text| local_ports(text)).collect()
    }
}

/// Returns the outermost `node_modules` that contains a file.
fn modules_around(file: &Path) -> Option<&Path> {
    file.ancestors()
        .filter(|it| it.ends_with("node_modules"))
        .last()?
        .parent()
}

/// Returns the parent folder of one of programs, unless it also contains other files.
fn whole(folder: &Path, home: &Path) -> PathBuf {
    let around = folder.parent().filter(|it| it.parent().is_some());
    let is_shared = |it: &Path| home.starts_with(it) || SHARED.iter().any(|at| home.join(at) == it);
    match around.filter(|it| !is_shared(it)) {
        Some(around) => around.to_owned(),
        None if home.starts_with(folder) => home.join(".nothing"),
        None => folder.to_owned(),
    }
}

/// Returns what comes after the name: the `file:/x.tgz` of `@scope/name@file:/x.tgz`, the whole of an address without
/// a name.
fn request(package: &str) -> &str {
    let scope = usize::from(package.starts_with('@'));
    match package.get(scope..).and_then(|it| it.split_once('@')) {
        Some((name, request)) if !name.contains(':') => request,
        _ => package,
    }
}

/// Returns the file or folder that a request names: `name@file:/x.tgz`, `name@git+file:///repository`. An address of
/// another scheme names none, whatever it contains.
fn local(package: &str) -> Option<PathBuf> {
    let request = request(package);
    let path = request.strip_prefix("git+").unwrap_or(request);
    let path = path.strip_prefix("file:")?;
    let path = path.split('#').next().unwrap_or(path);
    let path = path.strip_prefix("//").unwrap_or(path);
    Some(PathBuf::from(path))
}

/// Returns the host of a request's address, with its port.
fn host(package: &str) -> Option<&str> {
    let (_, rest) = request(package).split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    authority.rsplit('@').next()
}

/// Returns the siblings of a user's package, which it may name (`"dependencies": {"x": "file:../x"}`): never all of the home
/// folder, and nothing of its hidden folders.
fn neighbours(path: &Path, home: &Path) -> Option<PathBuf> {
    let folder = path.parent()?;
    let below = folder.strip_prefix(home).ok();
    let first = below.and_then(|it| it.iter().next());
    let is_hidden = first.is_some_and(|it| it.as_encoded_bytes().starts_with(b"."));
    (!is_hidden && !home.starts_with(folder)).then(|| whole(folder, home))
}

fn in_home(path: &Path, home: &Path) -> PathBuf {
    match path.strip_prefix("~") {
        Ok(below) => home.join(below),
        Err(_) => path.to_owned(),
    }
}

/// Returns the certificates and keys for a registry that npm's settings name.
fn files_named_in(settings: &[PathBuf], home: &Path) -> Vec<PathBuf> {
    let npmrc = settings.iter().filter(|it| it.ends_with(".npmrc"));
    let texts: Vec<String> = npmrc
        .filter_map(|it| outrigger_files::read_to_string(it, 1 << 20).ok())
        .collect();
    texts
        .iter()
        .flat_map(|text| text.lines())
        .filter_map(|line| {
            let (key, value) = line.split_once('=')?;
            let value = value.trim().trim_matches('"').replace("${HOME}", "~");
            let ends = ["cafile", "certfile", "keyfile"];
            let is_file = ends.iter().any(|end| key.trim().ends_with(end));
            is_file.then(|| in_home(Path::new(&value), home))
        })
        .filter(|it| it.is_absolute())
        .collect()
}

/// Returns the local ports in URLs of a text.
fn local_ports(text: &str) -> Vec<u16> {
    let hosts = ["localhost:", "127.0.0.1:", "[::1]:"];
    hosts
        .iter()
        .flat_map(|host| {
            text.match_indices(host).filter_map(|(at, found)| {
                let rest = text.get(at + found.len()..)?;
                let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                rest.get(..digits)?.parse().ok()
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn programs_come_with_their_folder_and_never_with_the_home_folder() {
        let home = Path::new("/home/u");
        for (folder, expected) in [
            ("/usr/local/bin", "/usr/local"),
            ("/bin", "/bin"),
            (
                "/home/u/.nvm/versions/node/v24/bin",
                "/home/u/.nvm/versions/node/v24",
            ),
            ("/home/u/.asdf/shims", "/home/u/.asdf"),
            (
                "/home/u/.local/share/mise/shims",
                "/home/u/.local/share/mise",
            ),
            ("/home/u/.local/bin", "/home/u/.local/bin"),
            ("/home/u/bin", "/home/u/bin"),
            ("/home/u", "/home/u/.nothing"),
            ("/home", "/home/u/.nothing"),
        ] {
            assert_eq!(
                whole(Path::new(folder), home),
                Path::new(expected),
                "{folder}"
            );
        }
    }

    #[test]
    // Attempts 1411 and 1412 of docs/bypass/attempts.toml.
    fn what_a_request_and_settings_name() {
        for (package, expected) in [
            ("a@1.2", None),
            ("a@file:/x/a.tgz", Some("/x/a.tgz")),
            ("a@git+file:///r#main", Some("/r")),
            ("@s/a@file:///x/a.tgz", Some("/x/a.tgz")),
            ("file:/x/a@b/c.tgz", Some("/x/a@b/c.tgz")),
            ("a@https://h/a.tgz", None),
            ("a@https://h/a.tgz?file:/x/a.tgz", None),
            ("a@https://h/a.tgz#file:/x/a.tgz", None),
            ("a@git+https://h/file:/x/a.git", None),
            ("https://h/b@file:/x", None),
        ] {
            assert_eq!(local(package), expected.map(PathBuf::from), "{package}");
        }
        for (package, expected) in [
            ("a@1.2", vec![]),
            ("a@http://localhost:81/a.tgz", vec![81]),
            ("a@git+ssh://git@127.0.0.1:22/r", vec![22]),
            ("a@https://h/a.tgz?http://localhost:6379", vec![]),
            ("a@https://h/http://localhost:6379", vec![]),
            ("a@https://h\\@localhost:6379/", vec![]),
            ("a@https://localhost:6379@h/", vec![]),
            ("a@https://h/#@localhost:6379", vec![]),
        ] {
            let ports = host(package).map_or(Vec::new(), local_ports);
            assert_eq!(ports, expected, "{package}");
        }
        let text =
            "registry=http://localhost:4873/\n@a:registry=https://127.0.0.1:80\nx=localhost:no";
        assert_eq!(local_ports(text), [4873, 80]);
        let dir = tempfile::tempdir().unwrap();
        let npmrc = dir.path().join(".npmrc");
        fs::write(
            &npmrc,
            "cafile=~/ca.pem\n//h/:keyfile = \"/k\"\nregistry=/x\n",
        )
        .unwrap();
        let found = files_named_in(&[npmrc], Path::new("/home/u"));
        assert_eq!(found, [Path::new("/home/u/ca.pem"), Path::new("/k")]);
    }
}

//! Hosts, files and programs that the machine policy forbids for everyone. No project, user, manifest or grant loosens
//! it.

use std::path::{Component, Path};

use serde::{Deserialize, Deserializer};

use crate::policy::pattern::matches;

mod places;

pub use places::{Leads, TooMany, expand};

/// `[forbid]` of a policy. Several policies add up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Forbid {
    /// Patterns of hosts and addresses, as in `[plugins.NAME] hosts`.
    #[serde(deserialize_with = "hosts")]
    pub hosts: Vec<String>,
    /// Files that must be neither read nor changed.
    pub files: Vec<FilePattern>,
    /// Programs that must not be run.
    pub programs: Vec<ProgramPattern>,
}

impl Forbid {
    /// Adds what another policy forbids.
    pub fn add(&mut self, other: &Self) {
        self.hosts.extend(other.hosts.iter().cloned());
        self.files.extend(other.files.iter().cloned());
        self.programs.extend(other.programs.iter().cloned());
    }

    /// Inserts the home folder.
    pub(crate) fn at_home(&mut self, home: &Path) {
        let programs = self.programs.iter_mut().filter_map(|it| match it {
            ProgramPattern::File(pattern) => Some(pattern),
            ProgramPattern::Name(_) => None,
        });
        for pattern in self.files.iter_mut().chain(programs) {
            if let Some(rest) = pattern.text.strip_prefix("~/") {
                *pattern = FilePattern::new(format!("{}/{rest}", home.display()));
            }
        }
    }

    /// Returns whether nothing is forbidden.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty() && !self.is_about_files()
    }

    /// Returns whether files or programs are forbidden, which only a sandbox can enforce for processes.
    #[must_use]
    pub fn is_about_files(&self) -> bool {
        !(self.files.is_empty() && self.programs.is_empty())
    }

    /// Returns the pattern that forbids a file or folder of a project, or elsewhere. `path` is absolute.
    #[must_use]
    pub fn file(&self, project: &Path, path: &Path) -> Option<&str> {
        let pattern = self.files.iter().find(|it| it.holds(project, path))?;
        Some(&pattern.text)
    }

    /// Returns the pattern that forbids a program by the path of its file.
    #[must_use]
    pub fn program(&self, path: &Path) -> Option<&str> {
        let name = path.file_name()?.to_string_lossy();
        self.programs.iter().find_map(|it| match it {
            ProgramPattern::Name(pattern) => matches(pattern, &name).then_some(pattern.as_str()),
            ProgramPattern::File(pattern) => {
                let holds = pattern.holds(Path::new("/"), path);
                holds.then_some(pattern.text.as_str())
            }
        })
    }

    /// Describes it, one line each.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let line = |what: &str, list: Vec<&str>| {
            (!list.is_empty()).then(|| format!("{what} forbidden: {}", list.join(", ")))
        };
        let programs = self.programs.iter().map(ProgramPattern::as_str);
        let lines = [
            line("hosts", self.hosts.iter().map(String::as_str).collect()),
            line(
                "files",
                self.files.iter().map(FilePattern::as_str).collect(),
            ),
            line("programs", programs.collect()),
        ];
        lines.into_iter().flatten().collect()
    }
}

/// A path pattern; `*` matches any characters of one name. One that begins with `/` or `~/` is about that path, any
/// other about the project, at any depth. A folder stands for everything in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePattern {
    text: String,
    parts: Vec<String>,
}

impl FilePattern {
    fn new(text: String) -> Self {
        let whole = text.trim_end_matches("/*").trim_end_matches('/');
        let parts = whole
            .split('/')
            .filter(|it| !it.is_empty() && *it != ".")
            .map(str::to_owned)
            .collect();
        Self { text, parts }
    }

    /// Returns the pattern as written, with the home folder inserted.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether it is about one path, and not about projects.
    #[must_use]
    pub fn is_absolute(&self) -> bool {
        self.text.starts_with('/')
    }

    /// Returns one pattern for each component of a path, the outermost first.
    #[must_use]
    pub fn parts(&self) -> &[String] {
        &self.parts
    }

    /// Returns whether one of its parts matches a name.
    #[must_use]
    pub fn part_fits(part: &str, name: &str) -> bool {
        matches(part, name)
    }

    fn holds(&self, project: &Path, path: &Path) -> bool {
        let path = if self.is_absolute() {
            path
        } else {
            match path.strip_prefix(project) {
                Ok(below) => below,
                Err(_) => return false,
            }
        };
        let names: Vec<_> = path
            .components()
            .filter_map(|it| match it {
                Component::Normal(name) => Some(name.to_string_lossy()),
                _ => None,
            })
            .collect();
        let mut windows = names.windows(self.parts.len().max(1));
        let fits = |window: &[std::borrow::Cow<'_, str>]| {
            let mut pairs = self.parts.iter().zip(window);
            pairs.all(|(part, name)| matches(part, name))
        };
        if self.is_absolute() {
            windows.next().is_some_and(fits)
        } else {
            windows.any(fits)
        }
    }
}

impl<'de> Deserialize<'de> for FilePattern {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let pattern = Self::new(String::deserialize(from)?);
        let leads_up = pattern.parts.iter().any(|part| part == "..");
        let everything = pattern
            .parts
            .iter()
            .all(|part| part.trim_matches('*').is_empty());
        let why = match (everything || pattern.text == "~", leads_up) {
            (true, _) => "names everything there is",
            (_, true) => "leads upwards",
            _ if pattern.parts.iter().any(|part| part.contains("**")) => {
                "has `**` in it: a name fits at whatever depth of a project, and a folder stands for all in it"
            }
            _ => return Ok(pattern),
        };
        Err(serde::de::Error::custom(format!(
            "{:?} {why}: use `.env`, `*.pem`, `secrets/`, `~/.ssh/` or `/srv/*/keys`",
            pattern.text
        )))
    }
}

/// A program pattern: by name, at any path, or by the path of its file. `*` as in [`FilePattern`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramPattern {
    /// By name.
    Name(String),
    /// By path.
    File(FilePattern),
}

impl ProgramPattern {
    /// Returns the pattern as written, with the home folder inserted.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::File(pattern) => pattern.as_str(),
        }
    }
}

impl<'de> Deserialize<'de> for ProgramPattern {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let named = !text.trim_matches('*').is_empty() && !text.contains(char::is_whitespace);
        if named && !text.contains('/') {
            return Ok(Self::Name(text));
        }
        let pattern = FilePattern::new(text);
        let fixed = pattern.text.starts_with('/') || pattern.text.starts_with("~/");
        let odd = |part: &String| part == ".." || part.contains("**");
        let plain = !pattern.parts.is_empty() && !pattern.parts.iter().any(odd);
        if named && fixed && plain {
            Ok(Self::File(pattern))
        } else {
            Err(serde::de::Error::custom(format!(
                "{:?} is not a program: use `curl`, `python*` or `/opt/tools/bin/x`, without arguments",
                pattern.text
            )))
        }
    }
}

/// One pattern; if it is invalid, the error has its position in the file.
struct Host(String);

impl<'de> Deserialize<'de> for Host {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.*:[]/".contains(c);
        if !text.is_empty() && text.chars().all(fits) && !text.contains("//") {
            Ok(Self(text))
        } else {
            Err(serde::de::Error::custom(format!(
                "{text:?} is not a host: use `api.example.com`, `*.example.com`, `*`, an address or `10.0.0.0/8`, with or without `:PORT`"
            )))
        }
    }
}

fn hosts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let list = Vec::<Host>::deserialize(from)?;
    Ok(list.into_iter().map(|it| it.0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Forbid, String> {
        crate::read_toml::<Forbid>(text, "policy.toml")
            .map_err(|error| error.to_string())
            .map(|mut it| {
                it.at_home(Path::new("/home/me"));
                it
            })
    }

    #[test]
    fn what_is_forbidden_adds_up_and_is_reported() {
        let mut one =
            read("hosts = [\"*.evil.com\", \"10.0.0.0/8\"]\nfiles = [\"*.pem\"]").unwrap();
        one.add(
            &read("hosts = [\"[::1]:80\"]\nfiles = [\"~/.ssh/\"]\nprograms = [\"nc\", \"/opt/x\"]")
                .unwrap(),
        );
        assert_eq!(
            one.lines(),
            [
                "hosts forbidden: *.evil.com, 10.0.0.0/8, [::1]:80",
                "files forbidden: *.pem, /home/me/.ssh/",
                "programs forbidden: nc, /opt/x",
            ]
        );
        assert_eq!(Forbid::default().lines(), Vec::<String>::new());
        assert!(Forbid::default().is_empty() && !one.is_empty());
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_place() {
        for (text, want) in [
            (
                "hosts = [\"ok\",\n \"http://x\"]",
                "policy.toml:1:9: not valid TOML: \"http://x\" is not a host",
            ),
            ("hosts = [\"a b\"]", "\"a b\" is not a host"),
            ("hosts = [\"\"]", "\"\" is not a host"),
            ("files = [\"\"]", "\"\" names everything there is"),
            ("files = [\"*\"]", "\"*\" names everything there is"),
            ("files = [\"/\"]", "\"/\" names everything there is"),
            (
                "files = [\"~/*\", \"/*\"]",
                "\"/*\" names everything there is",
            ),
            ("files = [\"../x\"]", "\"../x\" leads upwards"),
            ("files = [\"**/x\"]", "\"**/x\" has `**` in it"),
            ("programs = [\"\"]", "\"\" is not a program"),
            ("programs = [\"*\"]", "\"*\" is not a program"),
            ("programs = [\"/\"]", "\"/\" is not a program"),
            ("programs = [\"rm -rf\"]", "\"rm -rf\" is not a program"),
            ("programs = [\"bin/x\"]", "\"bin/x\" is not a program"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(want), "{text}: {error}");
        }
    }

    #[test]
    fn which_files() {
        for (pattern, path, forbidden) in [
            (".env", "/work/.env", true),
            (".env", "/work/deep/down/.env", true),
            (".env", "/work/.env/inside", true),
            (".env", "/work/.env.local", false),
            (".env", "/elsewhere/.env", false),
            ("*.pem", "/work/a/b.pem", true),
            ("*.pem", "/work/a/b.pem.txt", false),
            ("secrets/*", "/work/a/secrets", true),
            ("secrets/", "/work/secrets/x/y", true),
            ("secrets/*.key", "/work/secrets/a.key", true),
            ("secrets/*.key", "/work/secrets/deep/a.key", false),
            ("~/.ssh", "/home/me/.ssh/id", true),
            ("~/.ssh", "/home/you/.ssh/id", false),
            ("/home/*/.ssh/", "/home/you/.ssh", true),
            ("/home/*/.ssh/", "/home/you/deep/.ssh", false),
            ("/work/x", "/work/x", true),
            ("/work/x", "/work/xy", false),
            ("/work/x", "/a/work/x", false),
        ] {
            let forbid = read(&format!("files = [{pattern:?}]")).unwrap();
            let found = forbid.file(Path::new("/work"), Path::new(path));
            assert_eq!(found.is_some(), forbidden, "{pattern} {path}");
        }
    }

    #[test]
    fn which_programs() {
        let forbid = read("programs = [\"curl\", \"python*\", \"/opt/*/tool\"]").unwrap();
        for (path, pattern) in [
            ("/usr/bin/curl", Some("curl")),
            ("/work/curl", Some("curl")),
            ("/usr/bin/python3.12", Some("python*")),
            ("/opt/a/tool", Some("/opt/*/tool")),
            ("/opt/tool", None),
            ("/usr/bin/curlie", None),
        ] {
            assert_eq!(forbid.program(Path::new(path)), pattern, "{path}");
        }
    }
}

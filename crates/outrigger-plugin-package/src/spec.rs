//! Entries of the `plugin` list: a file, a folder, or an npm package.

use std::path::{Path, PathBuf};

use crate::error::PackageError;

/// Specs that OpenCode ignores because the program itself has their function. Matches specs that contain one of these.
pub const DEPRECATED: &[&str] = &["opencode-copilot-auth"];

/// Source of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file or folder.
    Path(PathBuf),
    /// A package from npm.
    Npm {
        /// Name that it is installed under.
        name: String,
        /// Version, range, tag or other npm request; `latest` for a bare name, as in OpenCode.
        request: String,
    },
}

impl Source {
    /// Reads a spec. Relative paths are relative to the folder of `declared_in`, the configuration file that names them.
    ///
    /// # Errors
    /// `plugin.deprecated` for plugins that OpenCode dropped, `plugin.spec` for what is neither a path nor an npm
    /// package with a name.
    pub fn parse(spec: &str, declared_in: &Path) -> Result<Self, PackageError> {
        if DEPRECATED.iter().any(|name| spec.contains(name)) {
            return Err(PackageError::Deprecated {
                spec: spec.to_owned(),
            });
        }
        if let Some(rest) = spec.strip_prefix("file://") {
            let path =
                percent_decode(rest).ok_or_else(|| bad(spec, "the file URL is not valid UTF-8"))?;
            return Ok(Self::Path(absolute(&path, declared_in)));
        }
        if is_path(spec) {
            return Ok(Self::Path(absolute(spec, declared_in)));
        }
        let (name, request) = split_npm(spec);
        if !valid_name(name) {
            return Err(bad(spec, "it is neither a path nor an npm package name"));
        }
        if request.chars().any(char::is_control) {
            return Err(bad(spec, "the version holds control characters"));
        }
        let request = if request.is_empty() {
            "latest"
        } else {
            request
        };
        Ok(Self::Npm {
            name: name.to_owned(),
            request: request.to_owned(),
        })
    }

    /// Returns the name to list the plugin by before its module has been read: the package, else the file or folder.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::Npm { name, .. } => name.clone(),
            Self::Path(path) => {
                let stem = path
                    .file_stem()
                    .unwrap_or(path.as_os_str())
                    .to_string_lossy();
                let parent = path
                    .parent()
                    .and_then(Path::file_name)
                    .map(|p| p.to_string_lossy());
                match parent {
                    // `my-plugin` is a better name for `my-plugin/index.ts`.
                    Some(parent) if stem == "index" => parent.into_owned(),
                    _ => stem.into_owned(),
                }
            }
        }
    }
}

fn bad(spec: &str, reason: &str) -> PackageError {
    PackageError::Spec {
        spec: spec.to_owned(),
        reason: reason.to_owned(),
    }
}

fn is_path(spec: &str) -> bool {
    let bytes = spec.as_bytes();
    let drive = matches!(bytes, [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    spec == "."
        || spec == ".."
        || spec.starts_with("./")
        || spec.starts_with("../")
        || spec.starts_with('/')
        || drive
}

fn absolute(path: &str, declared_in: &Path) -> PathBuf {
    let base = declared_in.parent().unwrap_or(declared_in);
    outrigger_sandbox::paths::resolve(base, Path::new(path))
}

// `npm:name@1` and `alias@npm:name@1` are forms of npm-package-arg; a scope's `@` is not a separator.
fn split_npm(spec: &str) -> (&str, &str) {
    let spec = spec.strip_prefix("npm:").unwrap_or(spec);
    let scope = usize::from(spec.starts_with('@'));
    match spec.get(scope..).and_then(|rest| rest.split_once('@')) {
        Some((name, request)) => (spec.get(..scope + name.len()).unwrap_or_default(), request),
        None => (spec, ""),
    }
}

// The name becomes a folder name, so only npm's own alphabet is allowed.
fn valid_name(name: &str) -> bool {
    let (scope, bare) = match name.strip_prefix('@') {
        Some(scoped) => match scoped.split_once('/') {
            Some((scope, bare)) => (Some(scope), bare),
            None => return false,
        },
        None => (None, name),
    };
    let word = |word: &str| {
        !word.is_empty()
            && word.len() <= 214
            && !word.starts_with(['.', '_', '-'])
            && word
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~'))
    };
    scope.is_none_or(word) && word(bare)
}

fn percent_decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            out.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).ok()
}

/// Returns the `file://` URL of an absolute path, escaping everything that the WHATWG rules escape in a path, so that a
/// folder named `a#b` or `50%` is found again.
#[must_use]
pub fn file_url(path: &Path) -> String {
    let mut url = String::from("file://");
    for byte in path.to_string_lossy().bytes() {
        match byte {
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b'/'
            | b'-'
            | b'_'
            | b'.'
            | b'~'
            | b'@'
            | b':'
            | b'!'
            | b'$'
            | b'&'
            | b'\''
            | b'('
            | b')'
            | b'*'
            | b'+'
            | b','
            | b';'
            | b'=' => url.push(char::from(byte)),
            _ => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_protocol::diagnose::Diagnose;
    use proptest::prelude::*;

    #[test]
    fn specs_by_table() {
        let declared = Path::new("/home/u/project/opencode.json");
        for (spec, want) in [
            ("demo", "npm demo latest"),
            ("demo@1.2.3", "npm demo 1.2.3"),
            ("demo@^1", "npm demo ^1"),
            ("demo@next", "npm demo next"),
            ("@scope/demo", "npm @scope/demo latest"),
            ("@scope/demo@2", "npm @scope/demo 2"),
            ("npm:demo@1", "npm demo 1"),
            ("alias@npm:@scope/demo@1", "npm alias npm:@scope/demo@1"),
            ("demo@file:/tmp/demo.tgz", "npm demo file:/tmp/demo.tgz"),
            ("./demo.ts", "path /home/u/project/demo.ts"),
            ("../demo", "path /home/u/demo"),
            ("/opt/demo.js", "path /opt/demo.js"),
            ("file:///opt/a%20b.js", "path /opt/a b.js"),
            ("file://./x.js", "path /home/u/project/x.js"),
            ("@scope", "plugin.spec"),
            ("a/../../b", "plugin.spec"),
            ("@a/..", "plugin.spec"),
            (".hidden", "plugin.spec"),
            ("", "plugin.spec"),
            ("github:user/repo", "plugin.spec"),
            ("opencode-copilot-auth@4", "plugin.deprecated"),
            ("x-opencode-copilot-auth", "plugin.deprecated"),
        ] {
            let got = match Source::parse(spec, declared) {
                Ok(Source::Npm { name, request }) => format!("npm {name} {request}"),
                Ok(Source::Path(path)) => format!("path {}", path.display()),
                Err(error) => error.code().to_owned(),
            };
            assert_eq!(got, want, "{spec}");
        }
    }

    #[test]
    fn labels() {
        for (path, want) in [
            ("/a/guard.ts", "guard"),
            ("/a/guard", "guard"),
            ("/a/guard/index.js", "guard"),
        ] {
            assert_eq!(Source::Path(path.into()).label(), want);
        }
    }

    proptest! {
        #[test]
        fn a_path_survives_its_url(path in "/[a-z #%?é\\[\\]\"<>{}^|`]{1,30}") {
            let parsed = Source::parse(&file_url(Path::new(&path)), Path::new("/x/y.json")).unwrap();
            prop_assert_eq!(parsed, Source::Path(outrigger_sandbox::paths::resolve(Path::new("/"), Path::new(&path))));
        }
    }
}

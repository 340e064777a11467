//! The list of plugins: what was declared where, without duplicates, in OpenCode's order.

use std::path::{Path, PathBuf};

use outrigger_protocol::manifest::MANIFEST_FILE;
use serde::Serialize;
use serde_json::{Value, json};

use crate::paths;

/// A plugin to load.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginSpec {
    /// An npm spec (`name`, `name@range`, `alias@npm:name`) or a `file://` URL.
    pub spec: String,
    /// The second element of a `[spec, options]` entry.
    pub options: Option<Value>,
    /// The file (or, for a discovered plugin, the config folder) that names it; `OPENCODE_CONFIG_CONTENT` for the
    /// environment variable.
    pub declared_in: PathBuf,
    /// Whether it was declared or found.
    pub source: PluginSource,
    /// Its owner.
    pub scope: PluginScope,
}

/// How a plugin came onto the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PluginSource {
    /// From a `plugin` array.
    Config,
    /// A file in the `plugin` or `plugins` folder of a config folder.
    Auto,
    /// A file in the `tool` or `tools` folder of a config folder: tools and nothing else (B5).
    Tool,
    /// Command hooks of a `.claude/settings.json`: processes that are started for each call.
    Command,
    /// A folder with an `outrigger.plugin.toml` below one of the roots (D1).
    Manifest,
}

/// A declared entry that is not loaded, with the reason: none is skipped silently.
#[derive(Clone, Debug, PartialEq)]
pub struct SkippedPlugin {
    /// The entry.
    pub plugin: PluginSpec,
    /// Reason.
    pub reason: SkipReason,
}

/// The variable by which `outrigger plugin bisect` passes the plugins to exclude: a JSON array of [`PluginSpec::key`]s.
pub const LEFT_OUT: &str = "OUTRIGGER_LEAVE_OUT";

/// Why an entry is not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// `--pure` or `OPENCODE_PURE`.
    Pure,
    /// `outrigger plugin bisect` tests the command without it ([`LEFT_OUT`]).
    LeftOut,
    /// The managed policy does not allow it.
    Policy {
        /// The policy's file.
        file: PathBuf,
    },
    /// Another entry for the same plugin is used: the last one, whatever its version.
    Overridden {
        /// That entry.
        spec: String,
        /// Where it stands.
        declared_in: PathBuf,
    },
    /// The snapshot of plugins excludes it (D2).
    NotAdmitted {
        /// What it is called.
        id: String,
        /// Name of the reason.
        reason: String,
        /// Description of the reason.
        why: String,
        /// How to change that.
        remedy: String,
    },
    /// A later file of the global folder has its own list, which replaces that of this one.
    Replaced,
}

/// Owner of a plugin, as in OpenCode's `plugin_origins`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PluginScope {
    /// The user's or the administrator's.
    Global,
    /// The project's.
    Local,
}

impl PluginSpec {
    /// Returns the identity of the plugin: the URL of a file, else the npm package's name.
    pub fn key(&self) -> String {
        if self.spec.starts_with("file://") {
            self.spec.clone()
        } else {
            package_name(&self.spec)
        }
    }

    /// Returns the identity of a plugin that is a file.
    #[must_use]
    pub fn key_of_file(file: &Path) -> String {
        paths::file_url(file)
    }

    /// Returns its form in the merged document's `plugin`.
    pub(crate) fn to_value(&self) -> Value {
        match &self.options {
            Some(options) => json!([self.spec, options]),
            None => json!(self.spec),
        }
    }

    /// Returns its form in the merged document's `plugin_origins`, where the global files are represented by their folder.
    pub(crate) fn to_origin(&self, global_dir: &Path) -> Value {
        let global =
            self.source == PluginSource::Config && self.declared_in.parent() == Some(global_dir);
        let source = if global {
            global_dir
        } else {
            &self.declared_in
        };
        json!({ "spec": self.to_value(), "source": source, "scope": self.scope })
    }
}

/// Keeps the last of several entries for the same plugin, in its position. Returns the others, in their order.
pub(crate) fn deduplicate(list: &mut Vec<PluginSpec>) -> Vec<PluginSpec> {
    let mut seen = std::collections::BTreeSet::new();
    let mut lost = Vec::new();
    for plugin in std::mem::take(list).into_iter().rev() {
        if seen.insert(plugin.key()) {
            list.push(plugin);
        } else {
            lost.push(plugin);
        }
    }
    list.reverse();
    lost.reverse();
    lost
}

/// Returns the package name in an npm spec, without version; the spec itself if it names none (a git or tarball URL). An
/// alias (`mine@npm:real`) is identified by its own name.
pub fn package_name(spec: &str) -> String {
    let name = |text: &str| {
        let from = usize::from(text.starts_with('@'));
        let end = text
            .get(from..)
            .and_then(|rest| rest.find('@'))
            .map_or(text.len(), |at| at + from);
        let name = text.get(..end).unwrap_or_default();
        let bare = match name.strip_prefix('@').map(|rest| rest.split_once('/')) {
            Some(Some((scope, bare))) if !scope.is_empty() => bare,
            Some(_) => "",
            None => name,
        };
        (!bare.is_empty() && !bare.contains(['/', ':'])).then(|| name.to_owned())
    };
    name(spec.strip_prefix("npm:").unwrap_or(spec)).unwrap_or_else(|| spec.into())
}

/// Resolves a spec: a path (`./x`, `../x`, `/x`, `~/x`, `file://…`) becomes a `file://` URL, relative to the declaring file's
/// folder; a folder without `package.json` becomes its index file. Others are unchanged.
pub(crate) fn resolve(spec: &str, folder: &Path, home: &Path) -> String {
    let path = match paths::from_file_url(spec) {
        Some(path) => path,
        None if spec.starts_with('.') || spec.starts_with('/') || spec.starts_with("~/") => {
            paths::expand(spec, folder, home)
        }
        None => return spec.into(),
    };
    if path.is_dir()
        && !["package.json", MANIFEST_FILE]
            .iter()
            .any(|file| path.join(file).exists())
    {
        let index = ["ts", "tsx", "js", "mjs", "cjs"]
            .map(|extension| path.join(format!("index.{extension}")));
        if let Some(index) = index.into_iter().find(|index| index.is_file()) {
            return paths::file_url(&index);
        }
    }
    // A URL stays byte for byte as written: it is the key for finding duplicates.
    if spec.starts_with("file://") {
        spec.into()
    } else {
        paths::file_url(&path)
    }
}

/// Returns the files that a config folder contributes: `{plugin,plugins}/*.{ts,js}` or `{tool,tools}/*.{ts,js}`, as URLs.
pub(crate) fn discover(folder: &Path, names: [&str; 2]) -> Vec<String> {
    let mut out = Vec::new();
    for name in names {
        let wanted = |path: &Path| paths::has_extension(path, &["ts", "js"]);
        out.extend(
            paths::files_below(&folder.join(name), false, &wanted)
                .iter()
                .map(|path| paths::file_url(path)),
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (spec, expected) in [
            ("name", "name"),
            ("name@1.2.3", "name"),
            ("name@latest", "name"),
            ("name@^1 || ^2", "name"),
            ("@scope/name", "@scope/name"),
            ("@scope/name@1", "@scope/name"),
            ("npm:name@1", "name"),
            ("npm:@scope/name", "@scope/name"),
            ("alias@npm:name@1", "alias"),
            ("name@https://x/y.tgz", "name"),
            ("name@git+https://x/y.git", "name"),
            ("user/repo", "user/repo"),
            ("github:user/repo", "github:user/repo"),
            ("https://x/y.tgz", "https://x/y.tgz"),
            ("@scope", "@scope"),
            ("", ""),
        ] {
            assert_eq!(package_name(spec), expected, "{spec}");
        }
    }

    #[test]
    fn resolves_against_the_declaring_folder() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        std::fs::create_dir_all(at("index")).unwrap();
        std::fs::create_dir_all(at("package")).unwrap();
        std::fs::write(at("index/index.js"), "").unwrap();
        std::fs::write(at("package/package.json"), "{}").unwrap();
        let url = |path: &str| paths::file_url(&at(path));
        let home = Path::new("/h");
        for (spec, expected) in [
            ("name@1", "name@1".to_owned()),
            ("./x.ts", url("x.ts")),
            (
                "../x.ts",
                paths::file_url(&dir.path().parent().unwrap().join("x.ts")),
            ),
            ("/abs/./x y.ts", "file:///abs/x%20y.ts".into()),
            ("~/x.ts", "file:///h/x.ts".into()),
            ("file:///abs/../x.ts", "file:///abs/../x.ts".into()),
            ("./index", url("index/index.js")),
            ("./package", url("package")),
            ("./missing", url("missing")),
        ] {
            assert_eq!(resolve(spec, dir.path(), home), expected, "{spec}");
        }
        assert_eq!(
            resolve(&url("index"), Path::new("/"), home),
            url("index/index.js")
        );
    }

    fn plugin(spec: &str, options: Option<i32>) -> PluginSpec {
        PluginSpec {
            spec: spec.into(),
            options: options.map(Value::from),
            declared_in: "f".into(),
            source: PluginSource::Config,
            scope: PluginScope::Local,
        }
    }

    #[test]
    fn last_wins_and_keeps_its_place() {
        for (given, expected) in [
            (&["a", "b", "a"][..], &["b", "a"][..]),
            (&["a@1", "b", "a@2", "c"], &["b", "a@2", "c"]),
            (&["@s/a@1", "a", "@s/a"], &["a", "@s/a"]),
            (
                &["file:///x.ts", "file:///y.ts", "file:///x.ts"],
                &["file:///y.ts", "file:///x.ts"],
            ),
            (&["x", "file:///x"], &["x", "file:///x"]),
            (&[], &[]),
        ] {
            let mut list: Vec<PluginSpec> = given.iter().map(|spec| plugin(spec, None)).collect();
            deduplicate(&mut list);
            let specs: Vec<&str> = list.iter().map(|plugin| plugin.spec.as_str()).collect();
            assert_eq!(specs, expected);
        }
        let mut list = vec![plugin("a", Some(1)), plugin("a@2", None)];
        deduplicate(&mut list);
        assert_eq!(
            list,
            [plugin("a@2", None)],
            "options travel with the winner"
        );
    }
}

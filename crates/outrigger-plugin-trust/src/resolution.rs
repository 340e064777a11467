//! Static resolution of imports: by path, by `node_modules`, by the `imports` and `exports` of the nearest `package.json`, by
//! `paths` and `baseUrl` of the nearest `tsconfig.json`. If there are several conditions, all of them are followed. A file that a
//! runtime finds and this does not is not run (`outrigger-js/host/integrity.mjs`).

use std::path::{Component, Path, PathBuf};

use outrigger_plugin_package::find_file;
use serde_json::Value;

/// Maximum length of a chain of `extends`.
const MAX_EXTENDS: usize = 8;
/// Files that map names for TypeScript.
const TSCONFIGS: [&str; 2] = ["tsconfig.json", "jsconfig.json"];

/// Target of an import.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Imported {
    /// A source, or a data file.
    File(PathBuf),
    /// The folder of a package.
    Package(PathBuf),
}

/// Returns the absolute path of an import without `..`. Links are not followed.
pub(crate) fn named_path(folder: &Path, import: &str) -> Option<PathBuf> {
    let path = plain(import)?;
    let path = path.strip_prefix("file://").unwrap_or(path);
    let is_path = path.starts_with('.') || path.starts_with('/');
    is_path.then(|| outrigger_sandbox::paths::resolve(folder, Path::new(path)))
}

/// Returns the possible targets of an import in a file of this folder.
pub(crate) fn imported(folder: &Path, import: &str) -> Vec<Imported> {
    if let Some(wanted) = named_path(folder, import) {
        return source_file(&wanted)
            .map(Imported::File)
            .into_iter()
            .collect();
    }
    let mut found = of_manifest(folder, import);
    let Some(name) = plain(import) else {
        return found;
    };
    found.extend(of_tsconfigs(folder, name));
    found.extend(
        package_name(name)
            .and_then(|it| module(folder, &it))
            .map(Imported::Package),
    );
    found
}

/// Returns the paths that a source names relative to itself other than by an import: scripts of workers, and other files beside it
/// (`new Worker("./x.js")`, `new URL("x.wasm", import.meta.url)`).
pub(crate) fn beside(folder: &Path, source: &str) -> Vec<PathBuf> {
    let starts = ["new Worker(", "new URL("];
    let quoted = starts.into_iter().flat_map(|start| {
        source.match_indices(start).filter_map(move |(at, _)| {
            let rest = source.get(at + start.len()..)?.trim_start();
            let quote = rest.chars().next().filter(|c| "\"'`".contains(*c))?;
            let (name, after) = rest.get(1..)?.split_once(quote)?;
            let of_source = after.trim_start().strip_prefix(',');
            let of_source = of_source.is_some_and(|it| it.trim_start().starts_with("import.meta"));
            (of_source || start == "new Worker(").then_some(name)
        })
    });
    quoted
        .filter_map(|name| plain(name.strip_prefix("./").unwrap_or(name)))
        .filter(|name| !name.starts_with('/') && !name.contains("://"))
        .filter_map(|name| source_file(&outrigger_sandbox::paths::resolve(folder, Path::new(name))))
        .collect()
}

/// Returns the folder of a package, as seen from a folder.
pub(crate) fn module(from: &Path, name: &str) -> Option<PathBuf> {
    let plain = |c: Component<'_>| matches!(c, Component::Normal(_));
    if name.is_empty() || !Path::new(name).components().all(plain) {
        return None;
    }
    from.ancestors()
        .map(|folder| folder.join("node_modules").join(name))
        .find(|folder| folder.is_dir())
}

/// Returns the file of this name in the folder or the nearest one above it.
pub(crate) fn nearest(folder: &Path, name: &str) -> Option<PathBuf> {
    folder
        .ancestors()
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Reads a `package.json`; null if it is unreadable.
pub(crate) fn manifest(file: &Path) -> Value {
    let text = outrigger_files::read(file, outrigger_files::SETTINGS).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Returns the files that map names for the sources of a folder: the nearest of each name, and those that they extend.
pub(crate) fn tsconfigs(folder: &Path) -> Vec<PathBuf> {
    TSCONFIGS
        .iter()
        .filter_map(|name| nearest(folder, name))
        .flat_map(|file| chain(&file).into_iter().map(|(file, _)| file))
        .collect()
}

/// Returns a name without its query. A leading `#` marks one of the `imports` of a package.
fn plain(import: &str) -> Option<&str> {
    let mut parts = import.split(['?', '#']);
    parts.next().filter(|it| !it.is_empty())
}

fn package_name(import: &str) -> Option<String> {
    let mut parts = import.split('/');
    let first = parts.next()?;
    if first.starts_with('@') {
        Some(format!("{first}/{}", parts.next()?))
    } else {
        Some(first.to_owned())
    }
}

/// Returns the file for a path. TypeScript names the output of a source: `./x.js` for `x.ts`.
fn source_file(wanted: &Path) -> Option<PathBuf> {
    let typed = || {
        ["ts", "tsx", "mts", "cts"]
            .iter()
            .map(|extension| wanted.with_extension(extension))
            .find(|file| file.is_file())
    };
    find_file(wanted).or_else(typed)
}

/// Resolves the names that a package defines for its content: `#name`, and its own name.
fn of_manifest(folder: &Path, import: &str) -> Vec<Imported> {
    let Some(file) = nearest(folder, "package.json") else {
        return Vec::new();
    };
    let root = file.parent().unwrap_or(folder);
    let manifest = manifest(&file);
    let mut targets = Vec::new();
    if import.starts_with('#') {
        let names = manifest.get("imports").and_then(Value::as_object);
        for (pattern, value) in names.into_iter().flatten() {
            targets.extend(star(pattern, import).map(|it| leaves(value, it)));
        }
    }
    let own = manifest.get("name").and_then(Value::as_str);
    if let Some(rest) = own.and_then(|own| import.strip_prefix(own))
        && (rest.is_empty() || rest.starts_with('/'))
    {
        let wanted = format!(".{rest}");
        match manifest.get("exports") {
            Some(Value::Object(names)) if names.keys().any(|it| it.starts_with('.')) => {
                for (pattern, value) in names {
                    targets.extend(star(pattern, &wanted).map(|it| leaves(value, it)));
                }
            }
            Some(value) if rest.is_empty() => targets.push(leaves(value, "")),
            _ => {}
        }
    }
    let resolve = |target: String| {
        if target.starts_with('.') {
            source_file(&root.join(&target)).map(Imported::File)
        } else {
            package_name(&target)
                .and_then(|it| module(root, &it))
                .map(Imported::Package)
        }
    };
    targets.into_iter().flatten().filter_map(resolve).collect()
}

/// Returns all targets, under any condition, with `*` replaced.
fn leaves(value: &Value, star: &str) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.replace('*', star)],
        Value::Array(list) => list.iter().flat_map(|it| leaves(it, star)).collect(),
        Value::Object(list) => list.values().flat_map(|it| leaves(it, star)).collect(),
        _ => Vec::new(),
    }
}

/// Returns what the `*` of a pattern matches in a name; empty if the pattern has none and equals the name.
fn star<'a>(pattern: &str, name: &'a str) -> Option<&'a str> {
    match pattern.split_once('*') {
        None => (pattern == name).then_some(""),
        Some((start, end)) => name.strip_prefix(start)?.strip_suffix(end),
    }
}

/// Resolves by `paths`, and below `baseUrl`.
fn of_tsconfigs(folder: &Path, name: &str) -> Vec<Imported> {
    let mut found = Vec::new();
    for file in TSCONFIGS.iter().filter_map(|it| nearest(folder, it)) {
        let chain = chain(&file);
        let option = |key: &str| {
            chain.iter().find_map(|(file, settings)| {
                let value = settings.get("compilerOptions")?.get(key)?;
                Some((file.parent()?, value))
            })
        };
        let base = option("baseUrl");
        let base = base.and_then(|(folder, base)| Some(folder.join(base.as_str()?)));
        if let Some(base) = &base {
            found.extend(source_file(&base.join(name)));
        }
        let Some((of_paths, Value::Object(paths))) = option("paths") else {
            continue;
        };
        let root = base.as_deref().unwrap_or(of_paths);
        for (pattern, value) in paths {
            let targets = star(pattern, name)
                .map(|it| leaves(value, it))
                .into_iter()
                .flatten();
            found.extend(targets.filter_map(|it| source_file(&root.join(it))));
        }
    }
    found.into_iter().map(Imported::File).collect()
}

/// Returns a settings file and those that it extends, the nearest first.
fn chain(file: &Path) -> Vec<(PathBuf, Value)> {
    let mut all: Vec<(PathBuf, Value)> = Vec::new();
    let mut waiting = vec![file.to_owned()];
    while let Some(file) = waiting.pop() {
        if all.len() >= MAX_EXTENDS || all.iter().any(|(known, _)| *known == file) {
            continue;
        }
        let text =
            outrigger_files::read_to_string(&file, outrigger_files::SETTINGS).unwrap_or_default();
        let settings: Value = jsonc_parser::parse_to_serde_value(&text, &Default::default())
            .ok()
            .flatten()
            .unwrap_or_default();
        let extended = settings.get("extends").map(|it| leaves(it, ""));
        let folder = file.parent().unwrap_or(&file);
        let extended = extended.unwrap_or_default();
        waiting.extend(extended.iter().filter_map(|it| settings_file(folder, it)));
        all.push((file, settings));
    }
    all
}

/// Resolves `extends`: a path, or a file of a package.
fn settings_file(folder: &Path, name: &str) -> Option<PathBuf> {
    let wanted = match named_path(folder, name) {
        Some(path) => path,
        None => {
            let package = package_name(name)?;
            let rest = name.get(package.len()..)?.trim_start_matches('/');
            module(folder, &package)?.join(rest)
        }
    };
    let mut with_extension = wanted.clone().into_os_string();
    with_extension.push(".json");
    let all = [
        wanted.clone(),
        with_extension.into(),
        wanted.join("tsconfig.json"),
    ];
    all.into_iter().find(|it| it.is_file())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn names_lead_where_a_runtime_finds_them() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for (name, text) in [
            (
                "package.json",
                r##"{"name":"own","imports":{"#in":"./lib/in.ts","#all/*":{"node":"./lib/*.js","default":"./lib/*.ts"},"#dep":"dep"},
                    "exports":{".":"./lib/main.ts","./sub":{"import":"./lib/sub.ts"}}}"##,
            ),
            (
                "tsconfig.json",
                "{ // mine\n \"extends\": \"./base\", \"compilerOptions\": { \"paths\": { \"@/*\": [\"./lib/*\"], \"one\": [\"none.ts\", \"lib/one.ts\"] } }, }",
            ),
            ("base.json", r#"{"compilerOptions":{"baseUrl":"."}}"#),
            ("node_modules/dep/index.js", ""),
            ("lib/in.ts", ""),
            ("lib/main.ts", ""),
            ("lib/sub.ts", ""),
            ("lib/one.ts", ""),
            ("lib/both.js", ""),
            ("lib/both.ts", ""),
            ("lib/deep/index.ts", ""),
        ] {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), text).unwrap();
        }
        for (import, leads_to) in [
            ("../lib/in", "lib/in.ts"),
            ("../lib/in.js?x", "lib/in.ts"),
            ("../none", ""),
            ("#in", "lib/in.ts"),
            ("#all/both", "lib/both.js lib/both.ts"),
            ("#dep", "node_modules/dep"),
            ("own", "lib/main.ts"),
            ("own/sub", "lib/sub.ts"),
            ("owner", ""),
            ("@/deep", "lib/deep/index.ts"),
            ("one", "lib/one.ts"),
            ("lib/in", "lib/in.ts"),
            ("dep", "node_modules/dep"),
            ("dep/sub", "node_modules/dep"),
        ] {
            let mut found: Vec<String> = imported(&at("plugin"), import)
                .into_iter()
                .map(|it| match it {
                    Imported::File(path) | Imported::Package(path) => {
                        let path = path.strip_prefix(dir.path()).unwrap();
                        path.display().to_string().replace("/./", "/")
                    }
                })
                .collect();
            found.sort();
            assert_eq!(found.join(" "), leads_to, "{import}");
        }
        for (text, leads_to) in [
            ("new Worker(new URL('./in.ts', import.meta.url))", "in.ts"),
            ("new Worker( \"./deep/index.ts\" )", "deep/index.ts"),
            ("new URL(`both.js?v=1`,\n  import.meta.url)", "both.js"),
            (
                "new Worker(new URL('main.js', import.meta.url).href)",
                "main.ts",
            ),
            ("new URL('in.ts', server)", ""),
            ("new URL('https://a.example/in.ts', import.meta.url)", ""),
            ("new URL('/lib/in.ts', import.meta.url)", ""),
            ("new Worker(name)", ""),
        ] {
            let wanted: Vec<PathBuf> = leads_to
                .split_whitespace()
                .map(|it| at("lib").join(it))
                .collect();
            assert_eq!(beside(&at("lib"), text), wanted, "{text}");
        }
        assert_eq!(
            tsconfigs(&at("plugin")),
            [at("tsconfig.json"), at("base.json")]
        );
    }
}

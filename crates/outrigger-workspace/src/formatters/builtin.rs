//! The formatters that OpenCode knows, and when each applies.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A built-in formatter.
pub(super) struct BuiltIn {
    pub(super) name: &'static str,
    pub(super) extensions: &'static [&'static str],
    pub(super) command: &'static [&'static str],
    pub(super) when: When,
}

/// What a project must have, besides the program, for a formatter to apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Always,
    /// One of these files, from the working directory up to the project's root.
    File(&'static [&'static str]),
    /// A dependency of this name in a `package.json` on the way up; the program may be in `node_modules/.bin`.
    Npm(&'static str),
    /// One of these files; the program may be in `node_modules/.bin`.
    NpmFile(&'static [&'static str]),
    /// `laravel/pint` in a `composer.json`; the program is the project's.
    Pint,
    /// Ruff's own configuration, or a mention in the project's list of packages.
    Ruff,
}

const WEB: &[&str] = &[
    ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".html", ".htm", ".css", ".scss",
    ".sass", ".less", ".vue", ".svelte", ".json", ".jsonc", ".yaml", ".yml", ".toml", ".xml",
    ".md", ".mdx", ".graphql", ".gql",
];
const RUBY: &[&str] = &[".rb", ".rake", ".gemspec", ".ru"];

/// The list. Omitted are `oxfmt` (experimental in OpenCode), `air` and `uv`, whose programs must be run to identify
/// them.
#[rustfmt::skip]
pub(super) const BUILT_IN: &[BuiltIn] = &[
    BuiltIn { name: "gofmt", extensions: &[".go"], command: &["gofmt", "-w", "$FILE"], when: When::Always },
    BuiltIn { name: "mix", extensions: &[".ex", ".exs", ".eex", ".heex", ".leex", ".neex", ".sface"], command: &["mix", "format", "$FILE"], when: When::Always },
    BuiltIn { name: "prettier", extensions: WEB, command: &["prettier", "--write", "$FILE"], when: When::Npm("prettier") },
    BuiltIn { name: "biome", extensions: WEB, command: &["biome", "format", "--write", "$FILE"], when: When::NpmFile(&["biome.json", "biome.jsonc"]) },
    BuiltIn { name: "zig", extensions: &[".zig", ".zon"], command: &["zig", "fmt", "$FILE"], when: When::Always },
    BuiltIn { name: "clang-format", extensions: &[".c", ".cc", ".cpp", ".cxx", ".c++", ".h", ".hh", ".hpp", ".hxx", ".h++", ".ino", ".C", ".H"], command: &["clang-format", "-i", "$FILE"], when: When::File(&[".clang-format"]) },
    BuiltIn { name: "ktlint", extensions: &[".kt", ".kts"], command: &["ktlint", "-F", "$FILE"], when: When::Always },
    BuiltIn { name: "ruff", extensions: &[".py", ".pyi"], command: &["ruff", "format", "$FILE"], when: When::Ruff },
    BuiltIn { name: "rubocop", extensions: RUBY, command: &["rubocop", "--autocorrect", "$FILE"], when: When::Always },
    BuiltIn { name: "standardrb", extensions: RUBY, command: &["standardrb", "--fix", "$FILE"], when: When::Always },
    BuiltIn { name: "htmlbeautifier", extensions: &[".erb", ".html.erb"], command: &["htmlbeautifier", "$FILE"], when: When::Always },
    BuiltIn { name: "dart", extensions: &[".dart"], command: &["dart", "format", "$FILE"], when: When::Always },
    BuiltIn { name: "ocamlformat", extensions: &[".ml", ".mli"], command: &["ocamlformat", "-i", "$FILE"], when: When::File(&[".ocamlformat"]) },
    BuiltIn { name: "terraform", extensions: &[".tf", ".tfvars"], command: &["terraform", "fmt", "$FILE"], when: When::Always },
    BuiltIn { name: "latexindent", extensions: &[".tex"], command: &["latexindent", "-w", "-s", "$FILE"], when: When::Always },
    BuiltIn { name: "gleam", extensions: &[".gleam"], command: &["gleam", "format", "$FILE"], when: When::Always },
    BuiltIn { name: "shfmt", extensions: &[".sh", ".bash"], command: &["shfmt", "-w", "$FILE"], when: When::Always },
    BuiltIn { name: "nixfmt", extensions: &[".nix"], command: &["nixfmt", "$FILE"], when: When::Always },
    BuiltIn { name: "rustfmt", extensions: &[".rs"], command: &["rustfmt", "$FILE"], when: When::Always },
    BuiltIn { name: "pint", extensions: &[".php"], command: &["pint", "$FILE"], when: When::Pint },
    BuiltIn { name: "ormolu", extensions: &[".hs"], command: &["ormolu", "-i", "$FILE"], when: When::Always },
    BuiltIn { name: "cljfmt", extensions: &[".clj", ".cljs", ".cljc", ".edn"], command: &["cljfmt", "fix", "--quiet", "$FILE"], when: When::Always },
    BuiltIn { name: "dfmt", extensions: &[".d"], command: &["dfmt", "-i", "$FILE"], when: When::Always },
];

impl When {
    /// Returns whether it applies in a project.
    pub(super) fn holds(&self, directory: &Path, worktree: &Path) -> bool {
        let files = |name: &str| {
            up(directory, worktree)
                .map(|dir| dir.join(name))
                .filter(|f| f.is_file())
                .collect::<Vec<_>>()
        };
        let named_in = |file: &str, fields: [&str; 2], name: &str| {
            files(file).iter().any(|path| {
                let text = outrigger_files::read_to_string(path, outrigger_files::SETTINGS)
                    .unwrap_or_default();
                let value: Value = serde_json::from_str(&text).unwrap_or_default();
                fields.iter().any(|field| {
                    value
                        .get(field)
                        .is_some_and(|list| list.get(name).is_some())
                })
            })
        };
        match self {
            Self::Always => true,
            Self::File(names) | Self::NpmFile(names) => {
                names.iter().any(|name| !files(name).is_empty())
            }
            Self::Npm(name) => named_in("package.json", ["dependencies", "devDependencies"], name),
            Self::Pint => named_in("composer.json", ["require", "require-dev"], "laravel/pint"),
            Self::Ruff => {
                let says = |name: &str, word: &str| {
                    files(name)
                        .into_iter()
                        .next()
                        .and_then(|path| {
                            outrigger_files::read_to_string(&path, outrigger_files::SETTINGS).ok()
                        })
                        .is_some_and(|text| text.contains(word))
                };
                !files("ruff.toml").is_empty()
                    || !files(".ruff.toml").is_empty()
                    || says("pyproject.toml", "[tool.ruff]")
                    || ["requirements.txt", "pyproject.toml", "Pipfile"]
                        .iter()
                        .any(|name| says(name, "ruff"))
            }
        }
    }

    /// Returns the project's own program, if there may be one.
    pub(super) fn local(
        &self,
        program: &str,
        directory: &Path,
        worktree: &Path,
    ) -> Option<PathBuf> {
        let folder = match self {
            Self::Npm(_) | Self::NpmFile(_) => "node_modules/.bin",
            Self::Pint => "vendor/bin",
            _ => return None,
        };
        up(directory, worktree)
            .map(|dir| dir.join(folder).join(program))
            .find(|file| file.is_file())
    }
}

fn up<'a>(directory: &'a Path, worktree: &'a Path) -> impl Iterator<Item = &'a Path> {
    let stop = worktree.to_path_buf();
    let mut done = false;
    directory.ancestors().take_while(move |dir| {
        let take = !done;
        done |= *dir == stop;
        take
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_that_formatters_are_meant_for() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("w");
        let inner = root.join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(dir.path().join(".clang-format"), "").unwrap();
        let all = [
            When::File(&[".clang-format"]),
            When::Npm("prettier"),
            When::NpmFile(&["biome.json"]),
            When::Pint,
            When::Ruff,
        ];
        assert!(When::Always.holds(&inner, &root));
        assert_eq!(all.map(|when| when.holds(&inner, &root)), [false; 5]);
        for (file, text) in [
            ("a/.clang-format", ""),
            ("package.json", r#"{"devDependencies": {"prettier": "3"}}"#),
            ("biome.json", "{}"),
            ("composer.json", r#"{"require-dev": {"laravel/pint": "1"}}"#),
            ("pyproject.toml", "[tool.ruff]\n"),
            ("node_modules/.bin/prettier", ""),
        ] {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        assert_eq!(all.map(|when| when.holds(&inner, &root)), [true; 5]);
        let local = |when: When, name| when.local(name, &inner, &root);
        assert_eq!(
            local(When::Npm("prettier"), "prettier"),
            Some(root.join("node_modules/.bin/prettier"))
        );
        assert_eq!(local(When::Pint, "pint"), None);
        assert_eq!(local(When::Always, "prettier"), None);
    }
}

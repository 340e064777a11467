//! The servers that OpenCode knows and that are available without downloading: those whose program is on `PATH`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::root::Root;

/// A server of OpenCode's list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownServer {
    pub(crate) id: &'static str,
    pub(crate) extensions: &'static [&'static str],
    pub(crate) root: Root,
    /// Program and arguments.
    pub(crate) command: &'static [&'static str],
    /// Further requirements.
    pub(crate) needs: Needs,
}

/// What a server needs from the project, and the setting that passes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    /// TypeScript in the project's `node_modules`, passed as `tsserver.path`.
    TypeScript,
    /// TypeScript as well, passed as `typescript.tsdk`.
    TypeScriptFolder,
    /// The project's virtual environment, if there is one, passed as `pythonPath`.
    Python,
    /// `telemetry.enabled: false`.
    NoTelemetry,
    /// Terraform's experimental checks, as in OpenCode.
    Terraform,
}

const LOCKS: &[&str] = &[
    "package-lock.json",
    "bun.lockb",
    "bun.lock",
    "pnpm-lock.yaml",
    "yarn.lock",
];
const SCRIPTS: &[&str] = &[".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts"];
const DOTNET: &[&str] = &["*.slnx", "*.sln", "*.csproj", "global.json"];

macro_rules! known {
    ($id:literal, $extensions:expr, $root:expr, $command:expr) => {
        known!($id, $extensions, $root, $command, Needs::Nothing)
    };
    ($id:literal, $extensions:expr, $root:expr, $command:expr, $needs:expr) => {
        KnownServer {
            id: $id,
            extensions: $extensions,
            root: $root,
            command: $command,
            needs: $needs,
        }
    };
}

/// The list, in OpenCode's names. Omitted are those that exist only as a download (ESLint's, JDTLS, Kotlin's), Razor, and
/// Oxlint, whose program must be run to know whether it is a server.
#[rustfmt::skip]
pub(crate) const KNOWN: &[KnownServer] = &[
    known!("deno", &[".ts", ".tsx", ".js", ".jsx", ".mjs"], Root::Required(&["deno.json", "deno.jsonc"]), &["deno", "lsp"]),
    known!("typescript", SCRIPTS, Root::Unless(LOCKS, &["deno.json", "deno.jsonc"]), &["typescript-language-server", "--stdio"], Needs::TypeScript),
    known!("vue", &[".vue"], Root::Nearest(LOCKS), &["vue-language-server", "--stdio"]),
    known!("biome", &[".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".json", ".jsonc", ".vue", ".astro", ".svelte", ".css", ".graphql", ".gql", ".html"],
        Root::Nearest(&["biome.json", "biome.jsonc", "package-lock.json", "bun.lockb", "bun.lock", "pnpm-lock.yaml", "yarn.lock"]), &["biome", "lsp-proxy", "--stdio"]),
    known!("gopls", &[".go"], Root::Either(&["go.work"], &["go.mod", "go.sum"]), &["gopls"]),
    known!("ruby-lsp", &[".rb", ".rake", ".gemspec", ".ru"], Root::Nearest(&["Gemfile"]), &["rubocop", "--lsp"]),
    known!("pyright", &[".py", ".pyi"], Root::Nearest(&["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile", "pyrightconfig.json"]),
        &["pyright-langserver", "--stdio"], Needs::Python),
    known!("elixir-ls", &[".ex", ".exs"], Root::Nearest(&["mix.exs", "mix.lock"]), &["elixir-ls"]),
    known!("zls", &[".zig", ".zon"], Root::Nearest(&["build.zig"]), &["zls"]),
    known!("csharp", &[".cs", ".csx"], Root::Nearest(DOTNET), &["roslyn-language-server", "--stdio", "--autoLoadProjects"]),
    known!("fsharp", &[".fs", ".fsi", ".fsx", ".fsscript"], Root::Nearest(&["*.slnx", "*.sln", "*.fsproj", "global.json"]), &["fsautocomplete"]),
    known!("sourcekit-lsp", &[".swift", ".objc", "objcpp"], Root::Nearest(&["Package.swift", "*.xcodeproj", "*.xcworkspace"]), &["sourcekit-lsp"]),
    known!("rust", &[".rs"], Root::Cargo, &["rust-analyzer"]),
    known!("clangd", &[".c", ".cpp", ".cc", ".cxx", ".c++", ".h", ".hpp", ".hh", ".hxx", ".h++"], Root::Nearest(&["compile_commands.json", "compile_flags.txt", ".clangd"]),
        &["clangd", "--background-index", "--clang-tidy"]),
    known!("svelte", &[".svelte"], Root::Nearest(LOCKS), &["svelteserver", "--stdio"]),
    known!("astro", &[".astro"], Root::Nearest(LOCKS), &["astro-ls", "--stdio"], Needs::TypeScriptFolder),
    known!("yaml-ls", &[".yaml", ".yml"], Root::Nearest(LOCKS), &["yaml-language-server", "--stdio"]),
    known!("lua-ls", &[".lua"], Root::Nearest(&[".luarc.json", ".luarc.jsonc", ".luacheckrc", ".stylua.toml", "stylua.toml", "selene.toml", "selene.yml"]), &["lua-language-server"]),
    known!("php intelephense", &[".php"], Root::Nearest(&["composer.json", "composer.lock", ".php-version"]), &["intelephense", "--stdio"], Needs::NoTelemetry),
    known!("prisma", &[".prisma"], Root::Nearest(&["schema.prisma", "prisma/schema.prisma", "prisma"]), &["prisma", "language-server"]),
    known!("dart", &[".dart"], Root::Nearest(&["pubspec.yaml", "analysis_options.yaml"]), &["dart", "language-server", "--lsp"]),
    known!("ocaml-lsp", &[".ml", ".mli"], Root::Nearest(&["dune-project", "dune-workspace", ".merlin", "opam"]), &["ocamllsp"]),
    known!("bash", &[".sh", ".bash", ".zsh", ".ksh"], Root::Directory, &["bash-language-server", "start"]),
    known!("terraform", &[".tf", ".tfvars"], Root::Nearest(&[".terraform.lock.hcl", "terraform.tfstate", "*.tf"]), &["terraform-ls", "serve"], Needs::Terraform),
    known!("texlab", &[".tex", ".bib"], Root::Nearest(&[".latexmkrc", "latexmkrc", ".texlabroot", "texlabroot"]), &["texlab"]),
    known!("dockerfile", &[".dockerfile", "Dockerfile"], Root::Directory, &["docker-langserver", "--stdio"]),
    known!("gleam", &[".gleam"], Root::Nearest(&["gleam.toml"]), &["gleam", "lsp"]),
    known!("clojure-lsp", &[".clj", ".cljs", ".cljc", ".edn"], Root::Nearest(&["deps.edn", "project.clj", "shadow-cljs.edn", "bb.edn", "build.boot"]), &["clojure-lsp", "listen"]),
    known!("nixd", &[".nix"], Root::Nearest(&["flake.nix"]), &["nixd"]),
    known!("tinymist", &[".typ", ".typc"], Root::Nearest(&["typst.toml"]), &["tinymist"]),
    known!("haskell-language-server", &[".hs", ".lhs"], Root::Nearest(&["stack.yaml", "cabal.project", "hie.yaml", "*.cabal"]), &["haskell-language-server-wrapper", "--lsp"]),
    known!("julials", &[".jl"], Root::Nearest(&["Project.toml", "Manifest.toml"]), &["julia", "--startup-file=no", "--history-file=no", "-e", "using LanguageServer; runserver()"]),
];

impl Needs {
    /// Returns `initializationOptions`, or `None` if a requirement is missing. Files of the project are used if programs
    /// `of_project` may be started.
    pub(crate) fn options(
        self,
        root: &Path,
        directory: &Path,
        venv: Option<&OsStr>,
        of_project: bool,
    ) -> Option<Value> {
        let typescript = || {
            let lib = "node_modules/typescript/lib/tsserver.js";
            let mut found = directory.ancestors().map(|dir| dir.join(lib));
            found.find(|file| of_project && file.is_file())
        };
        Some(match self {
            Self::Nothing => json!({}),
            Self::TypeScript => json!({ "tsserver": { "path": typescript()? } }),
            Self::TypeScriptFolder => json!({ "typescript": { "tsdk": typescript()?.parent()? } }),
            Self::NoTelemetry => json!({ "telemetry": { "enabled": false } }),
            Self::Terraform => {
                json!({ "experimentalFeatures": { "prefillRequiredFields": true, "validateOnSave": true } })
            }
            Self::Python => {
                let folders = venv.map(PathBuf::from).into_iter();
                let own = [root.join(".venv"), root.join("venv")];
                let folders = folders.chain(own.into_iter().filter(|_| of_project));
                let python = folders
                    .map(|dir| dir.join("bin/python"))
                    .find(|file| file.is_file());
                python.map_or_else(|| json!({}), |python| json!({ "pythonPath": python }))
            }
        })
    }
}

/// Variables that language servers and formatters get besides the harmless ones of every process: the locations of tool
/// chains. None of them holds a secret; proxies and keys are named in `env` of the server that needs them.
pub const TOOL_CHAINS: &[&str] = &[
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "BUNDLE_GEMFILE",
    "BUNDLE_PATH",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "CONDA_PREFIX",
    "DOTNET_CLI_HOME",
    "DOTNET_ROOT",
    "GEM_HOME",
    "GEM_PATH",
    "GOARCH",
    "GOBIN",
    "GOCACHE",
    "GOFLAGS",
    "GOMODCACHE",
    "GOOS",
    "GOPATH",
    "GOROOT",
    "GOWORK",
    "HEX_HOME",
    "JAVA_HOME",
    "JULIA_DEPOT_PATH",
    "MIX_HOME",
    "NODE_PATH",
    "NVM_BIN",
    "NVM_DIR",
    "OPAM_SWITCH_PREFIX",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "PYTHONPATH",
    "RUSTFLAGS",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "VIRTUAL_ENV",
    "VOLTA_HOME",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_unique_and_extensions_are_known() {
        let mut ids: Vec<&str> = KNOWN.iter().map(|known| known.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), KNOWN.len());
        assert!(
            KNOWN
                .iter()
                .all(|k| !k.extensions.is_empty() && !k.command.is_empty())
        );
    }

    #[test]
    fn what_a_server_gets_of_the_project() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        assert_eq!(Needs::TypeScript.options(root, root, None, true), None);
        assert_eq!(
            Needs::Python.options(root, root, None, true),
            Some(json!({}))
        );
        for file in [
            "node_modules/typescript/lib/tsserver.js",
            ".venv/bin/python",
            "other/bin/python",
        ] {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let inner = root.join("a/b");
        assert_eq!(
            Needs::TypeScript.options(&inner, &inner, None, true),
            Some(
                json!({"tsserver": {"path": root.join("node_modules/typescript/lib/tsserver.js")}})
            )
        );
        assert_eq!(
            Needs::Python.options(root, root, None, true),
            Some(json!({"pythonPath": root.join(".venv/bin/python")}))
        );
        assert_eq!(
            Needs::Python.options(root, root, Some(root.join("other").as_os_str()), true),
            Some(json!({"pythonPath": root.join("other/bin/python")}))
        );
        // Nothing of an untrusted project.
        let untrusted = |needs: Needs| needs.options(&inner, &inner, None, false);
        assert_eq!(untrusted(Needs::TypeScript), None);
        assert_eq!(
            Needs::Python.options(root, root, None, false),
            Some(json!({}))
        );
    }
}

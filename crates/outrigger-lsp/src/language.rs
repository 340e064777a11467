//! Language identifiers of files in LSP.

use std::path::Path;

/// Extensions and their language identifiers, from the LSP specification and the expectations of servers.
const LANGUAGES: &[(&[&str], &str)] = &[
    (&["astro"], "astro"),
    (&["sh", "bash", "zsh", "ksh"], "shellscript"),
    (&["bib", "bibtex"], "bibtex"),
    (&["c"], "c"),
    (
        &["cpp", "cxx", "cc", "c++", "hpp", "hh", "hxx", "h++"],
        "cpp",
    ),
    (&["clj", "cljs", "cljc", "edn"], "clojure"),
    (&["cs", "csx"], "csharp"),
    (&["css"], "css"),
    (&["d"], "d"),
    (&["dart"], "dart"),
    (&["dockerfile"], "dockerfile"),
    (&["ex", "exs"], "elixir"),
    (&["erl", "hrl"], "erlang"),
    (&["fs", "fsi", "fsx", "fsscript"], "fsharp"),
    (&["gleam"], "gleam"),
    (&["go"], "go"),
    (&["hs", "lhs"], "haskell"),
    (&["html", "htm"], "html"),
    (&["java"], "java"),
    (&["js", "mjs", "cjs"], "javascript"),
    (&["jsx"], "javascriptreact"),
    (&["json"], "json"),
    (&["jl"], "julia"),
    (&["kt", "kts"], "kotlin"),
    (&["tex"], "latex"),
    (&["less"], "less"),
    (&["lua"], "lua"),
    (&["md", "markdown"], "markdown"),
    (&["m"], "objective-c"),
    (&["mm"], "objective-cpp"),
    (&["ml", "mli"], "ocaml"),
    (&["nix"], "nix"),
    (&["pl", "pm"], "perl"),
    (&["php"], "php"),
    (&["py", "pyi"], "python"),
    (&["r", "R"], "r"),
    (&["cshtml", "razor"], "razor"),
    (&["rb", "rake", "gemspec", "ru"], "ruby"),
    (&["rs"], "rust"),
    (&["scala"], "scala"),
    (&["scss", "sass"], "scss"),
    (&["sql"], "sql"),
    (&["svelte"], "svelte"),
    (&["swift"], "swift"),
    (&["tf"], "terraform"),
    (&["tfvars"], "terraform-vars"),
    (&["ts", "mts", "cts"], "typescript"),
    (&["tsx", "mtsx", "ctsx"], "typescriptreact"),
    (&["typ", "typc"], "typst"),
    (&["vue"], "vue"),
    (&["xml", "xsl"], "xml"),
    (&["yaml", "yml"], "yaml"),
    (&["zig", "zon"], "zig"),
];

/// Returns the language of a file; default: `plaintext`.
pub(crate) fn of(path: &Path) -> &'static str {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("");
    LANGUAGES
        .iter()
        .find(|(extensions, _)| extensions.contains(&extension))
        .map_or("plaintext", |(_, language)| language)
}

#[cfg(test)]
mod tests {
    #[test]
    fn by_extension() {
        for (file, language) in [
            ("/a/b.tsx", "typescriptreact"),
            ("/a/b.mjs", "javascript"),
            ("/a/b.rs", "rust"),
            ("/a/b", "plaintext"),
            ("/a/b.unknown", "plaintext"),
        ] {
            assert_eq!(super::of(file.as_ref()), language, "{file}");
        }
    }
}

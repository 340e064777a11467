//! Settings, manifests and policies printed on the pages are valid.

use std::path::Path;

use outrigger_protocol::manifest::Manifest;

use crate::world::World;

const PAGES: [&str; 12] = [
    "bridge.md",
    "configuration.md",
    "configuration/policy.md",
    "mcp.md",
    "models.md",
    "permissions.md",
    "plugins/manifest.md",
    "plugins/sandbox.md",
    "plugins/trust.md",
    "plugins/writing.md",
    "sandbox.md",
    "tools.md",
];
/// A key as minisign writes them.
const KEY: &str = "RWQBAQEBAQEBAQcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH";

/// The blocks of a page that are written in a language.
fn blocks(page: &str, languages: &[&str]) -> Vec<String> {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let text = std::fs::read_to_string(pages.join(page)).unwrap();
    let mut found = Vec::new();
    for language in languages {
        let start = format!("```{language}\n");
        let blocks = text.split(&start).skip(1);
        found.extend(blocks.filter_map(|block| Some(block.split_once("\n```")?.0.to_owned())));
    }
    found
}

/// What a file of the user's says that is not right.
fn wrong(path: &str, text: &str) -> Vec<String> {
    match World::new(&[(path, text)]).load() {
        Ok(loaded) => loaded.problems.iter().map(ToString::to_string).collect(),
        Err(error) => vec![error.to_string()],
    }
}

fn wrong_policy(text: &str) -> Vec<String> {
    let mut world = World::new(&[("policy.toml", &text.replace("RWQ...", KEY))]);
    world.options.policy = world.path("policy.toml");
    world.load().err().iter().map(ToString::to_string).collect()
}

fn wrong_manifest(text: &str) -> Vec<String> {
    // Parts of one stand for themselves.
    let head = "id = \"deploy\"\nversion = \"1.0.0\"\nkind = \"capability\"\n";
    let head = if text.starts_with("id = ") { "" } else { head };
    match outrigger_config::read_toml::<Manifest>(&format!("{head}{text}"), "manifest") {
        Ok(manifest) => manifest
            .problems()
            .into_iter()
            .map(|it| format!("{}: {}", it.key, it.message))
            .collect(),
        Err(error) => vec![error.to_string()],
    }
}

#[test]
fn what_the_pages_print_is_read() {
    let mut seen = Vec::new();
    for page in PAGES {
        for text in blocks(page, &["toml"]) {
            let has = |names: &[&str]| names.iter().any(|name| text.contains(name));
            let (kind, wrong) = if has(&["[signatures]", "[forbid]"]) {
                ("policy", wrong_policy(&text))
            } else if has(&["\nkind = ", "[[points]]", "[[subplugins]]", "[[providers]]"]) {
                ("manifest", wrong_manifest(&text))
            } else {
                let path = "home/.config/outrigger/outrigger.toml";
                ("settings", wrong(path, &text))
            };
            assert!(wrong.is_empty(), "{page}: {text}\n{wrong:#?}");
            seen.push(kind);
        }
        for text in blocks(page, &["json", "jsonc"]) {
            // That of another program.
            if text.contains("\"mcpServers\"") {
                continue;
            }
            // Lines that are a whole each.
            let lines = text.lines().filter(|line| line.starts_with("{ "));
            let whole = [text.as_str()];
            let lines: Vec<&str> = lines.collect();
            let files = if lines.len() > 1 { &lines[..] } else { &whole };
            for file in files {
                let wrong = wrong("home/.config/opencode/opencode.json", file);
                assert!(wrong.is_empty(), "{page}: {file}\n{wrong:#?}");
                seen.push("opencode.json");
            }
        }
    }
    for kind in ["policy", "manifest", "settings", "opencode.json"] {
        let found = seen.iter().filter(|it| **it == kind).count();
        assert!(found > 1, "{kind}: {found}");
    }
}

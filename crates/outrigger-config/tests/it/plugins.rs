//! The list of plugins: order, duplicates, resolution, switches.

use outrigger_config::{PluginScope, PluginSource};
use serde_json::json;

use crate::world::World;

fn layered() -> World {
    World::new(&[
        (
            "home/.config/opencode/opencode.json",
            r#"{"plugin": ["shared@1", "only-global", ["opts", {"from": "global"}], "./rel.ts"]}"#,
        ),
        ("home/.config/opencode/plugins/b.js", ""),
        ("home/.config/opencode/plugin/a.ts", ""),
        ("home/.config/opencode/plugin/deep/not.ts", ""),
        ("home/.config/opencode/plugin/not.mjs", ""),
        (
            "work/opencode.json",
            r#"{"plugin": ["shared@2", "opts@9", "./rel.ts", "file:///abs/x.ts"]}"#,
        ),
        (
            "work/sub/opencode.jsonc",
            r#"{"plugin": [["npm:late", {"n": 1}], "file:///abs/x.ts"]}"#,
        ),
        (
            "work/.opencode/opencode.json",
            r#"{"plugin": ["../rel.ts", "opencode-openai-codex-auth@4"]}"#,
        ),
        ("work/.opencode/plugin/local.ts", ""),
        ("work/.opencode/plugin/.hidden.js", ""),
    ])
}

#[test]
fn order_and_duplicates() {
    let world = layered();
    let loaded = world.load().unwrap();
    let seen: Vec<String> = loaded
        .plugins
        .iter()
        .map(|p| {
            let options = p
                .options
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default();
            world.text(format!(
                "{} {options} | {} | {:?} {:?}",
                p.spec,
                p.declared_in.display(),
                p.source,
                p.scope
            ))
        })
        .collect();
    insta::assert_snapshot!(seen.join("\n"), @r#"
    only-global  | /home/.config/opencode/opencode.json | Config Global
    file:///home/.config/opencode/rel.ts  | /home/.config/opencode/opencode.json | Config Global
    shared@2  | /work/opencode.json | Config Local
    opts@9  | /work/opencode.json | Config Local
    npm:late {"n":1} | /work/sub/opencode.jsonc | Config Local
    file:///abs/x.ts  | /work/sub/opencode.jsonc | Config Local
    file:///home/.config/opencode/plugin/a.ts  | /home/.config/opencode | Auto Global
    file:///home/.config/opencode/plugins/b.js  | /home/.config/opencode | Auto Global
    file:///work/rel.ts  | /work/.opencode/opencode.json | Config Local
    file:///work/.opencode/plugin/.hidden.js  | /work/.opencode | Auto Local
    file:///work/.opencode/plugin/local.ts  | /work/.opencode | Auto Local
    "#);
    let problems: Vec<String> = loaded
        .problems
        .iter()
        .map(|problem| world.text(problem))
        .collect();
    insta::assert_snapshot!(problems.join("\n"), @"/work/.opencode/opencode.json: /plugin: `opencode-openai-codex-auth@4` is part of OpenCode by now and is not loaded");
    let specs = loaded.value["plugin"].as_array().unwrap();
    assert_eq!(
        specs.len(),
        loaded.plugins.len() + 1,
        "the document keeps the deprecated one, as the reference does"
    );
    assert_eq!(
        loaded.value["plugin_origins"].as_array().unwrap().len(),
        specs.len()
    );
    assert!(specs.contains(&json!(["npm:late", {"n": 1}])));
}

#[test]
fn pure_means_no_external_plugins() {
    let mut world = layered();
    world.options.pure = true;
    let loaded = world.load().unwrap();
    assert!(loaded.plugins.is_empty());
    assert!(
        !loaded.value["plugin"].as_array().unwrap().is_empty(),
        "the document is as it is"
    );
    assert!(
        layered()
            .env("OPENCODE_PURE", "true")
            .load()
            .unwrap()
            .plugins
            .is_empty()
    );
    assert!(
        !layered()
            .env("OPENCODE_PURE", "0")
            .load()
            .unwrap()
            .plugins
            .is_empty()
    );
}

#[test]
fn from_the_environment() {
    let world = World::new(&[("named/plugin/n.ts", "")])
        .env("OPENCODE_CONFIG_DIR", "ROOT/named")
        .env("OPENCODE_CONFIG_CONTENT", r#"{"plugin": ["./here.ts"]}"#);
    let loaded = world.load().unwrap();
    let seen: Vec<(String, PluginSource, PluginScope)> = loaded
        .plugins
        .iter()
        .map(|p| (world.text(&p.spec), p.source, p.scope))
        .collect();
    assert_eq!(
        seen,
        [
            (
                "file:///named/plugin/n.ts".to_owned(),
                PluginSource::Auto,
                PluginScope::Global
            ),
            (
                "file:///work/sub/here.ts".to_owned(),
                PluginSource::Config,
                PluginScope::Local
            ),
        ]
    );
    assert_eq!(
        loaded.origins["/plugin/1"].to_string(),
        "environment OPENCODE_CONFIG_CONTENT"
    );
}

//! The list of plugins: order, duplicates, resolution, switches.

use outrigger_config::{PluginScope, PluginSource, SkipReason, SkippedPlugin};
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
            r#"{"plugin": ["../rel.ts", "opencode-copilot-auth@4"]}"#,
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
    opencode-copilot-auth@4  | /work/.opencode/opencode.json | Config Local
    file:///work/.opencode/plugin/.hidden.js  | /work/.opencode | Auto Local
    file:///work/.opencode/plugin/local.ts  | /work/.opencode | Auto Local
    "#);
    assert_eq!(loaded.problems, []);
    let skipped: Vec<String> = loaded
        .skipped
        .iter()
        .map(|s| match &s.reason {
            SkipReason::Overridden { spec, declared_in } => world.text(format!(
                "{} in {}: {spec} in {}",
                s.plugin.spec,
                s.plugin.declared_in.display(),
                declared_in.display()
            )),
            other => format!("{} {other:?}", s.plugin.spec),
        })
        .collect();
    insta::assert_snapshot!(skipped.join("\n"), @r"
    shared@1 in /home/.config/opencode/opencode.json: shared@2 in /work/opencode.json
    opts in /home/.config/opencode/opencode.json: opts@9 in /work/opencode.json
    file:///abs/x.ts in /work/opencode.json: file:///abs/x.ts in /work/sub/opencode.jsonc
    file:///work/rel.ts in /work/opencode.json: file:///work/rel.ts in /work/.opencode/opencode.json
    ");
    let specs = loaded.value["plugin"].as_array().unwrap();
    assert_eq!(specs.len(), loaded.plugins.len());
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
    let pure = |s: &&SkippedPlugin| s.reason == SkipReason::Pure;
    assert_eq!(loaded.skipped.iter().filter(pure).count(), 12);
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

#[test]
fn tool_files_of_every_config_folder_lowest_precedence_first() {
    let world = World::new(&[
        ("home/.config/opencode/tool/a.ts", ""),
        ("home/.config/opencode/tools/b.js", ""),
        ("home/.opencode/tool/h.ts", ""),
        ("work/.opencode/tool/a.ts", ""),
        ("work/.opencode/tool/deep/not.ts", ""),
        ("work/.opencode/tool/not.mjs", ""),
        ("work/.opencode/tools/.dot.js", ""),
        ("work/sub/.opencode/tools/s.js", ""),
        ("named/tool/n.ts", ""),
    ])
    .env("OPENCODE_CONFIG_DIR", "ROOT/named");
    let loaded = world.load().unwrap();
    let seen: Vec<String> = loaded
        .tool_files
        .iter()
        .map(|t| world.text(format!("{} {:?} {:?}", t.spec, t.source, t.scope)))
        .collect();
    insta::assert_snapshot!(seen.join("\n"), @r"
    file:///home/.config/opencode/tool/a.ts Tool Global
    file:///home/.config/opencode/tools/b.js Tool Global
    file:///work/sub/.opencode/tools/s.js Tool Local
    file:///work/.opencode/tool/a.ts Tool Local
    file:///work/.opencode/tools/.dot.js Tool Local
    file:///home/.opencode/tool/h.ts Tool Global
    file:///named/tool/n.ts Tool Global
    ");
    assert!(loaded.plugins.is_empty() && loaded.value["plugin"] == json!([]));
    assert!(
        world
            .env("OPENCODE_PURE", "1")
            .load()
            .unwrap()
            .tool_files
            .is_empty()
    );
}

/// Between the files of the global folder lists are replaced; what is lost that way is reported.
#[test]
fn a_list_that_another_global_file_replaces_is_reported() {
    let world = World::new(&[
        (
            "home/.config/opencode/config.json",
            r#"{"plugin": ["old"]}"#,
        ),
        (
            "home/.config/opencode/opencode.json",
            r#"{"plugin": ["new"]}"#,
        ),
    ]);
    let loaded = world.load().unwrap();
    let skipped: Vec<_> = loaded
        .skipped
        .iter()
        .map(|s| (s.plugin.spec.as_str(), &s.reason))
        .collect();
    assert_eq!(skipped, [("old", &SkipReason::Replaced)]);
    assert_eq!(loaded.plugins[0].spec, "new");
}

/// `outrigger plugin bisect` sets a variable for what this run goes without; what is skipped is reported.
#[test]
fn what_bisect_leaves_out_is_listed_with_its_reason() {
    let files = [
        ("work/opencode.json", r#"{"plugin": ["x@1", "y"]}"#),
        ("work/.opencode/plugin/local.ts", ""),
        ("work/.opencode/tool/count.ts", ""),
    ];
    let world = World::new(&files).env(
        outrigger_config::LEFT_OUT,
        r#"["x", "file://ROOT/work/.opencode/tool/count.ts"]"#,
    );
    let loaded = world.load().unwrap();
    let out: Vec<_> = loaded
        .skipped
        .iter()
        .map(|s| (world.text(&s.plugin.spec), &s.reason))
        .collect();
    assert_eq!(
        out,
        [
            (
                "file:///work/.opencode/tool/count.ts".to_owned(),
                &SkipReason::LeftOut
            ),
            ("x@1".to_owned(), &SkipReason::LeftOut)
        ]
    );
    assert_eq!((loaded.plugins.len(), loaded.tool_files.len()), (2, 0));
    let wrong = World::new(&files).env(outrigger_config::LEFT_OUT, "x,y");
    let loaded = wrong.load().unwrap();
    assert_eq!((loaded.plugins.len(), loaded.tool_files.len()), (3, 1));
    insta::assert_snapshot!(loaded.problems[0], @"OUTRIGGER_LEAVE_OUT: ignored: it is not a JSON array of strings (`outrigger plugin bisect` sets it)");
}

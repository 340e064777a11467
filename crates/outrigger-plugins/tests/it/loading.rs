use std::time::Duration;

use outrigger_config::settings::Isolation;
use outrigger_config::{PluginScope, PluginSpec};
use outrigger_plugins::{PluginRules, Stage};

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn one_that_cannot_be_loaded_is_listed_and_the_rest_runs() {
    let project = Project::new();
    let specs = vec![
        project.plugin("good", &appender("good")),
        project.plugin("syntax", "export default async () => ({"),
        project.plugin(
            "throws",
            "export default async () => { throw new Error('no licence') }",
        ),
        project.plugin("import", "throw new Error('bad day')"),
        project.plugin("nothing", "export const answer = 42"),
        project.plugin("undefined", "export default async () => undefined"),
        project.spec("./gone.ts"),
        project.spec("opencode-copilot-auth@4"),
        project.spec("not a name"),
        project.plugin("last", &appender("last")),
    ];
    let plugins = project.load(specs).await;
    insta::assert_snapshot!(listed(&plugins), @r"
    good active
    syntax failed plugin.import
    throws failed plugin.server
    import failed plugin.import
    nothing failed plugin.export
    undefined failed plugin.load
    gone failed plugin.not_found
    opencode-copilot-auth@4 skipped plugin.deprecated
    not a name failed plugin.spec
    last active
    ");
    assert!(message(&plugins, "throws").contains("no licence"));
    assert!(message(&plugins, "import").contains("bad day"));
    assert_eq!(project.stages("syntax"), "found installed starting failed");
    assert_eq!(
        summary(&system(&plugins).await),
        "good1 last1 | good ok, last ok"
    );
    assert_eq!(status(&plugins, "good").generation, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_never_finishes_loading_is_named_and_the_rest_runs() {
    let server = "export default async () => { await new Promise(() => {}) }";
    for (what, source, error) in [
        (
            "a plugin function that never answers",
            server,
            "plugin.hung",
        ),
        (
            "a plugin function that spins",
            "export default async () => { for (;;) {} }",
            "plugin.hung",
        ),
        (
            "a module that never ends",
            "await new Promise(() => {}); export default async () => ({})",
            "plugin.hung",
        ),
        ("a module that spins", "for (;;) {}", "plugin.hung"),
        (
            "a plugin function that ends the process",
            "export default async () => process.exit(4)",
            "plugin.crashed",
        ),
        (
            "a module that ends the process",
            "process.exit(4)",
            "plugin.crashed",
        ),
    ] {
        let mut project = Project::new();
        project.settings.deadlines.load = HANGS;
        let specs = vec![
            project.plugin("first", &appender("first")),
            project.plugin("bad", source),
            project.plugin("last", &appender("last")),
        ];
        let plugins = project.load(specs).await;
        assert_eq!(
            listed(&plugins),
            format!("first active\nbad failed {error}\nlast active"),
            "{what}"
        );
        assert_eq!(
            status(&plugins, "bad").cause.unwrap().at,
            Stage::Starting,
            "{what}"
        );
        assert_eq!(
            summary(&system(&plugins).await),
            "first1 last1 | first ok, last ok",
            "{what}"
        );
        plugins.dispose(Duration::from_secs(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_runtime_every_plugin_has_the_reason() {
    let mut project = Project::new();
    project.runtimes = nothing();
    let specs = vec![
        project.plugin("a", &appender("a")),
        project.spec("opencode-copilot-auth"),
    ];
    let plugins = project.load(specs).await;
    insta::assert_snapshot!(listed(&plugins), @r"
    a failed plugin.no_runtime
    opencode-copilot-auth skipped plugin.deprecated
    ");
    assert!(message(&plugins, "a").contains("no JavaScript runtime found"));
    let result = system(&plugins).await;
    assert!(result.records.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_files_of_one_name_are_two_plugins() {
    let project = Project::new();
    let other = project.path("plugins/deep");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("same.mjs"), appender("deep")).unwrap();
    let specs = vec![
        project.plugin("same", &appender("top")),
        project.spec("../plugins/deep/same.mjs"),
    ];
    let plugins = project.load(specs).await;
    assert_eq!(listed(&plugins), "same active\nsame#2 active");
    assert_eq!(
        summary(&system(&plugins).await),
        "top1 deep1 | same ok, same#2 ok"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_started_without_plugins() {
    let project = Project::new();
    let plugins = project.load(Vec::new()).await;
    assert!(plugins.list().is_empty() && count(&plugins).is_empty());
    assert!(!project.path("data").exists() && !project.path("cache").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_has_a_home_of_its_own() {
    let project = Project::new();
    let source = r#"import { homedir, tmpdir } from "node:os"
        export default async ({ directory }) => ({
          "experimental.chat.system.transform": async (_, output) => {
            output.system.push(homedir(), tmpdir(), process.env.XDG_CONFIG_HOME, directory, process.cwd()) } })"#;
    let plugins = project.load(vec![project.plugin("where", source)]).await;
    let result = system(&plugins).await;
    let texts: Vec<&str> = result.outputs[0]["system"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t.as_str().unwrap())
        .collect();
    let homes = project.path("data/plugin-homes");
    for private in &texts[..3] {
        assert!(
            std::path::Path::new(private).starts_with(&homes),
            "{private}"
        );
    }
    assert_eq!(texts[3..], [project.path("project").to_str().unwrap(); 2]);
}

/// A project's file that is called as the user's plugin got what that one keeps, and could leave code for it: in its home, in the
/// scripts of the host, which lay there, and in Bun's cache of what it had made of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_home_is_one_plugins_however_others_are_called() {
    let mut project = Project::new();
    let source = r#"import { homedir } from "node:os"
        import { writeFileSync } from "node:fs"
        import { dirname } from "node:path"
        const fails = (run) => { try { run(); return "written" } catch { return "kept" } }
        const script = process.argv[1]
        export default async () => ({
          "experimental.chat.system.transform": async (_, output) => {
            output.system.push(homedir(), fails(() => writeFileSync(script, "evil")),
              fails(() => writeFileSync(dirname(script) + "/more.mjs", "")), process.env.BUN_RUNTIME_TRANSPILER_CACHE_PATH) } })"#;
    let mut seen = Vec::new();
    for alone in [true, false] {
        let isolation = if alone {
            Isolation::Own
        } else {
            Isolation::Shared
        };
        project.rules(
            "same",
            PluginRules {
                isolation,
                ..PluginRules::default()
            },
        );
        for (folder, scope) in [
            ("a", PluginScope::Global),
            ("b", PluginScope::Local),
            ("a", PluginScope::Local),
        ] {
            std::fs::create_dir_all(project.path("plugins").join(folder)).unwrap();
            let spec = PluginSpec {
                scope,
                ..project.plugin(&format!("{folder}/same"), source)
            };
            let plugins = project.load(vec![spec]).await;
            let result = system(&plugins).await;
            let said = &result.outputs[0]["system"];
            assert_eq!(
                said.as_array().unwrap()[1..],
                ["kept", "kept", "0"],
                "{said}"
            );
            seen.push((alone, scope, said[0].as_str().unwrap().to_owned()));
            plugins.dispose(Duration::from_secs(5)).await;
            // Or it would be a plugin that is not the one that was trusted.
            std::fs::remove_dir_all(project.path("data")).unwrap();
        }
    }
    let homes: Vec<&String> = seen.iter().map(|(.., home)| home).collect();
    // Alone, each source of each origin has its own; what is shared is shared with those of one origin.
    assert_eq!(
        homes
            .iter()
            .collect::<std::collections::BTreeSet<_>>()
            .len(),
        5,
        "{seen:?}"
    );
    assert_eq!(homes[4], homes[5]);
}

/// Its process cannot say in one frame what it has loaded: that is its own end and nobody else's.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_brings_more_than_fits_into_an_answer_is_named_and_the_rest_runs() {
    let mut project = Project::new();
    project.settings.deadlines.load = PLENTY;
    let source = r#"export default async () => ({ tool: Object.fromEntries(Array.from({ length: 80 }, (_, n) =>
        ["t" + n, { description: "x".repeat(1_000_000), args: {}, execute: async () => "done" }])) })"#;
    let specs = vec![
        project.plugin("many", source),
        project.plugin("good", &appender("good")),
    ];
    let plugins = project.load(specs).await;
    assert_eq!(listed(&plugins), "many failed plugin.crashed\ngood active");
    assert!(message(&plugins, "many").contains("over the limit of"));
    assert_eq!(summary(&system(&plugins).await), "good1 | good ok");
    plugins.dispose(Duration::from_secs(5)).await;
}

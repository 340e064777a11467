//! Tool files beside plugins: order, duplicate names, invalid files, and a process that must be restarted.

use outrigger_config::{PluginSource, PluginSpec, SkipReason, SkippedPlugin};
use outrigger_protocol::Object;
use serde_json::{Value, json};

use crate::support::*;

fn tool_file(project: &Project, folder: &str, name: &str, source: &str) -> PluginSpec {
    let path = project.path(folder).join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, source).unwrap();
    PluginSpec {
        source: PluginSource::Tool,
        declared_in: project.path(folder),
        ..project.spec(&format!("file://{}", path.display()))
    }
}

fn says(text: &str) -> String {
    format!("{{ description: 'd', args: {{}}, execute: async () => '{text}' }}")
}

async fn run(plugins: &outrigger_plugins::Plugins, at: usize) -> String {
    let context: Object = serde_json::from_value::<Value>(json!({"sessionID": "ses_1"}))
        .ok()
        .and_then(|v| v.as_object().cloned())
        .unwrap();
    let tools = plugins.tools();
    let answer = tools[at].runner.run(json!({}), context, None, |_| {}).await;
    match answer {
        Ok(output) => output.output,
        Err(error) => error.to_string(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn they_come_before_the_tools_of_plugins_and_a_bad_one_costs_nothing_else() {
    let project = Project::new();
    let plugin = format!(
        "export default async () => ({{ tool: {{ greet: {} }} }})",
        says("plugin")
    );
    let specs = vec![
        tool_file(
            &project,
            "user/tool",
            "greet.js",
            &format!("export default {}", says("user")),
        ),
        tool_file(&project, "own/tool", "bad.js", "export default ("),
        tool_file(&project, "own/tool", "none.js", "export const n = 1"),
        tool_file(
            &project,
            "own/tools",
            "greet.js",
            &format!(
                "export default {}; export const twice = {}",
                says("own"),
                says("twice")
            ),
        ),
        project.plugin("kit", &plugin),
    ];
    let plugins = project.load(specs).await;
    insta::assert_snapshot!(listed(&plugins), @r"
    tool:greet active
    tool:bad failed plugin.import
    tool:none failed plugin.export
    tool:greet#2 active
    kit active
    ");
    let tools = plugins.tools();
    let names: Vec<String> = tools
        .iter()
        .map(|tool| format!("{} {}", tool.spec.name, tool.spec.source))
        .collect();
    insta::assert_snapshot!(names.join("\n"), @r"
    greet plugin:tool:greet
    greet plugin:tool:greet#2
    greet_twice plugin:tool:greet#2
    greet plugin:kit
    ");
    let mut answers = Vec::new();
    for at in 0..tools.len() {
        answers.push(run(&plugins, at).await);
    }
    assert_eq!(answers, ["user", "own", "twice", "plugin"]);
    let listed = status(&plugins, "tool:greet#2");
    assert_eq!(listed.kind, PluginSource::Tool);
    assert_eq!(listed.entry, Some(project.path("own/tools/greet.js")));
    assert_eq!(listed.declared_in, project.path("own/tools"));
    assert_eq!(listed.tools, ["greet", "greet_twice"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_hangs_while_it_is_imported_is_named_and_the_rest_runs() {
    let mut project = Project::new();
    project.settings.deadlines.load = HANGS;
    let specs = vec![
        tool_file(&project, "own/tool", "spin.js", "for (;;) {}"),
        tool_file(
            &project,
            "own/tool",
            "ok.js",
            &format!("export default {}", says("ok")),
        ),
        project.plugin("last", &appender("last")),
    ];
    let plugins = project.load(specs).await;
    insta::assert_snapshot!(listed(&plugins), @r"
    tool:spin failed plugin.hung
    tool:ok active
    last active
    ");
    assert_eq!(run(&plugins, 0).await, "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_loaded_is_listed_with_its_reason() {
    let mut project = Project::new();
    let other = SkipReason::Overridden {
        spec: "twice@2".into(),
        declared_in: "/p/opencode.json".into(),
    };
    let entry = |spec: &str, reason| SkippedPlugin {
        plugin: project.spec(spec),
        reason,
    };
    let skipped = vec![
        entry("twice@1", other),
        entry("outside", SkipReason::Pure),
        entry("earlier", SkipReason::Replaced),
    ];
    project.skipped = skipped;
    let plugins = project.load(Vec::new()).await;
    let lines: Vec<String> = plugins
        .list()
        .into_iter()
        .map(|p| format!("{} {} {}", p.id, p.stage, p.cause.unwrap().message))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    twice skipped twice@1 is listed again as twice@2 in /p/opencode.json, and the last entry counts
    outside skipped outside is not loaded: `--pure` (or OPENCODE_PURE) leaves out everything from outside
    earlier skipped earlier is not loaded: a later file of the same folder has a `plugin` list of its own
    ");
}

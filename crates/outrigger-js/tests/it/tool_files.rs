//! Tool files (`{tool,tools}/*.{js,ts}`): which exports are tools, their names, and the problems reported for the
//! others.

use outrigger_protocol::rpc::{LoadedPlugin, PluginEntry};
use serde_json::json;

use crate::support::{LONG, Room, runtimes, tool_run};

fn tools_and_problems(loaded: &LoadedPlugin) -> String {
    let tools = loaded.instances.iter().flat_map(|i| &i.tools);
    let names: Vec<&str> = tools.map(|tool| tool.name.as_str()).collect();
    let problems: Vec<String> = loaded
        .problems
        .iter()
        .map(|p| format!("{}: {}", p.stage, p.message))
        .collect();
    format!("{} | {}", names.join(" "), problems.join("; "))
}

#[tokio::test]
async fn names_come_from_the_file_and_its_exports() {
    const TOOL: &str = "{ description: 'd', args: { n: { type: 'number' } }, execute: async (args) => 'n is ' + args.n }";
    let cases = [
        (format!("export default {TOOL}"), "kit | "),
        (
            format!("export const add = {TOOL}; export const sub = {TOOL}; export default {TOOL}"),
            "kit_add kit kit_sub | ",
        ),
        (
            format!(
                "export const add = {TOOL}; export const help = () => 1; export const LIMIT = 3"
            ),
            "kit_add | note: export `LIMIT` is not a tool (it lacks `description`, `args` or `execute`); \
             note: export `help` is not a tool (it lacks `description`, `args` or `execute`)",
        ),
        (
            "export const x = 1".to_owned(),
            " | export: the file exports no tool: an object with `description`, `args` and `execute`",
        ),
        (
            "export default { description: 'd', args: {}, execute: 'no' }".to_owned(),
            " | tool: tool `kit` was skipped: it has no `execute` function",
        ),
        (
            "export default async () => ({ event() {} })".to_owned(),
            " | export: the file exports no tool: an object with `description`, `args` and `execute`",
        ),
        (
            "throw new Error('bad day')".to_owned(),
            " | import: bad day",
        ),
    ];
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let entry = |(index, (source, _)): (usize, &(String, &str))| PluginEntry {
            tools: Some("kit".to_owned()),
            facade: None,
            ..room.plugin(&format!("t{index}"), source)
        };
        let entries = cases.iter().enumerate().map(entry).collect();
        let process = room.start().await.unwrap();
        let loaded = process
            .initialize(&room.initialize(entries), LONG)
            .await
            .unwrap();
        for (plugin, (source, expected)) in loaded.plugins.iter().zip(&cases) {
            let mut names = tools_and_problems(plugin);
            // The order of exports is that of the module's namespace: by name.
            if plugin.instances.len() == 1 {
                assert!(plugin.instances[0].hooks.is_empty());
            }
            names = names.trim_end().to_owned();
            assert_eq!(
                names,
                expected.trim_end(),
                "{source} under {:?}",
                runtime.kind
            );
        }
        let call = tool_run("t1", "kit_add", json!({"n": 3}));
        let answer = process.tool_run(&call, LONG, std::future::pending()).await;
        assert_eq!(answer.unwrap().output, "n is 3");
    }
}

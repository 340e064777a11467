//! From modules to hooks: export shapes, problems, the plugin input.

use outrigger_protocol::rpc::{LoadedPlugin, PluginEntry};
use serde_json::json;

use crate::support::{LONG, Room, hook, run, runtimes, show};

pub(crate) fn summary(plugin: &LoadedPlugin) -> String {
    let instances: Vec<String> = plugin
        .instances
        .iter()
        .map(|instance| format!("{}({})", instance.export, instance.hooks.join(",")))
        .collect();
    let problems: Vec<String> = plugin
        .problems
        .iter()
        .map(|problem| format!("{}: {}", problem.stage, problem.message))
        .collect();
    format!("{} {}", instances.join(" "), problems.join("; "))
        .trim()
        .to_owned()
}

#[tokio::test]
async fn export_shapes() {
    let cases = [
        (
            "export default async () => ({ event() {} })",
            "default(event)",
        ),
        (
            "export const B = async () => ({ b() {} }); export const A = async () => ({ a() {} })",
            "A(a) B(b)",
        ),
        (
            "export const A = async () => ({ a() {} }); export default A",
            "A(a)",
        ),
        (
            "export const A = { server: async () => ({ a() {} }) }",
            "A(a)",
        ),
        (
            "export default { id: 'x', server: async () => ({ a() {} }), setup() {} }; export const B = 1",
            "default(a)",
        ),
        (
            "export default { server: async () => ({ a() {} }) }",
            "export: a plugin from a path must export an `id`",
        ),
        (
            "export default { id: 'x', tui() {} }",
            "export: the default export has no `server` function",
        ),
        (
            "export default { id: 'x', server() {}, tui() {} }",
            "export: the default export has both `server` and `tui`",
        ),
        (
            "export const X = 'x'; export const Y = async () => ({ y() {} })",
            "Y(y) export: export `X` is not a function; it was skipped",
        ),
        (
            "export const X = 'x'",
            "export: export `X` is not a function; it was skipped",
        ),
        ("export {}", "export: the module exports nothing"),
        (
            "export const A = async () => undefined; export const B = () => [1]; export const C = () => ({ c() {} })",
            "C(c) note: export `A` answered with undefined, not with hooks; it was dropped; \
          note: export `B` answered with an array, not with hooks; it was dropped",
        ),
        (
            "export const helper = (input) => input; export const P = async () => ({ a() {} })",
            "P(a)",
        ),
        (
            "export const A = async () => { throw new Error('boom') }; export const B = async () => ({ b() {} })",
            "B(b) server: export `A`: boom",
        ),
        (
            "export class Helper {}; export const B = async () => ({ b() {} })",
            "B(b) server: export `Helper`: ",
        ),
        (
            "class Hooks { constructor() { this.name = 'x' } event() {} } export default async () => new Hooks()",
            "default(event)",
        ),
        (
            "export const P = async () => ({ auth: { provider: 'x' }, name: 'n', tool: { t: { args: {} } } })",
            "P() tool: tool `t` was skipped: it has no `execute` function",
        ),
        ("throw new Error('at import')", "import: at import"),
        ("import './not-there.mjs'", "import: "),
        ("export const A = (", "import: "),
    ];
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let entries = cases
            .iter()
            .enumerate()
            .map(|(index, (source, _))| room.plugin(&format!("p{index}"), source));
        let initialize = room.initialize(entries.collect());
        let process = room.start().await.unwrap();
        let loaded = process.initialize(&initialize, LONG).await.unwrap();
        for (plugin, (source, expected)) in loaded.plugins.iter().zip(&cases) {
            // The runtimes' own texts differ.
            let text = summary(plugin);
            let same = if expected.ends_with(": ") {
                text.starts_with(expected) && text.len() > expected.len()
            } else {
                text == *expected
            };
            assert!(
                same,
                "{source}\n got {text}\n not {expected}\n under {:?}",
                runtime.kind
            );
        }
        assert_eq!(loaded.plugins[16].instances[0].extras, ["auth"]);
        let stages = room.host.stages.lock().unwrap().join(" ");
        assert!(
            stages.contains("p0:importing")
                && stages.contains("p0:ready")
                && stages.contains("p17:failed")
        );
        assert_eq!(process.entered(), None);
    }
}

#[tokio::test]
async fn a_package_may_leave_out_its_id_and_common_js_is_a_module_too() {
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let package = PluginEntry {
            from_path: false,
            ..room.plugin(
                "package",
                "export default { server: async () => ({ a() {} }) }",
            )
        };
        let cjs = room.plugin("common.cjs", "exports.P = async () => ({ c() {} });");
        let process = room.start().await.unwrap();
        let loaded = process
            .initialize(&room.initialize(vec![package, cjs]), LONG)
            .await
            .unwrap();
        let all: Vec<String> = loaded.plugins.iter().map(summary).collect();
        assert_eq!(all, ["default(a)", "P(c)"], "under {:?}", runtime.kind);
    }
}

#[tokio::test]
async fn the_plugin_input_is_opencodes_and_can_be_printed() {
    let plugin = "export const P = async (input, options) => ({ look: async (_, output) => {
        for (const [key, value] of Object.entries(input)) output[key] = typeof value;
        output.keys = Object.keys(input).sort().join();
        output.text = JSON.stringify(input).length > 10;
        output.unknown = typeof input.skills;
        output.options = options === undefined ? 'none' : options;
        output.url = input.serverUrl.href;
        output.cwd = process.cwd() === input.directory;
        input.experimental_workspace.register('x', {});
    } });";
    let missing = "export const Q = async ({ client, $ }) => ({
        use: async () => { await client.session.list() },
        shell: async (_, output) => { output.out = (await $`echo hi`.text()).trim() } });";
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let mut with_options = room.plugin("p", plugin);
        with_options.options = Some(json!({"a": 1}));
        let entries = vec![
            with_options,
            room.plugin("q", missing),
            room.plugin("r", plugin),
        ];
        let process = room.start().await.unwrap();
        process
            .initialize(&room.initialize(entries), LONG)
            .await
            .unwrap();
        let look = hook(&process, &run("look", &["p"], json!({}))).await;
        insta::allow_duplicates! { insta::assert_snapshot!(show(&look[0]).replace(' ', "\n"), @r#"
        client="object"
        project="object"
        worktree="string"
        directory="string"
        experimental_workspace="object"
        serverUrl="object"
        $="function"
        keys="$,client,directory,experimental_workspace,project,serverUrl,worktree"
        text=true
        unknown="undefined"
        options={"a":1}
        url="http://outrigger.localhost/"
        cwd=true
        "#); }
        assert!(
            show(&hook(&process, &run("look", &["r"], json!({}))).await[0])
                .contains("options=\"none\"")
        );
        let logs = room.host.logs.lock().unwrap().join("\n");
        insta::allow_duplicates! { insta::assert_snapshot!(logs, @r"
        `experimental_workspace.register` does nothing here: there are no workspaces
        `experimental_workspace.register` does nothing here: there are no workspaces
        "); }
        let used = hook(&process, &run("use", &["q"], json!({}))).await;
        assert!(
            show(&used[0]).contains("outrigger plugin setup"),
            "{}",
            show(&used[0])
        );
        let shell = show(&hook(&process, &run("shell", &["q"], json!({}))).await[0]);
        let expected = match runtime.kind {
            outrigger_js::RuntimeKind::Bun => "out=\"hi\"",
            outrigger_js::RuntimeKind::Node => "! `$` needs Bun: run `outrigger plugin setup`",
        };
        assert_eq!(shell, expected);
    }
}

#[tokio::test]
async fn typescript_under_bun_and_a_way_out_under_node() {
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let (_process, loaded) = room
            .load(&[(
                "typed.ts",
                "export const P = async (input: unknown) => ({ a(): void {} });",
            )])
            .await;
        let text = summary(&loaded.plugins[0]);
        assert!(
            text == "P(a)" || text.contains("outrigger plugin setup"),
            "{text} under {:?}",
            runtime.kind
        );
    }
}

#[tokio::test]
async fn what_only_bun_imports_is_distinguished() {
    for (name, source, needs_bun) in [
        ("a.mjs", "import { Glob } from 'bun'", true),
        ("b.mjs", "import { dlopen } from 'bun:ffi'", true),
        ("c.mjs", "import './part'", true),
        ("d.mjs", "import './folder'", true),
        (
            "e.mjs",
            "const r = import.meta.require; const __require = r; __require('fs')",
            true,
        ),
        (
            "f.mjs",
            "export const P = async () => ({ x: Bun.file('x') })",
            true,
        ),
        ("g.mjs", "import './missing'", false),
        ("h.mjs", "import 'no-such-package'", false),
        ("i.mjs", "throw new Error('no')", false),
    ] {
        for runtime in runtimes() {
            let room = Room::new(&runtime);
            room.file("project/.opencode/plugin/part.ts", "export {}");
            room.file("project/.opencode/plugin/folder/index.js", "export {}");
            let (_process, loaded) = room.load(&[(name, source)]).await;
            let needed = loaded.plugins[0]
                .problems
                .iter()
                .any(|problem| problem.needs_bun);
            let expected = needs_bun && runtime.kind == outrigger_js::RuntimeKind::Node;
            assert_eq!(
                needed, expected,
                "{name} under {:?}: {:?}",
                runtime.kind, loaded.plugins[0].problems
            );
        }
    }
}

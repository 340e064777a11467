//! How plugins are found, resolved and loaded, against OpenCode's rules: a row for each rule, real plugin processes, and
//! the complete result as `plugin list` prints it.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::*;

/// Returns what `plugin list` prints about each plugin, in its order.
fn listed(world: &World, variables: &[(&str, String)], args: &[&str]) -> Vec<(String, String)> {
    let mut command = world.command(&[args, &["plugin", "list", "--json"]].concat());
    command.envs(variables.iter().map(|(name, value)| (*name, value)));
    let list = world.start(command).end().ok().json();
    list.as_array()
        .unwrap()
        .iter()
        .map(|plugin| {
            (
                plugin["spec"].as_str().unwrap().to_owned(),
                outcome(world, plugin),
            )
        })
        .collect()
}

fn outcome(world: &World, plugin: &Value) -> String {
    let words = |key: &str| -> Vec<String> {
        let list = plugin[key].as_array().unwrap();
        list.iter()
            .map(|word| word.as_str().unwrap().to_owned())
            .collect()
    };
    let mut text = format!(
        "{} {}",
        plugin["id"].as_str().unwrap(),
        plugin["stage"].as_str().unwrap()
    );
    if let Some(entry) = plugin["entry"].as_str() {
        text += &format!(
            " {}",
            Path::new(entry).file_name().unwrap().to_string_lossy()
        );
    }
    if let Some(version) = plugin["version"].as_str() {
        text += &format!(" {version}");
    }
    if !words("hooks").is_empty() {
        text += &format!(" [{}]", words("hooks").join(" "));
    }
    if let Some(message) = plugin["cause"]["message"].as_str() {
        let code = plugin["cause"]["code"].as_str().unwrap();
        // Error texts differ by runtime.
        let message = message
            .split_once(" at import: ")
            .map_or(message, |(ours, _)| ours);
        text += &format!(" {code}: {message}");
    }
    for note in words("warnings").iter().chain(&words("notes")) {
        text += &format!("; {note}");
    }
    let text = world
        .plain(&text)
        .replace(&world.root().display().to_string(), "ROOT");
    text.lines().next().unwrap_or_default().to_owned()
}

fn lines(list: &[(String, String)]) -> String {
    let lines: Vec<&str> = list.iter().map(|(_, outcome)| outcome.as_str()).collect();
    lines.join("\n")
}

/// Returns a plugin that appends a word to the prompt.
fn says(word: &str) -> String {
    format!(
        "export const P = async (_, options) => ({{ 'chat.message': async (_, o) => {{ o.parts[0].text += ' {word}' + (options?.word ?? '') }} }})\n"
    )
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn naming(entries: &[&str]) -> String {
    json!({ "plugin": entries }).to_string()
}

/// The order of the sources is the order of loading, and hooks run in it.
#[test]
fn sources_come_in_their_order() {
    let world = World::new([done()]);
    world.packages();
    let (home, root) = (world.home(), world.root());
    let user = home.join(".config/opencode");
    for (folder, word) in [
        (&user, "user"),
        (&home.join(".opencode"), "home"),
        (&root.join("named"), "named"),
    ] {
        put(&folder.join("plugin/a.js"), &says(&format!("{word}-auto")));
    }
    put(&user.join("rel.js"), &says("user"));
    put(&user.join("opencode.json"), &naming(&["./rel.js"]));
    put(&root.join("extra/rel.js"), &says("extra"));
    put(&root.join("extra/opencode.json"), &naming(&["./rel.js"]));
    world.file("rel.js", &says("project"));
    world.config(json!({ "plugin": ["./rel.js"] }));
    world.file("sub/rel.js", &says("sub"));
    world.file("sub/opencode.json", &naming(&["./rel.js"]));
    world.file("sub/content.js", &says("content"));
    world.file(".opencode/rel.js", &says("dot"));
    world.file(".opencode/opencode.json", &naming(&["./rel.js"]));
    world.file(".opencode/plugins/b.js", &says("dot-auto"));
    world.file("sub/.opencode/plugin/c.js", &says("sub-auto"));
    put(&root.join("named/rel.js"), &says("named"));
    put(&root.join("named/opencode.json"), &naming(&["./rel.js"]));

    // Without a repository there is nothing above the working folder.
    world.start(world.script("git", &["init", "-q"])).end().ok();
    let mut command = world.command(&["run", "hi"]);
    command.current_dir(world.path("sub"));
    command.env("OPENCODE_CONFIG", root.join("extra/opencode.json"));
    command.env("OPENCODE_CONFIG_DIR", root.join("named"));
    command.env("OPENCODE_CONFIG_CONTENT", naming(&["./content.js"]));
    world.start(command).end().ok();
    insta::assert_snapshot!(world.mock.last().texts("user").concat(), @"hi user extra project sub user-auto sub-auto dot dot-auto home-auto named named-auto content");
}

/// Discovers `{plugin,plugins}/*.{ts,js}` with dot files and links, and nothing else.
#[test]
fn files_are_found_by_themselves() {
    let world = World::new([done()]);
    let bun = bun().is_some();
    for name in [
        "plugin/a.js",
        "plugins/b.js",
        "plugin/.dot.js",
        "plugin/deep/no.js",
        "plugin/no.mjs",
        "plugin/no.cjs",
        "plugin/no.tsx",
        "plugin/no.json",
        "other/no.js",
    ] {
        world.packages();
        world.file(&format!(".opencode/{name}"), &says(name));
    }
    if bun {
        world.file(
            ".opencode/plugin/typed.ts",
            "export const T = async (input: unknown) => ({ event(): void {} })",
        );
    }
    world.file("elsewhere/real.js", &says("linked"));
    std::os::unix::fs::symlink(
        world.path("elsewhere/real.js"),
        world.path(".opencode/plugin/linked.js"),
    )
    .unwrap();
    let list = listed(&world, &[], &[]);
    let mut found = lines(&list);
    if !bun {
        found.push_str("\ntyped active typed.ts [event]");
    }
    insta::assert_snapshot!(found, @r"
    .dot active .dot.js [chat.message]
    a active a.js [chat.message]
    linked active linked.js [chat.message]
    typed active typed.ts [event]
    b active b.js [chat.message]
    ");
}

/// Covers the forms of an entry. A package with an exact version is taken from the cache without a network.
#[test]
fn entries_have_many_forms() {
    let world = World::new([done()]);
    world.packages();
    cached(
        &world,
        "demo",
        "1.2.3",
        r#""main": "index.js""#,
        &[("index.js", &says("demo"))],
    );
    cached(
        &world,
        "@scope/demo",
        "2.0.0",
        r#""main": "index.js""#,
        &[("index.js", &says("scoped"))],
    );
    world.file("p/rel.js", &says("rel"));
    world.file("p/abs.js", &says("abs"));
    world.file("p/url.js", &says("url"));
    world.file("p/opts.js", &says("opts"));
    world.file(
        "p/package/package.json",
        r#"{"name": "package", "main": "m.js"}"#,
    );
    world.file("p/package/m.js", &says("package"));
    put(&world.home().join("tilde.js"), &says("tilde"));
    world.config(json!({ "plugin": [
        "demo@1.2.3", "@scope/demo@2.0.0", "./p/rel.js", world.path("p/abs.js"),
        format!("file://{}", world.path("p/url.js").display()), ["./p/opts.js", { "word": "!" }], "./p/package", "~/tilde.js",
        "", "not a name", ["./p/rel.js"], 7, ["./p/never.js", "no options"],
    ] }));
    let run = world.run(&["hi"]);
    // The columns depend on the length of the folder's path.
    insta::with_settings!({ filters => vec![(r"json:1:[0-9]+:", "json:1:N:")] }, {
    insta::assert_snapshot!(format!("{}\n{}", run.code, world.plain(&run.stderr)), @r"
    2
    error: PROJECT/opencode.json:1:N: /plugin/10: expected a plugin as text, or a list of the plugin and its options, found a list of 1 [config.type]
      hint: change `/plugin/10` to a plugin as text, or a list of the plugin and its options, or remove it
    ");
    });
    world.config(json!({ "plugin": [
        "demo@1.2.3", "@scope/demo@2.0.0", "./p/rel.js", world.path("p/abs.js"),
        format!("file://{}", world.path("p/url.js").display()), ["./p/opts.js", { "word": "!" }], "./p/package", "~/tilde.js",
        "not a name",
    ] }));
    insta::assert_snapshot!(lines(&listed(&world, &[], &[])), @r#"
    demo active index.js 1.2.3 [chat.message]
    @scope/demo active index.js 2.0.0 [chat.message]
    rel active rel.js [chat.message]
    abs active abs.js [chat.message]
    url active url.js [chat.message]
    opts active opts.js [chat.message]
    package active m.js [chat.message]
    tilde active tilde.js [chat.message]
    not a name failed plugin.spec: cannot use plugin spec "not a name": it is neither a path nor an npm package name
    "#);
    world.run(&["hi"]).ok();
    insta::assert_snapshot!(world.mock.last().texts("user").concat(), @"hi demo scoped rel abs url opts! package tilde");
}

/// Of two entries for one plugin the last applies, with its options and its place, and the other is listed with the
/// reason; so is one that is switched off.
#[test]
fn what_is_named_twice_or_switched_off_is_listed_with_the_reason() {
    let world = World::new([done()]);
    world.packages();
    cached(
        &world,
        "demo",
        "1.0.0",
        r#""main": "index.js""#,
        &[("index.js", &says("one"))],
    );
    cached(
        &world,
        "demo",
        "2.0.0",
        r#""main": "index.js""#,
        &[("index.js", &says("two"))],
    );
    world.file("p/a.js", &says("a"));
    let user = world.home().join(".config/opencode");
    put(
        &user.join("opencode.json"),
        &json!({ "plugin": [["demo@1.0.0", { "word": "?" }]] }).to_string(),
    );
    world.config(json!({ "plugin": [["./p/a.js", { "word": "1" }], "opencode-copilot-auth@4", ["demo@2.0.0", { "word": "!" }], ["./p/a.js", { "word": "2" }]] }));
    insta::assert_snapshot!(lines(&listed(&world, &[], &[])), @r"
    opencode-copilot-auth@4 skipped plugin.deprecated: opencode-copilot-auth@4 is no longer loaded: what it did is part of the program
    demo active index.js 2.0.0 [chat.message]
    a active a.js [chat.message]
    demo skipped plugin.overridden: demo@1.0.0 is listed again as demo@2.0.0 in PROJECT/opencode.json, and the last entry counts
    a skipped plugin.overridden: file://PROJECT/p/a.js is listed again as file://PROJECT/p/a.js in PROJECT/opencode.json, and the last entry counts
    ");
    world.run(&["hi"]).ok();
    assert_eq!(world.mock.last().texts("user"), ["hi two! a2"]);
    for (variables, args) in [
        (vec![("OPENCODE_PURE", "1".to_owned())], &[][..]),
        (vec![], &["--pure"][..]),
    ] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(lines(&listed(&world, &variables, args)), @r"
            demo skipped plugin.overridden: demo@1.0.0 is listed again as demo@2.0.0 in PROJECT/opencode.json, and the last entry counts
            a skipped plugin.overridden: file://PROJECT/p/a.js is listed again as file://PROJECT/p/a.js in PROJECT/opencode.json, and the last entry counts
            opencode-copilot-auth@4 skipped plugin.pure: opencode-copilot-auth@4 is not loaded: `--pure` (or OPENCODE_PURE) leaves out everything from outside
            demo skipped plugin.pure: demo@2.0.0 is not loaded: `--pure` (or OPENCODE_PURE) leaves out everything from outside
            a skipped plugin.pure: file://PROJECT/p/a.js is not loaded: `--pure` (or OPENCODE_PURE) leaves out everything from outside
            ");
        }
    }
}

/// Creates a package in our cache, as the installation of this version leaves it.
fn cached(world: &World, name: &str, version: &str, manifest: &str, files: &[(&str, &str)]) {
    let dir = world.home().join(format!(
        ".cache/outrigger/plugins/{name}@{version}/node_modules/{name}"
    ));
    let manifest =
        format!(r#"{{"name": "{name}", "version": "{version}", "type": "module", {manifest}}}"#);
    put(&dir.join("package.json"), &manifest);
    for (path, text) in files {
        put(&dir.join(path), text);
    }
}

/// A rule and its plugin: from a path, or from npm if `manifest` is set.
struct Row {
    rule: &'static str,
    manifest: Option<&'static str>,
    files: &'static [(&'static str, &'static str)],
    /// The named file of the folder, or the folder itself if empty.
    file: &'static str,
}

const fn path(rule: &'static str, files: &'static [(&'static str, &'static str)]) -> Row {
    Row {
        rule,
        manifest: None,
        files,
        file: "",
    }
}

const fn npm(
    rule: &'static str,
    manifest: &'static str,
    files: &'static [(&'static str, &'static str)],
) -> Row {
    Row {
        rule,
        manifest: Some(manifest),
        files,
        file: "",
    }
}

const fn module(rule: &'static str, files: &'static [(&'static str, &'static str)]) -> Row {
    Row {
        rule,
        manifest: None,
        files,
        file: "p.js",
    }
}

const A: &str = "export default async () => ({ 'chat.message'() {} })";
const B: &str = "export const P = async () => ({ event() {} })";

const RESOLVING: &[Row] = &[
    module("3.2 a file", &[("p.js", A)]),
    path(
        "3.2 a folder with index.js",
        &[("index.js", A), ("index.mjs", B)],
    ),
    path(
        "3.2 a folder with neither manifest nor index",
        &[("other.js", A)],
    ),
    path(
        "3.2 a manifest that is not JSON",
        &[("package.json", "{"), ("index.js", A)],
    ),
    path(
        "3.2 path: exports without ./server fall back to the index",
        &[
            ("package.json", r#"{"exports": {".": "./b.js"}}"#),
            ("index.js", A),
            ("b.js", B),
        ],
    ),
    path(
        "3.2 path: the entry leads out",
        &[("package.json", r#"{"main": "../out.js"}"#)],
    ),
    path(
        "3.2 path: the entry is not there",
        &[("package.json", r#"{"main": "gone.js"}"#)],
    ),
    path(
        "3.2 path: engines are not looked at",
        &[
            (
                "package.json",
                r#"{"main": "a.js", "engines": {"opencode": ">=99"}}"#,
            ),
            ("a.js", A),
        ],
    ),
    npm(
        "3.2 npm: ./server goes before main",
        r#""exports": {"./server": "./a.js"}, "main": "b.js""#,
        &[("a.js", A), ("b.js", B)],
    ),
    npm(
        "3.2 npm: conditions of ./server",
        r#""exports": {"./server": {"types": "x", "import": "./a.js"}}"#,
        &[("a.js", A)],
    ),
    npm("3.2 npm: main", r#""main": "./a.js""#, &[("a.js", A)]),
    npm(
        "3.2 npm: exports without ./server",
        r#""exports": {".": "./a.js"}"#,
        &[("a.js", A)],
    ),
    npm(
        "3.2 npm: module where there is nothing else",
        r#""module": "a.js""#,
        &[("a.js", A)],
    ),
    npm(
        "3.2 npm: the folder itself",
        r#""description": "d""#,
        &[("index.js", A)],
    ),
    npm(
        "3.2 npm: neither an entry nor an index file",
        r#""bin": "cli.js""#,
        &[("cli.js", A)],
    ),
    npm(
        "3.2 npm: another version of OpenCode",
        r#""main": "a.js", "engines": {"opencode": ">=99"}"#,
        &[("a.js", A)],
    ),
    npm(
        "3.2 npm: this version of OpenCode",
        r#""main": "a.js", "engines": {"opencode": "^1.18.0"}"#,
        &[("a.js", A)],
    ),
    npm(
        "3.2 npm: the entry leads out",
        r#""main": "../x.js""#,
        &[("a.js", A)],
    ),
];

const MODULES: &[Row] = &[
    module(
        "3.3 V1 with an id",
        &[(
            "p.js",
            "export default { id: 'x', server: async () => ({ event() {} }), more: 1 }; export const B = async () => ({ dispose() {} })",
        )],
    ),
    module(
        "3.3 V1 by path without an id",
        &[(
            "p.js",
            "export default { server: async () => ({ event() {} }) }",
        )],
    ),
    npm(
        "3.3 V1 from npm without an id",
        r#""main": "p.js""#,
        &[(
            "p.js",
            "export default { server: async () => ({ event() {} }) }",
        )],
    ),
    module(
        "3.3 V1 for the terminal only",
        &[("p.js", "export default { id: 'x', tui() {} }")],
    ),
    module(
        "3.3 V1 for both",
        &[("p.js", "export default { id: 'x', server() {}, tui() {} }")],
    ),
    module(
        "3.3 V1 whose server is none",
        &[("p.js", "export default { id: 'x', server: 1 }")],
    ),
    module(
        "3.3 several exports",
        &[(
            "p.js",
            "export const B = async () => ({ event() {} }); export const A = async () => ({ dispose() {} })",
        )],
    ),
    module(
        "3.3 one function twice",
        &[(
            "p.js",
            "export const A = async () => ({ event() {} }); export default A; export { A as B }",
        )],
    ),
    module(
        "3.3 an object with a server",
        &[(
            "p.js",
            "export const A = { server: async () => ({ event() {} }) }",
        )],
    ),
    module(
        "3.3 one bad export among good ones",
        &[(
            "p.js",
            "export const X = 'x'; export const Y = async () => ({ event() {} })",
        )],
    ),
    module(
        "3.3 a later one throws",
        &[(
            "p.js",
            "export const A = async () => ({ event() {} }); export const B = async () => { throw new Error('no') }",
        )],
    ),
    module(
        "3.3 an answer of undefined",
        &[(
            "p.js",
            "export const A = async () => undefined; export const B = async () => ({ event() {} })",
        )],
    ),
    module(
        "3.3 nothing but undefined",
        &[("p.js", "export const A = async () => undefined")],
    ),
    module(
        "3.3 an answer that is the input",
        &[("p.js", "export const A = async (input) => input")],
    ),
    module(
        "3.3 a junk key",
        &[(
            "p.js",
            "export const A = async () => ({ name: 'n', agent: {}, event() {} })",
        )],
    ),
    module("3.3 nothing exported", &[("p.js", "export {}")]),
    module(
        "3.3 a throw at import",
        &[("p.js", "throw new Error('bad day')")],
    ),
    module("3.3 not JavaScript", &[("p.js", "export const A = (")]),
    module(
        "3.3 a bad tool among good ones",
        &[(
            "p.js",
            "export const A = async () => ({ event() {}, tool: { bad: { args: {} }, good: { description: 'g', args: {}, execute: async () => 'x' } } })",
        )],
    ),
    module(
        "3.1 7. the SDK without an installation",
        &[(
            "p.js",
            "import { createOpencodeClient } from '@opencode-ai/sdk'; export const A = async () => ({ [typeof createOpencodeClient === 'function' ? 'event' : 'dispose']() {} })",
        )],
    ),
];

fn table(rows: &[Row]) -> String {
    let world = World::new([done()]);
    world.packages();
    let mut specs = Vec::new();
    for (n, row) in rows.iter().enumerate() {
        match row.manifest {
            Some(manifest) => {
                cached(&world, &format!("row{n}"), "1.0.0", manifest, row.files);
                specs.push(format!("row{n}@1.0.0"));
            }
            None => {
                for (name, text) in row.files {
                    world.file(&format!("p/row{n}/{name}"), text);
                }
                specs.push(
                    format!("./p/row{n}/{}", row.file)
                        .trim_end_matches('/')
                        .to_owned(),
                );
            }
        }
    }
    world.config(json!({ "plugin": specs }));
    let list = listed(&world, &[], &[]);
    assert_eq!(list.len(), rows.len());
    let mut text = String::new();
    for (row, (_, outcome)) in rows.iter().zip(&list) {
        let (_, outcome) = outcome.split_once(' ').unwrap();
        text += &format!("{}: {outcome}\n", row.rule);
    }
    text
}

#[test]
fn an_entry_is_resolved_by_the_rules() {
    insta::assert_snapshot!(table(RESOLVING), @r#"
    3.2 a file: active p.js [chat.message]
    3.2 a folder with index.js: active index.js [chat.message]
    3.2 a folder with neither manifest nor index: failed plugin.no_entry: plugin file://PROJECT/p/row2: PROJECT/p/row2 has no package.json and no index file
    3.2 a manifest that is not JSON: failed plugin.manifest: plugin file://PROJECT/p/row3: cannot read PROJECT/p/row3/package.json: EOF while parsing an object at line 1 column 1
    3.2 path: exports without ./server fall back to the index: active index.js [chat.message]
    3.2 path: the entry leads out: failed plugin.entry_outside: plugin file://PROJECT/p/row5: its entry "../out.js" leads out of the package folder
    3.2 path: the entry is not there: failed plugin.entry_missing: plugin file://PROJECT/p/row6: its entry PROJECT/p/row6/gone.js does not exist
    3.2 path: engines are not looked at: active a.js [chat.message]
    3.2 npm: ./server goes before main: active a.js 1.0.0 [chat.message]
    3.2 npm: conditions of ./server: active a.js 1.0.0 [chat.message]
    3.2 npm: main: active a.js 1.0.0 [chat.message]
    3.2 npm: exports without ./server: skipped plugin.no_server_entry: row11@1.0.0 has `exports` but no server entry (`exports["./server"]` or `main`), so it is not a server plugin
    3.2 npm: module where there is nothing else: active a.js 1.0.0 [chat.message]
    3.2 npm: the folder itself: active index.js 1.0.0 [chat.message]
    3.2 npm: neither an entry nor an index file: failed plugin.no_entry: plugin row14@1.0.0: HOME/.cache/outrigger/plugins/row14@1.0.0/node_modules/row14 has a package.json without an entry (`exports["./server"]` or `main`) and no index file
    3.2 npm: another version of OpenCode: failed plugin.incompatible: plugin row15@1.0.0 wants opencode >=99; this host is compatible with 1.18.33
    3.2 npm: this version of OpenCode: active a.js 1.0.0 [chat.message]
    3.2 npm: the entry leads out: failed plugin.entry_outside: plugin row17@1.0.0: its entry "../x.js" leads out of the package folder
    "#);
}

#[test]
fn a_module_becomes_hooks_by_the_rules() {
    insta::assert_snapshot!(table(MODULES), @r"
    3.3 V1 with an id: active p.js [event]
    3.3 V1 by path without an id: failed p.js plugin.export: plugin p#2 failed at export: a plugin from a path must export an `id`
    3.3 V1 from npm without an id: active p.js 1.0.0 [event]
    3.3 V1 for the terminal only: failed p.js plugin.export: plugin p#3 failed at export: the default export has no `server` function
    3.3 V1 for both: failed p.js plugin.export: plugin p#4 failed at export: the default export has both `server` and `tui`
    3.3 V1 whose server is none: failed p.js plugin.export: plugin p#5 failed at export: the default export has no `server` function
    3.3 several exports: active p.js [dispose event]
    3.3 one function twice: active p.js [event]
    3.3 an object with a server: active p.js [event]
    3.3 one bad export among good ones: active p.js [event]; export `X` is not a function; it was skipped
    3.3 a later one throws: active p.js [event]; one of its functions failed: export `B`: no
    3.3 an answer of undefined: active p.js [event]; export `A` answered with undefined, not with hooks; it was dropped
    3.3 nothing but undefined: failed p.js plugin.load: plugin p#12 failed at hooks: export `A` answered with undefined, not with hooks; it was dropped
    3.3 an answer that is the input: active p.js; it has no hooks and no tools
    3.3 a junk key: active p.js [event]
    3.3 nothing exported: failed p.js plugin.export: plugin p#15 failed at export: the module exports nothing
    3.3 a throw at import: failed p.js plugin.import: plugin p#16 failed
    3.3 not JavaScript: failed p.js plugin.import: plugin p#17 failed
    3.3 a bad tool among good ones: active p.js [event]; tool `bad` was skipped: it has no `execute` function
    3.1 7. the SDK without an installation: active p.js [event]
    ");
}

/// Plugins that read and edit OpenCode's database (oh-my-opencode does) get a separate file for it.
#[test]
fn no_plugin_edits_the_database_of_opencode() {
    let world = World::new([done()]);
    let real = world.home().join(".local/share/opencode/opencode.db");
    put(&real, "sessions of years");
    world.plugin(
        "p",
        "import fs from 'node:fs'
         import os from 'node:os'
         import path from 'node:path'
         export const P = async ({ directory }) => {
           const file = path.join(process.env.XDG_DATA_HOME ?? os.homedir() + '/.local/share', 'opencode/opencode.db')
           const before = fs.readFileSync(file, 'utf8')
           fs.appendFileSync(file, 'edited')
           fs.writeFileSync(directory + '/seen.txt', JSON.stringify([before, fs.readFileSync(file, 'utf8')]))
           return {}
         }",
    );
    world.run(&["hi"]).ok();
    assert_eq!(world.read("seen.txt"), r#"["","edited"]"#);
    assert_eq!(fs::read_to_string(real).unwrap(), "sessions of years");
}

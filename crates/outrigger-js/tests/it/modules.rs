//! Shared modules, the SDK client and `fetch` over the channel.

use std::fmt::Write as _;

use outrigger_stdx::text::hex;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::support::{LONG, Room, hook, run, runtimes, show, tool_run};

/// Stands for the real SDK: what it does with its options is all that the host script relies on.
const SDK: &str = "export function createOpencodeClient(options) {
    const call = (method, path, body) => options.fetch(new Request(options.baseUrl + path, { method, body,
        headers: { 'x-opencode-directory': encodeURIComponent(options.directory) } })).then((r) => r.text());
    return { options, get: (path) => call('GET', path), post: (path, body) => call('POST', path, body) };
}";

/// Stands for zod v4: the parts that the host script uses.
const ZOD: &str = "const make = (type, check, more = {}) => ({ _zod: { def: { type, ...more }, optin: more.optional },
        description: more.description,
        describe: (description) => make(type, check, { ...more, description }),
        optional: () => make(type, check, { ...more, optional: 'optional' }),
        safeParse: (value) => check(value) || (more.optional && value === undefined)
            ? { success: true } : { success: false, error: { issues: [{ path: [], message: `expected ${type}` }] } } });
    export const string = () => make('string', (value) => typeof value === 'string');
    export const number = () => make('number', (value) => typeof value === 'number');
    export const object = (shape) => ({ shape });
    export const registry = () => { const map = new Map(); map.add = map.set; return map };
    export const toJSONSchema = ({ shape }, { io, metadata }) => {
        const entries = Object.entries(shape).map(([key, zodSchema]) => {
            return [key, { type: zodSchema._zod.def.type, ...metadata.get(zodSchema) }];
        });
        return { made: io, type: 'object', properties: Object.fromEntries(entries) };
    };
    export const z = { string, number, object, registry, toJSONSchema };";

fn shared(room: &Room) -> String {
    let file = |name: &str, text: &str| room.file(&format!("modules/node_modules/{name}"), text);
    file(
        "zod/package.json",
        r#"{"name":"zod","type":"module","exports":{".":"./index.js","./v4":"./index.js"}}"#,
    );
    file("zod/index.js", ZOD);
    file(
        "@opencode-ai/plugin/package.json",
        r#"{"name":"@opencode-ai/plugin","type":"module","exports":"./index.js"}"#,
    );
    file(
        "@opencode-ai/plugin/index.js",
        "import { z } from 'zod'; export const tool = (definition) => definition; tool.schema = z;",
    );
    room.file("modules/package.json", "{}");
    room.root.join("modules").display().to_string()
}

const USER: &str = "import { tool } from \"@opencode-ai/plugin\";
import { helper } from './lib/helper.mjs';
export const P = async () => ({ tool: { greet: tool({ description: 'greets', args: {
    name: tool.schema.string().describe('whom'), times: tool.schema.number().optional() },
    execute: async (args) => `${helper} ${args.name} ${args.times}` }) },
    later: async (_, output) => { output.same = (await import('zod')).z === tool.schema; output.url = import.meta.url } });";

#[tokio::test]
async fn plugins_with_no_copy_of_their_own_get_the_hosts() {
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let modules = shared(&room);
        room.file(
            "project/.opencode/plugin/lib/helper.mjs",
            "import { z } from 'zod/v4'; export const helper = typeof z.string;",
        );
        let cjs = "const { tool } = require('@opencode-ai/plugin'); exports.Q = async () => ({ kind: typeof tool, [typeof tool]() {} });";
        let mut entries = vec![room.plugin("p", USER)];
        // `require` of a module is something that Node 20 cannot do.
        if runtime.kind == outrigger_js::RuntimeKind::Bun {
            entries.push(room.plugin("q.cjs", cjs));
        }
        let mut initialize = room.initialize(entries);
        initialize.modules = Some(modules);
        let process = room.start().await.unwrap();
        let loaded = process.initialize(&initialize, LONG).await.unwrap();
        let all: Vec<_> = loaded
            .plugins
            .iter()
            .flat_map(|plugin| &plugin.problems)
            .collect();
        assert!(all.is_empty(), "{all:?} under {:?}", runtime.kind);
        let tool = &loaded.plugins[0].instances[0].tools[0];
        assert_eq!(
            tool.schema,
            json!({"made": "input", "type": "object", "properties":
            {"name": {"type": "string", "description": "whom"}, "times": {"type": "number"}}})
        );
        let later = show(&hook(&process, &run("later", &["p"], json!({}))).await[0]);
        assert!(
            later.contains("same=true") && later.contains("plugin/p.mjs"),
            "{later}"
        );
        let call = |args| {
            let run = tool_run("p", "greet", args);
            let process = &process;
            async move { process.tool_run(&run, LONG, std::future::pending()).await }
        };
        assert_eq!(
            call(json!({"name": "Ann", "times": 2}))
                .await
                .unwrap()
                .output,
            "function Ann 2"
        );
        assert_eq!(
            call(json!({"name": "Ann"})).await.unwrap().output,
            "function Ann undefined"
        );
        let refused = call(json!({"name": 1, "times": "x"}))
            .await
            .unwrap_err()
            .to_string();
        insta::allow_duplicates! { insta::assert_snapshot!(refused, @r"
        The greet tool was called with invalid arguments: name: expected string; times: expected number.
        Please rewrite the input so it satisfies the expected schema.
        "); }
    }
}

#[tokio::test]
async fn a_plugins_own_copy_wins() {
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let modules = shared(&room);
        let own = "project/.opencode/node_modules/zod";
        room.file(
            &format!("{own}/package.json"),
            r#"{"name":"zod","type":"module","exports":"./index.js"}"#,
        );
        room.file(&format!("{own}/index.js"), "export const own = true;");
        let plugin = "import * as zod from 'zod'; export const P = async () => ({ [zod.own ? 'own' : 'shared']() {} });";
        let mut initialize = room.initialize(vec![room.plugin("p", plugin)]);
        initialize.modules = Some(modules);
        let process = room.start().await.unwrap();
        let loaded = process.initialize(&initialize, LONG).await.unwrap();
        assert_eq!(
            loaded.plugins[0].instances[0].hooks,
            ["own"],
            "under {:?}",
            runtime.kind
        );
    }
}

#[tokio::test]
async fn the_client_and_fetch_of_the_hosts_origin_go_over_the_channel() {
    let plugin = "export const P = async ({ client, serverUrl }) => ({
        get: async (_, o) => { o.got = JSON.parse(await client.get('/session?limit=2')) },
        post: async (_, o) => { o.got = await client.post('/echo', 'k\u{e9}y \\ud800') },
        fetch: async (_, o) => {
            const url = new URL('/global/health', serverUrl);
            const answers = [await fetch(url), await fetch(url.href), await fetch(new Request(url)), await fetch(url + '/missing', { method: 'DELETE' }),
                await fetch('http://outrigger.localhost/missing')];
            o.status = answers.map((answer) => answer.status);
            o.path = (await answers[0].json()).path;
            o.elsewhere = await fetch('data:,real').then((answer) => answer.text());
        },
        printed: async (_, o) => { o.ok = JSON.stringify({ client }).includes('baseUrl') },
        stop: async (_, o) => {
            const control = new AbortController();
            setTimeout(() => control.abort(), 50);
            o.late = (await fetch(new URL('/slow/late', serverUrl))).status;
            o.ended = await fetch(new URL('/slow', serverUrl), { signal: control.signal }).catch((error) => error.name);
        } });";
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let sdk = room.file("modules/sdk.mjs", SDK);
        let mut initialize = room.initialize(vec![room.plugin("p", plugin)]);
        initialize.sdk = Some(sdk.display().to_string());
        let process = room.start().await.unwrap();
        let loaded = process.initialize(&initialize, LONG).await.unwrap();
        assert!(
            loaded.plugins[0].problems.is_empty(),
            "{:?}",
            loaded.plugins[0].problems
        );
        let mut shown = Vec::new();
        for name in ["get", "post", "fetch", "printed", "stop"] {
            shown.push(show(
                &hook(&process, &run(name, &["p"], json!({}))).await[0],
            ));
        }
        insta::allow_duplicates! { insta::assert_snapshot!(shown.join("\n"), @r#"
        got={"method":"GET","path":"/session?limit=2"}
        got="kéy �"
        status=[200,200,200,200,404] path="/global/health" elsewhere="real"
        ok=true
        late=504 ended="AbortError"
        "#); }
        let requests = room.host.sdk.lock().unwrap();
        assert!(
            requests[0]
                .headers
                .iter()
                .any(|(name, _)| name == "x-opencode-directory")
        );
        assert_eq!(requests[0].body, None);
    }
}

/// The modules beside a plugin, and a package that it imports.
const SOURCES: [(&str, &str); 6] = [
    (
        "lib/helper.mjs",
        "export const helper = import.meta.url.split('/').pop();",
    ),
    // In a circle with the next.
    (
        "lib/common.cjs",
        "exports.name = require('node:path').basename(__filename); exports.other = require('./other').other;",
    ),
    (
        "lib/other.js",
        "#!/usr/bin/env node\nmodule.exports = { other: `${require('./common.cjs').name}+${module.children.length >= 0}` };",
    ),
    (
        "node_modules/dep/package.json",
        r#"{"name":"dep","main":"./main.js"}"#,
    ),
    (
        "node_modules/dep/main.js",
        "module.exports = () => require('./inner').inner; module.exports.named = 1;",
    ),
    ("node_modules/dep/inner.js", "exports.inner = 'inner';"),
];

/// Sources run as they were hashed: unchanged ones load in every form as without the check, changed ones do not.
#[tokio::test]
async fn sources_run_as_they_were_hashed_or_not_at_all() {
    let forms = [
        (
            "typed.ts",
            "import type { X } from './none'; enum A { x = 3 }; import { helper } from './lib/helper.mjs'; import common, { name } from './lib/common.cjs';
            import dep from 'dep'; export { default } from './lib/common.cjs';
            export const P = async () => ({ [`${A.x}${helper}${common.name}${name === common.name}${common.other}${dep()}`]() {} });",
        ),
        (
            "common.js",
            "const common = require('./lib/common.cjs'); const dep = require('dep');
            exports.P = async () => ({ [`${common.other}${dep.named}${(await import('./lib/helper.mjs')).helper}`]() {} });",
        ),
        (
            "late.mjs",
            "import { createRequire } from 'node:module';
            export const P = async () => ({ [(await import('./lib/helper.mjs')).helper + createRequire(import.meta.url)('./lib/common.cjs').other]() {} });",
        ),
    ];
    for runtime in runtimes() {
        let bun = runtime.kind == outrigger_js::RuntimeKind::Bun;
        let room = Room::new(&runtime);
        let folder = "project/.opencode/plugin";
        for (name, text) in SOURCES {
            room.file(&format!("{folder}/{name}"), text);
        }
        let folder = room.root.canonicalize().unwrap().join(folder);
        let mut shown = String::new();
        for (name, text) in forms {
            if !bun && name.ends_with("ts") {
                continue;
            }
            let entry = room.plugin(name, text);
            let sources: Vec<&str> = SOURCES
                .map(|(name, _)| name)
                .into_iter()
                .chain([name])
                .filter(|it| !it.ends_with("json"))
                .collect();
            // Each is changed, and the last time one of the package was not there.
            for (at, wrong) in sources.iter().chain(&["", "inner.js"]).enumerate() {
                let mut initialize = room.initialize(vec![entry.clone()]);
                for file in sources
                    .iter()
                    .filter(|it| at <= sources.len() || !it.ends_with(wrong))
                {
                    let path = folder.join(file);
                    let hash = Sha256::digest(std::fs::read(&path).unwrap());
                    let hash = if file == wrong {
                        "0".repeat(64)
                    } else {
                        hex(&hash)
                    };
                    let path = path.display().to_string();
                    initialize.sources.hashes.insert(path, hash);
                }
                let package = folder.join("node_modules/dep").display().to_string();
                initialize.sources.packages.insert(package);
                let process = room.start().await.unwrap();
                let loaded = process.initialize(&initialize, LONG).await.unwrap();
                let plugin = &loaded.plugins[0];
                let instances = plugin.instances.iter();
                let hooks: Vec<_> = instances.flat_map(|it| it.hooks.clone()).collect();
                let problems: Vec<_> = plugin
                    .problems
                    .iter()
                    .map(|it| {
                        if it.message.contains("is not what was trusted") {
                            format!("{} refused", it.stage)
                        } else {
                            format!("{} {}", it.stage, it.message)
                        }
                    })
                    .collect();
                writeln!(shown, "{name} [{wrong}]: {hooks:?} {problems:?}").unwrap();
            }
        }
        insta::assert_snapshot!(format!("sources_{:?}", runtime.kind), shown);
    }
}

/// Files that point elsewhere than to what was checked, and those that a plugin names by path.
const LED: [(&str, &str); 18] = [
    (
        "package.json",
        r##"{"name":"led","imports":{"#inner":"./evil/e.mjs"}}"##,
    ),
    (
        "tsconfig.json",
        r#"{"compilerOptions":{"paths":{"@/*":["./evil/*.mjs"]}}}"#,
    ),
    ("known.mjs", "export default 'known'"),
    ("dir/name.mjs", "export default 'evil'"),
    ("absent.mjs", "export default 'evil'"),
    ("own.mjs", "export default 'own'"),
    (
        "own.cjs",
        "module.exports = { default: `own ${require('other')}` }",
    ),
    (
        "far.mjs",
        "import other from 'other'; import more from './own.mjs'; export default `far ${other} ${more}`",
    ),
    ("evil/e.mjs", "export default 'evil'"),
    ("evil/none", "module.exports = 'evil'"),
    ("node_modules/dep/package.json", r#"{"main":"i.js"}"#),
    (
        "node_modules/dep/i.js",
        "try { module.exports = require('optional') } catch { module.exports = 'dep' }",
    ),
    ("node_modules/optional/package.json", r#"{"main":"i.js"}"#),
    ("node_modules/optional/i.js", "module.exports = 'evil'"),
    ("node_modules/other/index.js", "module.exports = 'other'"),
    (
        "node_modules/moved/package.json",
        r#"{"main":"../../evil/e.mjs"}"#,
    ),
    ("node_modules/moved/i.js", "module.exports = 'moved'"),
    (
        "node_modules/bare/package.json",
        r#"{"main":"../../evil/none"}"#,
    ),
];

/// A link to a file is replaced after the check, or a new file is found first: only checked files run, as do those that a plugin
/// names by a computed path.
#[tokio::test]
async fn what_was_not_looked_at_is_not_run() {
    let plugin = |body: &str| {
        format!(
            "import {{ createRequire }} from 'node:module'; const require = createRequire(import.meta.url);
            const at = (name) => import.meta.url.replace('file://', '').replace(/[^/]*$/, '') + name;
            let said; try {{ const found = await (async () => {body})(); said = found?.default ?? found }} catch {{ said = 'refused' }}
            export const P = async () => ({{ [String(said)]() {{}} }});"
        )
    };
    for runtime in runtimes() {
        let bun = runtime.kind == outrigger_js::RuntimeKind::Bun;
        let room = Room::new(&runtime);
        let folder = "project/.opencode/plugin";
        for (name, text) in LED {
            room.file(&format!("{folder}/{name}"), text);
        }
        let folder = room.root.canonicalize().unwrap().join(folder);
        let at = |name: &str| folder.join(name).display().to_string();
        std::os::unix::fs::symlink("evil/e.mjs", at("linked.mjs")).unwrap();
        for (body, want) in [
            ("import('./known.mjs')", "known"),
            ("import('./known.mjs?x=1')", "known"),
            ("import('dep')", "dep"),
            ("require('dep')", "dep"),
            ("import('moved')", "refused"),
            ("require('moved')", "refused"),
            ("import('other')", "refused"),
            ("import('#inner')", "refused"),
            ("import('@/e')", "refused"),
            ("import('./absent.mjs')", "refused"),
            ("import('./linked.mjs')", "refused"),
            ("import('./dir/name')", "refused"),
            // Of a file without an extension Bun asks nobody, so the module that names one is not run.
            ("require('bare')", if bun { "" } else { "refused" }),
            ("import('./' + 'own.mjs')", "own"),
            ("require('./' + 'own.cjs')", "own other"),
            ("import(at('far.mjs'))", "far other own"),
        ] {
            let entry = room.plugin("led.mjs", &plugin(body));
            let mut initialize = room.initialize(vec![entry]);
            for file in ["led.mjs", "known.mjs", "node_modules/dep/i.js"] {
                let hash = Sha256::digest(std::fs::read(at(file)).unwrap());
                let hashes = &mut initialize.sources.hashes;
                hashes.insert(at(file), hex(&hash));
            }
            initialize.sources.packages.insert(at("node_modules/dep"));
            let named = ["absent.mjs", "linked.mjs", "dir/name"];
            initialize.sources.unresolved.extend(named.map(at));
            let process = room.start().await.unwrap();
            let loaded = process.initialize(&initialize, LONG).await.unwrap();
            let instances = loaded.plugins[0].instances.iter();
            let said: Vec<_> = instances.flat_map(|it| it.hooks.clone()).collect();
            assert_eq!(
                said.join(" "),
                want,
                "{:?}: {body} {:?}",
                runtime.kind,
                loaded.plugins[0].problems
            );
        }
    }
}

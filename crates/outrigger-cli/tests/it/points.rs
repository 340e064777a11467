//! Hook points of our own: each fires as often as it happens (C1, C5, A4).

use std::collections::BTreeMap;

use serde_json::json;

use crate::connectors;
use crate::support::*;
use crate::user_grants::granting;

const PLUGIN: &str = r"
import fs from 'node:fs'
const names = ['session.before_create', 'run.after_start', 'execute.before_step', 'llm.before_request', 'llm.after_response',
  'execute.after_step', 'message.completed', 'tool.on_error', 'run.on_error', 'session.on_error', 'hook.on_error']
export const Points = async () => {
  const hooks = { 'chat.headers': async (input) => { if (input.agent === 'build') throw new Error('broken') } }
  for (const name of names) hooks[name] = async (input, output) =>
    fs.appendFileSync('points.log', name + ' ' + (input.step ?? input.code ?? input.hook ?? output.parts?.length ?? '') + '\n')
  return hooks
}
";

fn counts(world: &World) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in world.lines("points.log") {
        *counts.entry(line.trim().to_owned()).or_default() += 1;
    }
    counts
}

#[test]
fn each_is_reached_as_often_as_it_happens() {
    let missing = call("read", json!({ "filePath": "missing.txt" }));
    let world = World::new([turn([missing]), done()]);
    world.plugin("points", PLUGIN);
    world.run(&["hi"]).ok();
    let want = [
        ("execute.after_step", 2),
        ("execute.before_step 1", 1),
        ("execute.before_step 2", 1),
        ("hook.on_error chat.headers", 2),
        ("llm.after_response", 2),
        // The title's request.
        ("llm.before_request", 1),
        ("llm.before_request 1", 1),
        ("llm.before_request 2", 1),
        ("message.completed 3", 2),
        ("run.after_start", 1),
        ("session.before_create", 1),
        ("tool.on_error tool.failed", 1),
    ];
    let want: BTreeMap<String, usize> = want.map(|(name, n)| (name.to_owned(), n)).into();
    assert_eq!(counts(&world), want);
    world.verify();
}

/// A call that is refused before it reaches the runtime counts as failed, too.
#[test]
fn a_call_that_is_refused_as_a_loop_is_reported() {
    let again = || turn([call("read", json!({ "filePath": "hello.txt" }))]);
    let world = World::new([again(), again(), again(), again(), done()]);
    world.plugin("points", PLUGIN);
    world.run(&["hi"]);
    let counts = counts(&world);
    assert_eq!(
        counts.get("tool.on_error tool.loop"),
        Some(&1),
        "{counts:?}"
    );
    world.verify();
}

/// A handler that throws there has failed, which is not a refusal (C5): the request is sent, and the failure is reported.
#[test]
fn a_throw_before_a_request_costs_nothing_and_is_reported() {
    let world = World::new([done()]);
    let policy = "export const P = async () => ({ 'llm.before_request': async () => { throw new Error('not on my watch') } })";
    world.plugin("policy", policy);
    world.plugin("points", PLUGIN);
    world.run(&["hi"]).ok();
    assert_eq!(world.mock.requests().len(), 1);
    // The title's request reaches the point, too.
    assert_eq!(
        counts(&world).get("hook.on_error llm.before_request"),
        Some(&2)
    );
}

/// A4: on request, a plugin's `chat.message` covers completed assistant messages, with every part in its final state.
#[test]
fn chat_message_can_be_about_the_assistant() {
    let world = World::new([
        turn([call("read", json!({ "filePath": "missing.txt" }))]),
        done(),
    ]);
    let source = r"
import fs from 'node:fs'
export const P = async () => ({ 'chat.message': async (_, o) => fs.appendFileSync('said.log',
  o.message.role + ' ' + o.parts.map((p) => p.state?.status ?? p.type).join(',') + '\n') })
";
    world.plugin("scribe", source);
    world.plugin("usual", &source.replace("said.log", "usual.log"));
    world.settings("[plugins.scribe]\nchat_message = \"assistant\"\n");
    world.run(&["hi"]).ok();
    let mut said = world.lines("said.log");
    said.sort();
    assert_eq!(
        said,
        [
            "assistant step-start,error,step-finish",
            "assistant step-start,text,step-finish"
        ]
    );
    assert_eq!(world.lines("usual.log"), ["user text"]);
}

/// Notify-only points arrive in the order in which a turn reaches them, one after the other, however long a handler takes;
/// the turn continues meanwhile (C1, C4).
#[test]
fn notify_only_points_come_in_order_and_hold_nothing_up() {
    const STEPS: usize = 4;
    let made = |n: usize| {
        call(
            "write",
            json!({ "filePath": format!("made-{n}.txt"), "content": "x" }),
        )
    };
    let steps = (1..=STEPS).map(|n| turn([made(n)]));
    let world = World::new(steps.chain([done()]));
    world.config(json!({ "permission": "allow" }));
    world.plugin(
        "order",
        r"
import fs from 'node:fs'
const names = ['session.after_append_entry', 'run.after_start', 'execute.before_step', 'llm.after_response', 'message.completed']
const pause = (ms) => new Promise((done) => setTimeout(done, ms))
export const P = async ({ directory }) => {
  const hooks = {}, say = (line) => fs.appendFileSync(directory + '/order.log', line + '\n')
  for (const name of names) hooks[name] = async (input) => {
    say(name + ' ' + (input.step ?? input.role ?? ''))
    // The first waits for what a later step makes: it would be late if the turn waited for it.
    if (input.step === 1) for (let n = 0; n < 400 && !fs.existsSync(directory + '/made-3.txt'); n++) await pause(10)
    if (input.step === 1) say('made ' + fs.existsSync(directory + '/made-3.txt'))
    await pause(name.length % 7)
    say('ended ' + name)
  }
  return hooks
}
",
    );
    world.run(&["hi"]).ok();
    let mut want = Vec::new();
    let mut counts = |name: &str, about: String| {
        want.push(format!("{name} {about}"));
        if about == "1" {
            want.push("made true".to_owned());
        }
        want.push(format!("ended {name}"));
    };
    counts("session.after_append_entry", "user".into());
    counts("run.after_start", String::new());
    for step in 1..=STEPS + 1 {
        counts("execute.before_step", step.to_string());
        counts("llm.after_response", String::new());
        counts("session.after_append_entry", "assistant".into());
        counts("message.completed", String::new());
    }
    assert_eq!(world.lines("order.log"), want);
    world.verify();
}

/// C3: a handler of `llm.before_request` sees the request and may change it; it cannot add a tool that was not offered.
#[test]
fn a_request_may_be_changed_when_it_is_complete() {
    let world = World::new([done()]);
    world.plugin(
        "policy",
        "import fs from 'node:fs'
         export const P = async ({ directory }) => ({ 'llm.before_request': async (input, output) => {
           if (input.step === undefined) return
           fs.writeFileSync(directory + '/seen.json', JSON.stringify(output))
           output.tools = output.tools.filter((tool) => tool.name !== 'bash')
           output.tools.push({ name: 'made-up', description: 'x', parameters: {} })
           return { action: 'patch', patch: { params: { ...output.params, temperature: 0.25 } } }
         } })",
    );
    world.run(&["a question"]).ok();
    let seen = world.read("seen.json");
    assert!(
        seen.contains("a question") && seen.contains("\"bash\""),
        "{seen}"
    );
    let request = world.mock.last();
    assert_eq!(request.body["temperature"], 0.25);
    let tools = request.tools();
    let has = |name: &str| tools.iter().any(|it| it == name);
    assert!(has("read") && !has("bash") && !has("made-up"), "{tools:?}");
    world.verify();
}

/// C3: a handler of `execute.after_step` may change the results of the step's calls before the model reads them. A result
/// longer than the limit is cut, and a failed call stays failed.
#[test]
fn what_a_step_leaves_may_be_changed_when_it_is_over() {
    let world = World::new([
        turn([
            call("read", json!({ "filePath": "hello.txt" })),
            call("read", json!({ "filePath": "missing.txt" })),
            call("glob", json!({ "pattern": "*.txt" })),
        ]),
        done(),
    ]);
    world.plugin(
        "policy",
        "import fs from 'node:fs'
         export const P = async ({ directory }) => ({ 'execute.after_step': async (input, output) => {
           fs.appendFileSync(directory + '/seen', input.finish + ' ' + output.results.map((it) => it.tool) + '\\n')
           for (const it of output.results) {
             if (it.tool === 'read') it.output = 'the file as the policy has it'
             if (it.tool === 'glob') it.output = 'x'.repeat(1 << 20)
           }
           output.results.push({ callID: 'made-up', tool: 'bash', output: 'nobody asked' })
         } })",
    );
    world.run(&["a question"]).ok();
    assert_eq!(world.lines("seen"), ["tool-calls read,glob", "stop "]);
    let sent = world.mock.last().body["messages"].to_string();
    assert!(sent.contains("the file as the policy has it"), "{sent}");
    assert!(sent.len() < 80 * 1024, "{}", sent.len());
    assert!(
        sent.contains("missing.txt") && !sent.contains("nobody asked"),
        "{sent}"
    );
    let export = world.export();
    let parts = export["messages"][1]["parts"].as_array().unwrap();
    let of = |tool: &str| parts.iter().find(|it| it["tool"] == tool).unwrap();
    assert_eq!(
        of("read")["state"]["output"],
        "the file as the policy has it"
    );
    assert_eq!(
        of("glob")["state"]["output"].as_str().unwrap().len(),
        50 * 1024
    );
    world.verify();
}

/// C4: a hook's addition is read together with the error, and the error stays; a handler that throws removes nothing.
#[test]
fn context_stands_behind_the_error_of_a_request() {
    let world = World::new([json!({ "status": 400, "error": "no such thing" })]);
    world.plugin(
        "explains",
        "export const P = async () => ({ 'llm.on_error': async (input, output) => {
           output.context.push('asked in step ' + input.step, 7)
           output.error = 'all is well'
         },
         'run.on_error': async (input, output) => { output.context.push('the turn of ' + input.sessionID.slice(0, 4)) } })",
    );
    world.plugin(
        "throws",
        "export const P = async () => ({ 'llm.on_error': async () => { throw new Error('broken') } })",
    );
    let run = world.run(&["hi"]);
    assert!(
        run.stderr.contains("no such thing") && run.stderr.contains("asked in step 1"),
        "{}",
        run.stderr
    );
    let export = world.export();
    let message = &export["messages"][1]["info"]["error"]["data"]["message"];
    let message = message.as_str().unwrap();
    assert!(message.contains("no such thing"), "{message}");
    assert!(message.ends_with("\n\nasked in step 1"), "{message}");
    assert!(!message.contains("all is well"), "{message}");
    // The other error points are notify-only: the addition is shown next to the error.
    assert!(
        run.stderr.contains("run.on_error: the turn of ses_"),
        "{}",
        run.stderr
    );
    world.verify();
}

/// Shown next to the error if that is published before any hook could add to it (C4).
#[test]
fn context_of_errors_is_published_beside_them() {
    let failing = json!({ "status": 400, "error": "no such thing" });
    let world = World::new([turn([connectors::write()]), failing]);
    // What executes elsewhere, and fails there.
    world.file("tools/acme/main.js", connectors::BOX);
    granting(
        &world,
        "[connectors.box]\nplugin = \"acme\"\n[[routes]]\nprovider = \"box\"\n",
    );
    connectors::manifest(&world, "connectors = [\"box\"]\ntools = []");
    let points = [
        "bridge.on_error",
        "execute.on_error",
        "hook.on_error",
        "run.on_error",
        "runtime.route.on_error",
        "session.on_error",
    ];
    let adds = points.map(|it| {
        format!("'{it}': async (input, output) => {{ output.context.push('seen at {it}') }},")
    });
    let adds = adds.concat();
    world.plugin(
        "explains",
        &format!("export const P = async () => ({{ {adds} }})"),
    );
    world.plugin(
        "throws",
        "export const P = async () => ({ 'chat.message': async () => { throw new Error('broken') } })",
    );
    let server = world.serve(&["--no-auth"]);
    let session = server.post("/session", &json!({ "title": "x" })).json(200);
    let mut events = server.events("/event");
    let path = format!("/session/{}/message", session["id"].as_str().unwrap());
    let prompt = json!({ "parts": [{ "type": "text", "text": "hello" }] });
    server.post(&path, &prompt);
    let mut seen = BTreeMap::new();
    while seen.len() < points.len() {
        let said = events.until("outrigger.error.context")["properties"].take();
        let point = said["point"].as_str().unwrap().to_owned();
        seen.insert(point, (said["context"].clone(), said["sessionID"].clone()));
    }
    for point in points {
        let want = (json!([format!("seen at {point}")]), session["id"].clone());
        assert_eq!(seen[point], want, "{point}");
    }
}

/// Failures of notify-only hooks are treated like others: in the log, at `hook.on_error` and in the audit (C5, C13).
#[test]
fn failures_that_nobody_waits_for_are_reported_and_recorded() {
    let world = World::new([done()]);
    world.plugin(
        "fails",
        "const no = () => { const began = performance.now(); while (performance.now() < began + 5); throw new Error('no') }
         export const P = async () => ({ config: no, event: no, dispose: no })",
    );
    world.plugin(
        "hears",
        "import fs from 'node:fs'
         export const P = async ({ directory }) => ({
           config: async (config) => { config.username = 'hears' },
           event: async () => { await new Promise((done) => setTimeout(done, 5)) },
           dispose: () => {},
           'hook.on_error': async (input) => fs.appendFileSync(directory + '/heard', input.plugin + ' ' + input.hook + '\\n'),
         })",
    );
    let run = world.run(&["hi"]).ok();
    let mut heard = world.lines("heard");
    heard.sort();
    let events = heard.iter().filter(|it| *it == "fails event").count();
    heard.dedup();
    assert_eq!(heard, ["fails config", "fails event"]);
    // The limit per minute; one run takes no longer.
    assert!((1..=60).contains(&events), "{events}");
    assert!(
        run.stderr.contains("plugin fails: dispose hook failed: no"),
        "{}",
        run.stderr
    );
    let listed = |hook: &str| -> Vec<(String, bool, String)> {
        let args = ["audit", "list", "--hook", hook, "--json", "-n", "1000"];
        let records = world.cli(&args).ok().lines();
        let of = |it: &serde_json::Value| {
            let text = |key: &str| it[key].as_str().unwrap_or_default().to_owned();
            (text("pluginId"), it["errored"] == true, text("decision"))
        };
        records.iter().map(of).collect()
    };
    let fails = || ("fails".to_owned(), true, "failed_open".to_owned());
    assert_eq!(
        listed("runtime.configure"),
        [fails(), ("hears".to_owned(), false, "patch".to_owned())]
    );
    assert_eq!(listed("session.on_event"), vec![fails(); events]);
    assert_eq!(listed("runtime.dispose"), [fails()]);
    // A1: each call is measured, including those that throw.
    let perf = world.cli(&["plugin", "perf", "--json"]).ok().stdout;
    let perf: serde_json::Value = serde_json::from_str(&perf).unwrap();
    let rows = perf.as_array().unwrap();
    let row = |plugin: &str, hook: &str| {
        let mut rows = rows.iter();
        let row = rows
            .find(|row| row["plugin"] == plugin && row["hook"] == hook)
            .unwrap_or_else(|| panic!("{plugin} {hook}: {perf}"));
        (row["outcomes"].clone(), row["p50_ms"].as_f64().unwrap())
    };
    let (outcomes, ms) = row("hears", "event");
    assert!(outcomes["ok"].as_u64() > Some(0) && ms >= 4.5, "{perf}");
    assert!(row("fails", "event").1 >= 4.5, "{perf}");
    assert_eq!(row("hears", "dispose").0, json!({ "ok": 1 }));
    assert_eq!(row("fails", "dispose").0, json!({ "error": 1 }));
    world.verify();
}

//! What a plugin stores through its client is bounded, by requests and by bytes.

use serde_json::Value;

use crate::support::*;
use crate::user_grants::granting;

/// Returns a plugin that runs this when its first message arrives and writes down `answers`: status and message of each request.
fn storer(statements: &str) -> String {
    format!(
        "import fs from 'node:fs'
let done = false
export const Storer = async ({{ directory, serverUrl }}) => ({{ 'chat.message': async () => {{
  if (done) return
  done = true
  const answers = []
  const ask = async (method, path, body) => {{
    const headers = {{ 'content-type': 'application/json' }}
    const answer = await fetch(new URL(path, serverUrl), {{ method, headers, body: body && JSON.stringify(body) }})
    const read = await answer.json().catch(() => null)
    answers.push([answer.status, read?.data?.message ?? read?.id ?? read?.info?.id ?? ''])
    return read
  }}
  {statements}
  fs.writeFileSync(directory + '/answers.json', JSON.stringify(answers))
}} }})\n"
    )
}

fn statuses(answers: &Value) -> Vec<u64> {
    answers
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it[0].as_u64().unwrap())
        .collect()
}

/// Returns the records of refusals by a limit of storage.
fn refusals(world: &World) -> Vec<Value> {
    let list = ["audit", "list", "--json", "-n", "10000", "--kind", "client"];
    let mut found = world.cli(&list).ok().lines();
    let is_limit = |it: &Value| {
        it["policyCheckResult"]
            .to_string()
            .contains("limits.plugin_stored")
    };
    found.retain(is_limit);
    found
}

#[test]
fn what_a_plugins_client_stores_is_bounded_by_bytes() {
    let world = World::new([done(), done()]);
    granting(&world, "[limits]\nplugin_stored_mb = 1\n");
    world.plugin(
        "storer",
        &storer(
            "
  const metadata = { note: 'x'.repeat(100 * 1024) }
  for (let n = 0; n < 40; n++) await ask('POST', '/session', { metadata })
  await ask('GET', '/session')
  await ask('POST', '/tui/show-toast', { message: 'hello', variant: 'info' })",
        ),
    );
    world.run(&["hi"]).ok();
    let answers = world.json("answers.json");
    let mut want = vec![200; 10];
    want.extend([403; 30]);
    want.extend([200; 2]);
    assert_eq!(statuses(&answers), want, "{answers}");
    let said = answers[10][1].as_str().unwrap();
    insta::assert_snapshot!(said, @"the plugin storer stores no more today: `plugin_stored_mb = 1` under [limits] lets the client of a plugin store 1 MiB a day (UTC) in a folder; raise it in your own outrigger.toml");
    assert_eq!(refusals(&world).len(), 1);
    // The day is not over with the process, nor does another one report it again.
    world.run(&["again"]).ok();
    let mut again = vec![403; 40];
    again.extend([200; 2]);
    let answers = world.json("answers.json");
    assert_eq!(statuses(&answers), again, "{answers}");
    let refused = refusals(&world);
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0]["pluginId"], "storer");
    let listed = world.cli(&["audit", "list", "--json", "-n", "10000", "--kind", "client"]);
    let is_refused = |it: &Value| it["decision"] == "403";
    let refused = listed.ok().lines().into_iter().filter(is_refused).count();
    assert_eq!(refused, 1);
}

/// A small request that makes the store write much again is counted by that.
#[test]
fn what_a_request_copies_is_counted() {
    let world = World::new([done()]);
    granting(&world, "[limits]\nplugin_stored_mb = 1\n");
    world.plugin(
        "storer",
        &storer(
            "
  fs.writeFileSync(directory + '/long.txt', 'x'.repeat(900 * 1024))
  const { id } = await ask('POST', '/session', {})
  await ask('POST', '/session/' + id + '/message', { noReply: true, parts: [{ type: 'text', text: 'x'.repeat(100 * 1024) }] })
  for (let n = 0; n < 12; n++) await ask('POST', '/session/' + id + '/fork', {})
  const url = 'file://' + directory + '/long.txt'
  await ask('POST', '/session/' + id + '/message', { noReply: true, parts: [{ type: 'file', mime: 'image/png', filename: 'x', url }] })
  await ask('PATCH', '/session/' + id, { metadata: { note: 'x'.repeat(300 * 1024) } })",
        ),
    );
    world.run(&["hi"]).ok();
    let answers = world.json("answers.json");
    let all = statuses(&answers);
    let (forks, rest) = all[2..].split_at(12);
    let made = forks.iter().take_while(|it| **it == 200).count();
    assert!((1..12).contains(&made), "{answers}");
    assert_eq!(forks[made..], vec![403; 12 - made], "{answers}");
    assert_eq!(rest[..2], [403, 403], "{answers}");
    let said = answers[15][1].as_str().unwrap();
    assert!(
        said.contains("at most 256 KiB of title, metadata and rules"),
        "{said}"
    );
}

#[test]
fn requests_that_store_are_bounded_by_number() {
    let world = World::new([done()]);
    granting(&world, "[limits]\nplugin_stored_requests = 5\n");
    world.plugin(
        "storer",
        &storer("for (let n = 0; n < 50; n++) await ask('POST', '/session', {})"),
    );
    world.run(&["hi"]).ok();
    let answers = world.json("answers.json");
    let made = statuses(&answers).iter().filter(|it| **it == 200).count();
    assert_eq!(made, 5, "{answers}");
    let said = answers[5][1].as_str().unwrap();
    for part in [
        "the plugin storer ",
        "`plugin_stored_requests = 5` under [limits]",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(refusals(&world).len(), 1);
}

/// Events for a terminal interface are stored like others.
#[test]
fn events_for_the_terminal_are_counted() {
    let world = World::new([done()]);
    granting(&world, "[limits]\nplugin_stored_mb = 1\n");
    let toast =
        "ask('POST', '/tui/show-toast', { message: 'x'.repeat(300 * 1024), variant: 'info' })";
    let append = "ask('POST', '/tui/append-prompt', { text: 'x'.repeat(300 * 1024) })";
    world.plugin(
        "storer",
        &storer(&format!(
            "await {toast}; await {append}; await {toast}; await {append}; await {toast}"
        )),
    );
    world.run(&["hi"]).ok();
    let answers = world.json("answers.json");
    assert_eq!(statuses(&answers), [200, 200, 200, 403, 403], "{answers}");
}

/// One call reports its progress any number of times; what is stored of it is bounded.
#[test]
fn the_progress_of_a_call_is_bounded() {
    let world = World::new([turn([call("loud", serde_json::json!({}))]), done()]);
    world.plugin(
        "loud",
        "export const Loud = async () => ({ tool: { loud: { description: 'd', args: {}, execute: async (_, ctx) => {
  for (let n = 0; n < 40; n++) ctx.metadata({ title: `t${n}`, metadata: { x: 'x'.repeat(1 << 20) } })
  return 'ok'
} } } })\n",
    );
    let mut run = world.command(&["run", "hi"]);
    run.env("OUTRIGGER_LOG", "warn");
    let run = world.start(run).end().ok();
    let said = "the progress of a tool call is no longer stored";
    assert_eq!(run.stderr.matches(said).count(), 1, "{}", run.stderr);
    let store = world.home().join(".local/share/outrigger");
    let files = std::fs::read_dir(store).unwrap().flatten();
    let bytes: u64 = files.map(|it| it.metadata().unwrap().len()).sum();
    assert!(bytes < 40 << 20, "{bytes}");
}

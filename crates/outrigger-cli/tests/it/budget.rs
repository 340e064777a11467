//! The budget of a session and the step limit of a turn (C16).

use serde_json::json;

use crate::support::*;

/// C16: a session's budget includes its subagents; a project does not raise the user's step limit.
#[test]
fn a_budget_holds_for_a_session_and_its_subagents() {
    let world = World::new([
        turn([call(
            "task",
            json!({ "description": "job", "prompt": "Job", "subagent_type": "general" }),
        )]),
        text("done"),
        done(),
        done(),
        done(),
    ]);
    crate::user_grants::granting(&world, "[budget]\nturns = 3\n");
    world.run(&["go"]).ok();
    let shown = world.cli(&["session", "show"]).ok().stdout;
    assert!(shown.contains("budget: 2 of 3 turns"), "{shown}");
    world.run(&["-c", "again"]).ok();
    let asked = world.mock.requests().len();
    let over = world.run(&["-c", "once more"]).exited(1).stderr;
    assert!(over.contains("budget.turns"), "{over}");
    assert_eq!(world.mock.requests().len(), asked);
    // Another session has its own budget.
    world.run(&["hi"]).ok();
}

/// C16: tokens and money are counted as the provider reports them; the request that exceeds the limit is the last one.
#[test]
fn a_budget_of_tokens_or_money_ends_with_what_uses_it_up() {
    for (settings, code, shown) in [
        ("tokens = 900\n", "budget.tokens", "of 900 tokens"),
        ("cents = 900\n", "budget.cents", "of 900 cents"),
    ] {
        let mut first = text("one");
        // A thousand tokens, at a cent each.
        first["usage"] = json!([1000, 0]);
        let world = World::new([first, done()]);
        let cost = json!({ "cost": { "input": 10_000, "output": 0 } });
        world.config(json!({ "provider": { "mock": { "models": { "m1": cost } } } }));
        crate::user_grants::granting(&world, &format!("[budget]\n{settings}"));
        world.run(&["--title", "x", "go"]).ok();
        let used = world.cli(&["session", "show"]).ok().stdout;
        assert!(used.contains(&format!("1000 {shown}")), "{used}");
        let asked = world.mock.requests().len();
        let over = world.run(&["-c", "again"]).exited(1).stderr;
        assert!(over.contains(code), "{over}");
        assert_eq!(world.mock.requests().len(), asked, "{code}");
    }
}

#[test]
fn a_project_does_not_raise_the_limit_of_steps() {
    let read = || turn([call("read", json!({ "filePath": "hello.txt" }))]);
    for (settings, steps) in [
        ("[agent]\nmax_steps = 50\n", Some(40)),
        ("", Some(40)),
        ("[agent]\nmax_steps = 40\n", None),
    ] {
        let world = World::new((0..5).map(|_| read()));
        crate::user_grants::granting(&world, "[agent]\nmax_steps = 2\n");
        world.settings(settings);
        let agent = steps.map_or(json!({}), |steps| json!({ "build": { "steps": steps } }));
        world.config(json!({ "agent": agent }));
        world.run(&["--title", "x", "go"]);
        let requests = world.mock.requests().len();
        assert!(requests <= 3, "{settings} {steps:?}: {requests}");
    }
}

/// C16: a plugin that continues the turn whenever the session is idle is stopped, and the user's next prompt starts a new count;
/// with a budget it does not.
#[test]
fn turns_that_a_plugin_starts_in_a_row_have_a_limit() {
    for (settings, rounds, code) in [
        (
            "[agent]\nmax_plugin_turns = 3\n",
            &[4, 8][..],
            "agent.max_plugin_turns",
        ),
        ("[budget]\nturns = 2\n", &[2], "budget.turns"),
    ] {
        goes_on(settings, rounds, code);
    }
}

/// Runs a plugin that always continues, under these settings. Checks the number of requests after each of the user's prompts, and
/// the code of the plugin's last answer.
fn goes_on(settings: &str, rounds: &[usize], code: &str) {
    let world = World::new((0..12).map(|_| text("done")));
    world.plugin(
        "goes-on",
        "import fs from 'node:fs'
         export const P = async ({ serverUrl, directory }) => ({ event: async ({ event }) => {
           if (event.type !== 'session.idle') return
           const parts = [{ type: 'text', text: 'go on' }]
           const path = '/session/' + event.properties.sessionID + '/message'
           const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ parts }) }
           fetch(new URL(path, serverUrl), init).then(async (answer) => {
             const text = await answer.text()
             if (!answer.ok || text.includes('budget.')) fs.appendFileSync(directory + '/refused', text + '\\n')
           })
         } })",
    );
    crate::user_grants::granting(&world, settings);
    let server = world.serve(&["--no-auth"]);
    let session = server.post("/session", &json!({ "title": "x" })).json(200);
    let path = format!("/session/{}/message", session["id"].as_str().unwrap());
    let prompt = json!({ "parts": [{ "type": "text", "text": "hello" }] });
    for (round, requests) in (1..).zip(rounds) {
        server.post(&path, &prompt).json(200);
        let refused = || world.path("refused").exists() && world.lines("refused").len() >= round;
        assert!(
            wait_until(WAIT_TIMEOUT, refused),
            "{settings} {round}: {}",
            server.get(&path).text()
        );
        assert_eq!(world.mock.requests().len(), *requests, "{settings}");
    }
    let refused = world.read("refused");
    assert!(refused.contains(code), "{refused}");
}

/// Neither a request that waits for no answer nor a new session each time begins a new count.
#[test]
fn turns_that_a_plugin_starts_elsewhere_or_detached_count_as_well() {
    let world = World::new((0..12).map(|_| text("done")));
    world.plugin(
        "goes-on",
        "import fs from 'node:fs'
         export const P = async ({ serverUrl, directory }) => {
           const ask = (path, body) => fetch(new URL(path, serverUrl), {
             method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
           })
           const parts = [{ type: 'text', text: 'go on' }]
           return { event: async ({ event }) => {
             if (event.type === 'session.error') fs.appendFileSync(directory + '/refused', JSON.stringify(event.properties) + '\\n')
             if (event.type !== 'session.idle') return
             ask('/session', {}).then((made) => made.json()).then(({ id }) => ask(`/session/${id}/prompt_async`, { parts }))
           } }
         }",
    );
    crate::user_grants::granting(&world, "[agent]\nmax_plugin_turns = 3\n");
    let server = world.serve(&["--no-auth"]);
    let session = server.post("/session", &json!({ "title": "x" })).json(200);
    let path = format!("/session/{}/message", session["id"].as_str().unwrap());
    let prompt = json!({ "parts": [{ "type": "text", "text": "hello" }] });
    for (round, requests) in [(1, 4), (2, 8)] {
        server.post(&path, &prompt).json(200);
        let refused = || world.path("refused").exists() && world.lines("refused").len() >= round;
        assert!(wait_until(WAIT_TIMEOUT, refused), "{round}");
        assert_eq!(world.mock.requests().len(), requests);
    }
    let refused = world.read("refused");
    assert!(refused.contains("agent.max_plugin_turns"), "{refused}");
}

/// A compaction and `init` are turns as well, which a plugin starts for itself.
#[test]
fn compactions_and_inits_of_a_plugin_count_as_well() {
    for route in ["summarize", "init"] {
        let world = World::new((0..12).map(|_| text("done")));
        world.plugin(
            "asks",
            &r"
import fs from 'node:fs'
let begun = false
export const P = async ({ serverUrl, directory }) => ({ event: async ({ event }) => {
  if (event.type !== 'session.idle' || begun) return
  begun = true
  const send = (path, body) => fetch(new URL(path, serverUrl), {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
  })
  let got = ''
  for (let n = 0; n < 5; n++) {
    const { id } = await (await send('/session', { title: 'x' })).json()
    await send(`/session/${id}/message`, { noReply: true, parts: [{ type: 'text', text: 'x' }] })
    const answer = await send(`/session/${id}/ROUTE`, { providerID: 'mock', modelID: 'm1', messageID: `msg_zzz${n}` })
    got += answer.status + ' ' + await answer.text() + '\n'
  }
  fs.writeFileSync(directory + '/got.tmp', got)
  fs.renameSync(directory + '/got.tmp', directory + '/got')
} })
"
            .replace("ROUTE", route),
        );
        crate::user_grants::granting(&world, "[agent]\nmax_plugin_turns = 3\n");
        let server = world.serve(&["--no-auth"]);
        let session = server.post("/session", &json!({ "title": "x" })).json(200);
        let path = format!("/session/{}/message", session["id"].as_str().unwrap());
        let prompt = json!({ "parts": [{ "type": "text", "text": "hello" }] });
        server.post(&path, &prompt).json(200);
        assert!(wait_until(WAIT_TIMEOUT, || world.path("got").exists()));
        let got = world.lines("got");
        let status = |line: &String| line.split(' ').next().unwrap().to_owned();
        let statuses: Vec<String> = got.iter().map(status).collect();
        assert_eq!(statuses, ["200", "200", "200", "403", "403"], "{got:?}");
        assert!(got[4].contains("agent.max_plugin_turns"), "{got:?}");
        assert_eq!(world.mock.requests().len(), 4, "{route}");
    }
}

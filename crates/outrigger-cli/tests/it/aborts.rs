//! Aborts while a turn waits for a hook: the turn ends at once, and nothing waits for the hook's answer. For aborts during a
//! summary, see `compaction.rs` of outrigger-server.

use serde_json::json;

use crate::support::*;

/// Holds the hook named in `hold.txt` for as long as a hook may take.
const HOLDING: &str = r"
import fs from 'node:fs'
const names = ['chat.message', 'chat.params', 'chat.headers', 'experimental.chat.system.transform',
  'experimental.chat.messages.transform', 'tool.definition', 'tool.execute.before', 'tool.execute.after', 'shell.env',
  'experimental.text.complete', 'experimental.session.compacting']
const hooks = {}
for (const name of names) hooks[name] = async () => {
  if (name !== fs.readFileSync('hold.txt', 'utf8') || fs.existsSync('held.txt')) return
  fs.writeFileSync('held.txt', '')
  await new Promise((done) => setTimeout(done, 4000))
  fs.writeFileSync(`over-${name}.txt`, '')
}
export const Holding = async () => hooks
";

fn is_idle(server: &Server) -> bool {
    server.get("/session/status").json(200) == json!({})
}

#[test]
fn a_turn_that_waits_for_a_hook_is_ended() {
    let world = World::with(
        Mock::new([
            turn([call(
                "bash",
                json!({ "command": "echo hi", "description": "d" }),
            )]),
            done(),
        ])
        .by_results(),
    );
    world.plugin("holding", HOLDING);
    world.file("hold.txt", "nothing");
    let server = world.serve(&["--no-auth"]);
    for hook in [
        "chat.message",
        "chat.params",
        "chat.headers",
        "experimental.chat.system.transform",
        "experimental.chat.messages.transform",
        "tool.definition",
        "tool.execute.before",
        "shell.env",
        "tool.execute.after",
        "experimental.text.complete",
        "experimental.session.compacting",
    ] {
        let _ = std::fs::remove_file(world.path("held.txt"));
        // Hooks before the turn run into their timeout.
        let over = format!("over-{hook}.txt");
        let session = server.post("/session", &json!({})).json(200);
        let id = session["id"].as_str().unwrap();
        let prompt = json!({ "parts": [{ "type": "text", "text": "go" }] });
        let (path, body) = if hook == "experimental.session.compacting" {
            world.file("hold.txt", "nothing");
            let path = format!("/session/{id}/message");
            server.post(&path, &prompt).json(200);
            let body = json!({ "providerID": "mock", "modelID": "m1" });
            (format!("/session/{id}/summarize"), body)
        } else {
            (format!("/session/{id}/message"), prompt)
        };
        world.file("hold.txt", hook);
        std::thread::scope(|scope| {
            scope.spawn(|| server.post(&path, &body));
            let held = wait_until(WAIT_TIMEOUT, || world.path("held.txt").exists());
            assert!(held, "{hook} was not called");
            let abort = server.post(&format!("/session/{id}/abort"), &json!({}));
            assert_eq!(abort.json(200), true);
            assert!(
                wait_until(WAIT_TIMEOUT, || is_idle(&server)),
                "{hook}: still busy"
            );
            assert!(
                !world.path(&over).exists(),
                "{hook}: the abort waited for the hook"
            );
        });
        // The session is still usable, and so is the plugin.
        world.file("hold.txt", "nothing");
        let next = json!({ "parts": [{ "type": "text", "text": "and now" }] });
        let answer = server.post(&format!("/session/{id}/message"), &next);
        let answer = answer.json(200);
        assert_eq!(answer["info"].get("error"), None, "{hook}: {answer}");
        assert!(wait_until(WAIT_TIMEOUT, || is_idle(&server)), "{hook}");
    }
    assert!(
        !server.running.stderr().contains("timeout"),
        "{}",
        server.running.stderr()
    );
    server.stop().exited(143);
    world.verify();
}

//! Plugins that refuse to exit, and one that calls itself: the run ends anyway, and nothing is left.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::*;
use crate::user_grants::granting;

fn pid(world: &World) -> u32 {
    world.read("pid.txt").trim().parse().unwrap()
}

/// A terminal sends Ctrl-C to every foreground process, including the plugin's, which handles it and stays. Its tool
/// ignores `abort`, too.
#[test]
fn a_plugin_that_takes_ctrl_c_for_itself() {
    let world = World::new([turn([call("wait", json!({}))]), done()]);
    world.plugin(
        "stubborn",
        "
import fs from 'node:fs'
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {})
export const Stubborn = async ({ directory }) => ({
  tool: { wait: { description: 'waits', args: {}, execute: () => {
    fs.writeFileSync(directory + '/pid.txt', fs.readlinkSync('/proc/self/ns/pid').replace(/[^0-9]/g, ''))
    return new Promise(() => setInterval(() => {}, 1000)) } } },
})",
    );
    let running = world.start(world.command(&["run", "wait"]));
    assert!(
        wait_until(WAIT_TIMEOUT, || world.path("pid.txt").exists()
            && !world.read("pid.txt").is_empty()),
        "{}",
        running.stderr()
    );
    let plugin = pid(&world);
    for process in members(plugin) {
        let number = Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
        kill_process(number, Signal::INT).unwrap();
    }
    running.signal(Signal::INT);
    running.end().exited(130);
    assert!(
        wait_until(WAIT_TIMEOUT, || !alive(plugin)),
        "the plugin's process is gone"
    );
    world.verify();
}

/// `dispose` has 2 s.
#[test]
fn a_dispose_that_never_ends_is_cut_off() {
    for (how, dispose) in [
        (
            "waits",
            "() => new Promise(() => setInterval(() => {}, 1000))",
        ),
        ("spins", "() => { for (;;) {} }"),
    ] {
        let world = World::new([done()]);
        world.plugin(
            "stays",
            &format!(
                "
import fs from 'node:fs'
export const Stays = async ({{ directory }}) => ({{
  'chat.message': async () => fs.writeFileSync(directory + '/pid.txt', fs.readlinkSync('/proc/self/ns/pid').replace(/[^0-9]/g, '')),
  dispose: {dispose},
}})"
            ),
        );
        let running = world.start(world.command(&["run", "hi"]));
        let answered = wait_until(WAIT_TIMEOUT, || running.stdout() == "All done.\n");
        assert!(answered, "{how}: {}", running.stderr());
        let began = Instant::now();
        let run = running.end().ok();
        // Five times the limit, from the end of the turn.
        assert!(began.elapsed() < Duration::from_secs(10), "{how}");
        assert!(
            run.stderr
                .contains("plugin stays: its dispose did not end within"),
            "{how}: {}",
            run.stderr
        );
        assert!(wait_until(WAIT_TIMEOUT, || !alive(pid(&world))), "{how}");
        world.verify();
    }
}

/// Its hook creates a session and prompts it, which calls the hook, and so on: the deadline of the first one ends them
/// all.
#[test]
fn a_hook_that_triggers_itself_through_the_client() {
    let world = World::new([done()]);
    world.plugin(
        "recursive",
        "
import fs from 'node:fs'
export const Recursive = async ({ directory, serverUrl }) => {
  const post = async (path, body) => (await fetch(new URL(path, serverUrl), {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })).json()
  return { 'chat.message': async () => {
    fs.appendFileSync(directory + '/calls.txt', 'call\\n')
    const session = await post('/session', {})
    await post('/session/' + session.id + '/message', { parts: [{ type: 'text', text: 'again' }] })
  } }
}",
    );
    granting(&world, "[deadlines]\nnormal_ms = 1500\n");
    let run = world.run(&["hi"]).ok();
    assert_eq!(run.stdout, "All done.\n");
    let calls = world.lines("calls.txt").len();
    assert!((2..1000).contains(&calls), "{calls} calls");
    assert!(
        run.stderr.contains("recursive") && run.stderr.contains("chat.message"),
        "{}",
        run.stderr
    );
    world.verify();
}

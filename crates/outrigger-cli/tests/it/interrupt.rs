//! Signals outside of a turn, and while the program is busy otherwise. For those of a turn, see `cancel`.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::*;
use crate::user_grants::granting;

const STUCK: &str = "
import fs from 'node:fs'
export const Stuck = async ({ directory }) => {
  fs.writeFileSync(directory + '/pid.txt', fs.readlinkSync('/proc/self/ns/pid').replace(/[^0-9]/g, ''))
  await new Promise((done) => setTimeout(done, 60000))
  return {}
}";

#[test]
fn a_plugin_that_is_being_loaded_is_left_at_once() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let world = World::new([done()]);
        granting(&world, "[deadlines]\nload_ms = 60000\n");
        world.plugin("stuck", STUCK);
        let running = world.start(world.command(&["run", "hi"]));
        let pid = || world.read("pid.txt").parse::<u32>().ok();
        assert!(
            wait_until(WAIT_TIMEOUT, || pid().is_some()),
            "{}",
            running.stderr()
        );
        running.signal(signal);
        running.end().exited(code);
        assert!(
            wait_until(WAIT_TIMEOUT, || !alive(pid().unwrap())),
            "the plugin is gone, too"
        );
        assert_eq!(world.mock.all_requests().len(), 0);
    }
}

const STAYS: &str = "
import fs from 'node:fs'
export const Stays = async ({ directory }) => ({
  dispose: () => { fs.writeFileSync(directory + '/asked.txt', ''); return new Promise(() => setInterval(() => {}, 1000)) },
})";

#[test]
fn once_the_turn_is_over_one_is_enough() {
    let world = World::new([done()]);
    world.plugin("stays", STAYS);
    let running = world.start(world.command(&["run", "hi"]));
    assert!(
        wait_until(WAIT_TIMEOUT, || world.path("asked.txt").exists()),
        "{}",
        running.stderr()
    );
    running.signal(Signal::INT);
    let ended = running.end().exited(130);
    assert_eq!(ended.stdout, "All done.\n");
    world.verify();
}

/// Fills a pipe except for one page.
const FULL: u64 = 60 * 1024;

/// A pipe that nothing reads blocks the thread that prints; the second Ctrl-C still ends the program.
#[test]
fn a_reader_that_does_not_read_cannot_hold_the_program() {
    let long = "0123456789abcdef".repeat(16 * 1024);
    let world = World::new([text(&long)]);
    let mut command = world.command(&["run", "hi"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    let pipe = child.stdout.take().unwrap();
    assert!(wait_until(WAIT_TIMEOUT, || rustix::io::ioctl_fionread(
        &pipe
    )
    .unwrap()
        >= FULL));
    let mut status = None;
    wait_until(WAIT_TIMEOUT, || {
        let _ = rustix::process::kill_process(pid, Signal::INT);
        std::thread::sleep(Duration::from_millis(50));
        status = child.try_wait().unwrap();
        status.is_some()
    });
    let _ = child.kill();
    assert_eq!(status.and_then(|s| s.code()), Some(130));
}

#[test]
fn standard_input_that_never_ends_is_named_and_can_be_left() {
    let world = World::new([done()]);
    let mut command = world.command(&["run", "hi"]);
    let (reader, writer) = std::io::pipe().unwrap();
    command.stdin(reader);
    let running = world.start(command);
    assert!(
        wait_until(WAIT_TIMEOUT, || running
            .stderr()
            .contains("reading standard input; </dev/null to skip")),
        "{}",
        running.stderr()
    );
    running.signal(Signal::INT);
    running.end().exited(130);
    drop(writer);
    assert_eq!(world.mock.all_requests().len(), 0);
}

#[test]
fn standard_input_that_ends_late_is_still_read() {
    let world = World::new([done()]);
    let mut command = world.command(&["run", "say:"]);
    let (reader, mut writer) = std::io::pipe().unwrap();
    command.stdin(reader);
    let running = world.start(command);
    assert!(
        wait_until(WAIT_TIMEOUT, || running
            .stderr()
            .contains("reading standard input")),
        "{}",
        running.stderr()
    );
    std::io::Write::write_all(&mut writer, b"the rest").unwrap();
    drop(writer);
    running.end().ok();
    assert!(
        world
            .mock
            .last()
            .texts("user")
            .join("\n")
            .contains("say:\nthe rest")
    );
}

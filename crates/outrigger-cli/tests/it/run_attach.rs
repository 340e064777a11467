//! `run --attach`: continuing a session, files with a command, and missed events.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::support::*;

/// A server is killed in the middle of a turn: the client reports it, and the next one resumes the turn.
#[test]
fn a_turn_is_gone_on_with_at_the_next_server() {
    let read = turn([call("read", json!({ "filePath": "hello.txt" }))]);
    let world = World::new([read, done(), text("And that.")]);
    let mut command = world.command(&["serve", "--no-auth", "--port", &free_port()]);
    command.env("OUTRIGGER_FAULT", "tool.after_run");
    let server = world.serve_with(command);
    let lost = world.run(&["--attach", &server.url(), "start"]).exited(1);
    assert!(lost.stderr.contains("[attach."), "{}", lost.stderr);
    server.running.end().exited(137);

    let server = world.serve(&["--no-auth"]);
    let ran = world
        .run(&["--attach", &server.url(), "-c", "and then"])
        .ok();
    assert_eq!(ran.stdout, "All done.\nAnd that.\n", "{}", ran.stderr);
    let goes_on = "going on with the turn that was interrupted";
    assert!(ran.stderr.contains(goes_on), "{}", ran.stderr);

    // Nothing is left to resume: the last answer is printed again.
    let id = server.get("/session").json(200)[0]["id"].clone();
    let args = ["--attach", &server.url(), "-s", id.as_str().unwrap()];
    let again = world.run(&args).ok();
    assert_eq!(again.stdout, "And that.\n", "{}", again.stderr);
    assert!(!again.stderr.contains(goes_on), "{}", again.stderr);
    assert_eq!(world.mock.requests().len(), 3);
    server.stop();
    world.verify();
}

/// The client reads the files of its own machine, once; the server does not look for them among its own.
#[test]
fn files_go_with_a_command() {
    let world = World::new([done(), done()]);
    world.config(json!({ "command": { "greet": { "template": "Say hello to $ARGUMENTS" } } }));
    let server = world.serve(&["--no-auth"]);
    let elsewhere = world.root().join("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("note.txt"), "a note of the client\n").unwrap();
    let inside = world.project();
    for (folder, file, says) in [
        (&inside, "hello.txt", "hi there"),
        (&elsewhere, "note.txt", "a note of the client"),
    ] {
        let url = server.url();
        let args = ["run", "--attach", &url, "--command", "greet", "-f", file];
        let mut command = world.command(&[&args[..], &["--", "world"]].concat());
        command.current_dir(folder);
        let ran = world.start(command).end().ok();
        assert_eq!(ran.stdout, "All done.\n", "{}", ran.stderr);
        let sent = world.mock.last().texts("user").join("\n");
        assert!(sent.contains("Say hello to world"), "{sent}");
        assert_eq!(sent.matches(says).count(), 1, "{file}: {sent}");
        assert!(!sent.contains("failed to read"), "{file}: {sent}");
    }
    server.stop();
    world.verify();
}

/// Returns a call of a command that waits for a file.
fn wait_for(name: &str) -> serde_json::Value {
    let command = format!("while [ ! -e {name} ]; do sleep 0.02; done; echo {name} is there");
    turn([call(
        "bash",
        json!({ "command": command, "description": "waits" }),
    )])
}

#[test]
fn what_happened_while_the_stream_was_gone_is_shown() {
    let world = World::new([wait_for("one"), wait_for("two"), done()]);
    let server = world.serve(&["--no-auth"]);
    let proxy = Proxy::start(&server.address);
    let client = world.start(world.command(&["run", "--attach", &proxy.url(), "go"]));
    let asked = |count: usize| wait_until(WAIT_TIMEOUT, || world.mock.requests().len() >= count);
    assert!(asked(1), "{}", client.stderr());
    proxy.cut_events();
    world.file("one", "");
    assert!(asked(2), "{}", client.stderr());
    assert!(
        !client.stderr().contains("one is there"),
        "{}",
        client.stderr()
    );
    // The turn is still running when the stream is back.
    proxy.let_events_through();
    let shown = wait_until(WAIT_TIMEOUT, || client.stderr().contains("one is there"));
    assert!(shown, "{}", client.stderr());
    world.file("two", "");
    let ran = client.end().ok();
    assert_eq!(ran.stdout, "All done.\n", "{}", ran.stderr);
    assert_eq!(
        ran.stderr.matches("one is there\n").count(),
        1,
        "{}",
        ran.stderr
    );
    server.stop();
}

#[test]
fn an_answer_is_shown_though_the_stream_does_not_come_back() {
    let world = World::new([wait_for("one"), done()]);
    let server = world.serve(&["--no-auth"]);
    let proxy = Proxy::start(&server.address);
    let client = world.start(world.command(&["run", "--attach", &proxy.url(), "go"]));
    let begun = wait_until(WAIT_TIMEOUT, || !world.mock.requests().is_empty());
    assert!(begun, "{}", client.stderr());
    proxy.cut_events();
    world.file("one", "");
    let ran = client.end().ok();
    assert_eq!(ran.stdout, "All done.\n", "{}", ran.stderr);
    server.stop();
}

/// A proxy between a client and a server that can hold back the event stream.
struct Proxy {
    address: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    cut: AtomicBool,
    /// Both ends of the event streams.
    streams: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    fn start(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(State::default());
        let (shared, server) = (Arc::clone(&state), server.to_owned());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(upstream) = TcpStream::connect(&server) else {
                    continue;
                };
                let back = (upstream.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || copy(back.0, back.1, |_| true));
                let state = Arc::clone(&shared);
                let ends = [client.try_clone().unwrap(), upstream.try_clone().unwrap()];
                std::thread::spawn(move || {
                    copy(client, upstream, |sent| state.passes(sent, &ends));
                });
            }
        });
        Self { address, state }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Closes the event streams; new ones are closed at once.
    fn cut_events(&self) {
        self.state.cut.store(true, Ordering::SeqCst);
        for stream in self.state.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn let_events_through(&self) {
        self.state.cut.store(false, Ordering::SeqCst);
    }
}

impl State {
    /// Checks whether what a client has sent is passed on to the server.
    fn passes(&self, sent: &[u8], ends: &[TcpStream; 2]) -> bool {
        if !sent.starts_with(b"GET /event ") {
            return true;
        }
        let mut streams = self.streams.lock().unwrap();
        streams.extend(ends.iter().map(|end| end.try_clone().unwrap()));
        !self.cut.load(Ordering::SeqCst)
    }
}

/// Copies until one side ends, or something may not pass.
fn copy(mut from: TcpStream, mut to: TcpStream, passes: impl Fn(&[u8]) -> bool) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(n @ 1..) = from.read(&mut bytes) {
        if !passes(&bytes[..n]) || to.write_all(&bytes[..n]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

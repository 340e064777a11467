//! Models that refuse, stall, break off or send nonsense.

use std::time::Duration;

use serde_json::json;

use crate::support::*;

const KEY: &str = "sk-this-must-not-be-seen-0815";

/// A plugin that writes down everything it receives of the configuration.
const CURIOUS: &str = "
import fs from 'node:fs'
export const Curious = async ({ directory, serverUrl }) => {
  const note = (value) => fs.appendFileSync(directory + '/noted.txt', JSON.stringify(value) + '\\n')
  return {
    config: async (config) => note(config),
    'chat.params': async (input) => note(input),
    'chat.message': async () => note(await (await fetch(new URL('/config', serverUrl))).json()),
  }
}";

/// The key is in the request's header, and in nothing that a user or a later program could read.
#[test]
fn a_wrong_key_is_reported_and_the_key_never_shown() {
    let refusal = json!({ "status": 401, "error": format!("Incorrect API key provided: {KEY}") });
    let world = World::with(Mock::titled([refusal.clone()], refusal));
    world.plugin("curious", CURIOUS);
    world.config(json!({ "provider": { "mock": { "options": { "apiKey": "{env:MY_KEY}" } } } }));
    let done = world
        .run_with(
            &[("MY_KEY", KEY)],
            &["--print-logs", "--log-level", "DEBUG", "hi"],
        )
        .exited(1);
    let last = done
        .stderr
        .lines()
        .filter(|line| line.starts_with("Error:"))
        .collect::<Vec<_>>()
        .join("\n");
    insta::assert_snapshot!(world.plain(&last), @r"
    Error: provider `mock` refused the API key from `options.apiKey` in the configuration (status 401): Incorrect API key provided: [key removed]
    ");
    let request = world.mock.last();
    assert_eq!(
        request.header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
    assert!(!request.body.to_string().contains(KEY));

    let noted = world.read("noted.txt");
    assert!(
        noted.lines().count() >= 3 && noted.contains("options"),
        "{noted}"
    );
    let mut seen = vec![
        ("what a plugin receives", noted),
        ("stderr", done.stderr),
        ("stdout", done.stdout),
    ];
    for args in [
        ["session", "export"],
        ["session", "show"],
        ["config", "show"],
        ["config", "show --json"],
    ] {
        let args: Vec<&str> = args.iter().flat_map(|arg| arg.split(' ')).collect();
        let mut command = world.command(&args);
        command.env("MY_KEY", KEY);
        seen.push((args.last().unwrap(), world.start(command).end().ok().stdout));
    }
    for (what, text) in seen {
        assert!(!text.contains(KEY), "{what}:\n{text}");
    }
    for file in std::fs::read_dir(world.store().parent().unwrap())
        .unwrap()
        .flatten()
        .filter(|f| f.path().is_file())
    {
        let bytes = std::fs::read(file.path()).unwrap();
        assert!(
            !bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes()),
            "{}",
            file.path().display()
        );
    }
    world.verify();
}

#[test]
fn an_overloaded_model_is_asked_again() {
    let busy = json!({ "status": 429, "error": "slow down", "retry_after": "0" });
    let world = World::new([busy.clone(), busy, done()]);
    let done = world.run(&["hi"]).ok();
    assert_eq!(done.stdout, "All done.\n");
    insta::assert_snapshot!(done.stderr, @r"

    > build · m1

    ~ try 1: provider `mock` is limiting requests (asks to wait 1 s): slow down
    ~ try 2: the same
    ");
}

#[test]
fn a_model_that_stays_down_is_given_up() {
    let world = World::new([json!({ "status": 500, "error": "on fire", "retry_after": "0" })]);
    world.settings("[models]\nmax_retries = 1\n");
    let done = world.run(&["hi"]).exited(1);
    insta::assert_snapshot!(done.stderr, @r"

    > build · m1

    ~ try 1: provider `mock` answered with an error (status 500): on fire
    Error: provider `mock` answered with an error (status 500): on fire
    ");
    assert_eq!(world.mock.requests().len(), 2);
    let nobody = World::new([]);
    nobody.settings("[models]\nmax_retries = 0\n");
    nobody.config(
        json!({ "provider": { "mock": { "options": { "baseURL": "http://127.0.0.1:9/v1" } } } }),
    );
    let done = nobody.run(&["--title", "x", "hi"]).exited(1);
    insta::assert_snapshot!(done.stderr, @r"

    > build · m1

    Error: cannot reach provider `mock` at http://127.0.0.1:9/v1/chat/completions: client error (Connect): tcp connect error: Connection refused (os error 111)
    ");
}

/// No name server answers there. This may be temporary, so the request is retried once.
#[test]
fn without_a_network_a_turn_ends_after_one_more_try() {
    let world = World::new([]);
    let nowhere = json!({ "baseURL": "http://api.nowhere.example/v1" });
    world.config(json!({ "provider": { "mock": { "options": nowhere } } }));
    let run = "exec \"$OUTRIGGER\" run --title x hi";
    let done = world
        .start(world.script("unshare", &["--net", "sh", "-c", run]))
        .end();
    if done.stderr.contains("unshare") {
        return skip("nobody is without a network here");
    }
    let tries = done.stderr.lines().filter(|line| line.starts_with("~ try"));
    assert_eq!((done.code, tries.count()), (1, 1), "{}", done.stderr);
    assert!(
        done.stderr.contains("api.nowhere.example") && done.stderr.contains("no network to ask"),
        "{}",
        done.stderr
    );
}

/// The text received so far stays, the message carries the error, and the next prompt works.
#[test]
fn a_model_that_stops_in_the_middle_of_its_answer() {
    let half = json!({ "text": "This is only the first half of", "cut": 4 });
    let world = World::new([half, text("Here I am again.")]);
    world.settings("[models]\nmax_retries = 0\n");
    let done = world.run(&["hi"]).exited(1);
    insta::assert_snapshot!(format!("{}---\n{}", done.stdout, done.stderr), @r"
    This is only the first h
    ---

    > build · m1

    Error: the answer of provider `mock` broke off: error reading a body from connection: unexpected EOF during chunk size line
    ");
    assert_eq!(world.parts("text")[1]["text"], "This is only the first h");
    assert_eq!(
        world.run(&["-c", "go on"]).ok().stdout,
        "Here I am again.\n"
    );
    world.verify();
}

#[test]
fn a_model_that_falls_silent_is_cut_off() {
    let world = World::new([json!({ "text": "Wait for it", "stall": 2 })]);
    world.settings("[models]\nidle_ms = 3000\nmax_retries = 0\n");
    let done = world.run(&["hi"]).exited(1);
    insta::assert_snapshot!(format!("{}---\n{}", done.stdout, done.stderr), @r"
    Wait for
    ---

    > build · m1

    Error: the answer of provider `mock` stalled for 3 s
    ");
    let mute = World::new([json!({ "text": "x", "stall": 0 })]);
    mute.settings("[models]\nfirst_byte_ms = 200\nmax_retries = 0\n");
    let done = mute.run(&["hi"]).exited(1);
    insta::assert_snapshot!(done.stderr, @r"

    > build · m1

    Error: provider `mock` sent nothing for 0.2 s after the request
    ");
}

/// Nothing is run, the model reads what was wrong, and the turn continues.
#[test]
fn calls_that_cannot_be_made_are_answered() {
    let calls = [
        json!({ "name": "bash", "raw": "{\"command\": \"touch ran.txt\", " }),
        call("no_such_tool", json!({})),
        call("bash", json!({ "command": 7, "description": "x" })),
        call("read", json!({})),
    ];
    let world = World::new([turn(calls), done()]);
    assert_eq!(world.run(&["hi"]).ok().stdout, "All done.\n");
    let answers: Vec<String> = world
        .mock
        .last()
        .texts("tool")
        .iter()
        .map(|text| text.lines().next().unwrap_or_default().to_owned())
        .collect();
    insta::assert_snapshot!(answers.join("\n"), @r#"
    The arguments provided to the tool are invalid: Invalid input for tool bash: JSON parsing failed: EOF while parsing a value at line 1 column 29. Text: {"command": "touch ran.txt", 
    The arguments provided to the tool are invalid: Model tried to call unavailable tool 'no_such_tool'. Available tools: bash, edit, glob, grep, invalid, read, skill, task, todowrite, webfetch, write.
    The bash tool was called with invalid arguments: SchemaError(Expected string, got 7
    The read tool was called with invalid arguments: SchemaError(Missing key
    "#);
    assert!(!world.path("ran.txt").exists());
    world.verify();
}

/// The model gets the limited amount and the rest goes to a file; the host's memory does not grow with it.
#[test]
fn a_tool_that_writes_100_mb() {
    let command = "yes 0123456789012345678901234567890123456789012345678901234567890123456789 | head -c 100000000";
    let world = World::new([
        turn([call(
            "bash",
            json!({ "command": command, "description": "much" }),
        )]),
        done(),
    ]);
    let running = world.start(world.command(&["run", "hi"]));
    let mut peak = 0;
    while world.mock.requests().len() < 2 && !running.is_over() {
        peak = peak.max(running.peak_kib());
        std::thread::sleep(Duration::from_millis(20));
    }
    running.end().ok();
    assert!(peak > 0 && peak < 40 * 1024, "{peak} KiB at most");
    let result = world.mock.last().texts("tool").remove(0);
    assert!(
        result.len() < 64 * 1024,
        "{} bytes for the model",
        result.len()
    );
    let kept = result
        .split(|c: char| c.is_whitespace() || "()\"`'".contains(c))
        .find(|word| word.contains("tool-output/"));
    let kept = std::path::PathBuf::from(kept.unwrap_or_else(|| panic!("{}", &result[..500])));
    assert!(kept.is_file(), "{}", kept.display());
    assert!(std::fs::metadata(world.store()).unwrap().len() < 4_000_000);
    world.verify();
}

/// The last step runs without tools so that the model can report its progress. A model that calls one anyway is cut off.
#[test]
fn a_turn_that_never_ends_by_itself_is_ended() {
    let endless = turn([call("glob", json!({ "pattern": "*.txt" }))]);
    for (last, code) in [(text("That is as far as I came."), 0), (endless.clone(), 1)] {
        let world = World::with(Mock::titled([endless.clone()], last));
        world.settings("[agent]\nmax_steps = 3\n");
        let done = world.run(&["--title", "x", "hi"]).exited(code);
        let requests = world.mock.all_requests();
        assert_eq!(
            requests
                .iter()
                .map(|r| r.tools().is_empty())
                .collect::<Vec<_>>(),
            [false, false, true],
            "{}",
            done.stderr
        );
        world.verify();
    }
}

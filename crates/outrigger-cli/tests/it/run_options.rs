//! The options of `run`.

use serde_json::{Value, json};

use crate::support::*;

/// Returns titles and identifiers of the project's sessions, the last one first.
fn sessions(world: &World) -> Vec<(String, String)> {
    let list = world.cli(&["session", "list", "--json"]).ok().json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    list.as_array()
        .unwrap()
        .iter()
        .map(|s| (text(&s["title"]), text(&s["id"])))
        .collect()
}

#[test]
fn continue_and_session_go_on_where_the_history_ends() {
    let world = World::new([text("one"), text("two"), text("three"), text("four")]);
    world.run(&["--title", "A", "first"]).ok();
    let a = sessions(&world)[0].1.clone();
    world.run(&["--title", "B", "second"]).ok();
    assert_eq!(world.run(&["-c", "third"]).ok().stdout, "three\n");
    assert_eq!(world.mock.last().texts("user"), ["second", "third"]);
    assert_eq!(world.mock.last().texts("assistant"), ["two"]);
    assert_eq!(world.run(&["-s", &a, "fourth"]).ok().stdout, "four\n");
    assert_eq!(world.mock.last().texts("user"), ["first", "fourth"]);
    assert_eq!(sessions(&world).len(), 2);
    world.verify();
}

#[test]
fn a_fork_leaves_its_origin_alone() {
    let world = World::new([text("one"), text("two"), text("three")]);
    world.run(&["--title", "A", "first"]).ok();
    world.run(&["-c", "--fork", "second"]).ok();
    assert_eq!(world.mock.last().texts("user"), ["first", "second"]);
    let known = sessions(&world);
    assert_eq!(
        known
            .iter()
            .map(|(title, _)| title.as_str())
            .collect::<Vec<_>>(),
        ["A (fork #1)", "A"]
    );
    world.run(&["-s", &known[1].1, "third"]).ok();
    assert_eq!(world.mock.last().texts("user"), ["first", "third"]);
    world.verify();
}

#[test]
fn the_model_of_the_command_line_is_asked() {
    let world = World::new([done(), done(), done()]);
    world.config(json!({ "provider": { "mock": { "models": { "m9": { "name": "M9" } } } } }));
    world.run(&["-m", "mock/m9", "hi"]).ok();
    assert_eq!(world.mock.last().body["model"], "m9");
    world.run(&["-c", "again"]).ok();
    assert_eq!(
        world.mock.last().body["model"],
        "m9",
        "a session keeps its model"
    );
    world.run(&["new"]).ok();
    assert_eq!(world.mock.last().body["model"], "m1");
}

#[test]
fn agents_answer_or_are_passed_over_with_a_word() {
    let world = World::new([done()]);
    world.config(
        json!({ "agent": { "poet": { "prompt": "You speak in verse.", "mode": "primary" } } }),
    );
    world.run(&["--agent", "poet", "hi"]).ok();
    assert!(
        world
            .mock
            .last()
            .texts("system")
            .concat()
            .contains("You speak in verse.")
    );
    let unknown = world.run(&["--agent", "nobody", "hi"]).ok();
    insta::assert_snapshot!(unknown.stderr, @r#"
    warning: agent "nobody" not found. Falling back to default agent

    > build · m1
    "#);
    let subagent = world.run(&["--agent", "general", "hi"]).ok();
    insta::assert_snapshot!(subagent.stderr, @r#"
    warning: agent "general" is a subagent, not a primary agent. Falling back to default agent

    > build · m1
    "#);
    world.run(&["--agent", "plan", "hi"]).ok();
    assert_eq!(world.export()["messages"][0]["info"]["agent"], "plan");
}

#[test]
fn commands_are_filled_in() {
    let world = World::new([done()]);
    world.file(".opencode/command/greet.md", "---\ndescription: greets\nagent: plan\n---\nGreet $1 and $2, all: $ARGUMENTS. Today: !`echo sunny`\n");
    world.run(&["--command", "greet", "Ann", "Bob"]).ok();
    assert_eq!(
        world.mock.last().texts("user"),
        ["Greet Ann and Bob, all: Ann Bob. Today: sunny\n"].map(|t| t.to_owned())
    );
    assert_eq!(world.export()["messages"][0]["info"]["agent"], "plan");
    let unknown = world.run(&["--command", "gret", "x"]).exited(1);
    insta::assert_snapshot!(unknown.stderr, @"error: there is no command `gret`; there are: greet, init, review [agent.no_command]");
    assert_eq!(
        sessions(&world).len(),
        1,
        "no session for a command that is not there"
    );
}

#[test]
fn what_stands_behind_a_commands_name_runs_nothing() {
    let world = World::new([done()]);
    let template = "Greet $1, all: $ARGUMENTS. Today: !`echo sunny`\n";
    world.file(".opencode/command/greet.md", template);
    let typed = "!`touch ran`";
    world.run(&["--command", "greet", typed]).ok();
    let asked = world.mock.last().texts("user").remove(0);
    assert!(asked.contains(typed) && asked.contains("sunny"), "{asked}");
    assert!(!world.path("ran").exists());
}

#[test]
fn a_run_offers_no_question() {
    let world = World::new([done()]);
    world.config(json!({ "permission": { "question": "allow" } }));
    world.run(&["hi"]).ok();
    let tools = world.mock.last().tools();
    assert!(tools.contains(&"bash".to_owned()), "{tools:?}");
    assert!(!tools.contains(&"question".to_owned()), "{tools:?}");
}

#[test]
fn titles_are_given_made_or_taken_from_the_message() {
    let world = World::with(Mock::titled([done()], text("A made title")));
    world.run(&["--title", "Mine", "hi"]).ok();
    world.run(&["hi"]).ok();
    world
        .run(&[
            "a message of more than fifty characters, so that it is cut",
            "--title",
        ])
        .ok();
    let titles: Vec<String> = sessions(&world)
        .into_iter()
        .map(|(title, _)| title)
        .collect();
    insta::assert_snapshot!(titles.join("\n"), @r#"
    "a message of more than fifty characters, so that ...
    A made title
    Mine
    "#);
    assert_eq!(
        world
            .mock
            .all_requests()
            .iter()
            .filter(|r| r.is_title)
            .count(),
        1
    );
}

/// The answer does not wait for the title, and a title that fails costs nothing.
#[test]
fn a_title_that_cannot_be_made_costs_nothing() {
    let world = World::with(Mock::titled(
        [done()],
        json!({ "status": 400, "error": "no titles today" }),
    ));
    assert_eq!(world.run(&["hi"]).ok().stdout, "All done.\n");
    assert!(sessions(&world)[0].0.starts_with("New session - "));
}

#[test]
fn another_folder() {
    let world = World::new([
        turn([call(
            "bash",
            json!({ "command": "pwd > pwd.txt", "description": "x" }),
        )]),
        done(),
    ]);
    std::fs::create_dir(world.root().join("elsewhere")).unwrap();
    let mut command = world.command(&["run", "--dir", "project", "hi"]);
    command.current_dir(world.root());
    world.start(command).end().ok();
    assert_eq!(
        world.read("pwd.txt").trim_end(),
        world.project().display().to_string()
    );
}

#[test]
fn thinking_is_shown_on_request() {
    let thought = json!({ "reasoning": "thinking hard", "text": "Answer." });
    let world = World::new([thought.clone(), thought.clone(), thought]);
    let hidden = world.run(&["hi"]).ok();
    assert_eq!(hidden.stdout, "Answer.\n");
    assert!(!hidden.stderr.contains("thinking hard"));
    let shown = world.run(&["--thinking", "hi"]).ok();
    assert_eq!(shown.stdout, "Answer.\n");
    assert!(
        shown.stderr.contains("Thinking: thinking hard"),
        "{}",
        shown.stderr
    );
    let kinds = |done: &Done| {
        done.lines()
            .iter()
            .map(|l| l["type"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        kinds(&world.run(&["--thinking", "--format", "json", "hi"]).ok()),
        ["step_start", "reasoning", "text", "step_finish"]
    );
}

#[test]
fn json_is_one_event_per_line() {
    let tools = turn([
        call("read", json!({ "filePath": "hello.txt" })),
        call("read", json!({ "filePath": "missing.txt" })),
    ]);
    let world = World::new([tools, done()]);
    let lines = world.run(&["--format", "json", "hi"]).ok().lines();
    let mut output: Vec<String> = lines
        .iter()
        .map(|l| {
            format!(
                "{} {}",
                l["type"].as_str().unwrap(),
                l["part"]["state"]["status"].as_str().unwrap_or("-")
            )
        })
        .collect();
    output[1..3].sort();
    insta::assert_snapshot!(output.join("\n"), @r"
    step_start -
    tool_use completed
    tool_use error
    step_finish -
    step_start -
    text -
    step_finish -
    ");
    for line in &lines {
        assert!(
            line["timestamp"].is_u64() && line["sessionID"].as_str().unwrap().starts_with("ses_"),
            "{line}"
        );
    }
}

#[test]
fn json_tells_failures_too() {
    let world = World::new([json!({ "status": 400, "error": "bad request" })]);
    let lines = world.run(&["--format", "json", "hi"]).exited(1).lines();
    assert_eq!(lines.last().unwrap()["type"], "error");
    assert!(
        lines.last().unwrap()["error"]["data"]["message"]
            .as_str()
            .unwrap()
            .contains("bad request")
    );
}

#[test]
fn the_message_comes_from_the_command_line_and_from_standard_input() {
    let world = World::new([done()]);
    for (input, args, said) in [
        ("from the pipe\n", &[][..], "from the pipe\n"),
        ("data\n", &["what", "is this?"], "what \"is this?\"\ndata\n"),
        ("", &["plain"], "plain"),
    ] {
        world.run_piped(input, args).ok();
        assert_eq!(world.mock.last().texts("user").last().unwrap(), said);
    }
    let nothing = world.run(&[]).exited(2);
    insta::assert_snapshot!(nothing.stderr, @r#"
    error: there is nothing to say [cli.usage]
      hint: outrigger run "what to do"
    "#);
    let blank = world.run_piped(" \n", &[]).exited(2);
    assert_eq!(blank.stderr, nothing.stderr);
}

#[test]
fn logs_are_for_those_who_ask() {
    let world = World::new([done()]);
    insta::assert_snapshot!(world.run(&["hi"]).ok().stderr, @r"

    > build · m1
    ");
    let logged = world
        .run(&["--print-logs", "--log-level", "DEBUG", "hi"])
        .ok();
    assert!(logged.stderr.contains("DEBUG"), "{}", logged.stderr);
    assert_eq!(logged.stdout, "All done.\n");
}

/// The project's rules, the environment and the agent: the default agent has a system prompt.
#[test]
fn the_system_prompt_holds_what_the_model_has_to_know() {
    let world = World::new([done()]);
    world.file("AGENTS.md", "PROJECT-RULE: be brief.\n");
    world.run(&["hi"]).ok();
    let system = world.mock.last().texts("system").concat();
    for part in [
        "PROJECT-RULE: be brief.",
        &world.project().display().to_string(),
        "linux",
    ] {
        assert!(system.contains(part), "{part} is not in:\n{system}");
    }
}

//! One task, done by four agents against an imitation of their model's HTTP API: read a file, change it, run a test, be refused a
//! command. The fixtures are the real programs' output, with paths and long lists shortened; their names contain the versions.

use std::fmt::Write as _;

use outrigger_conversation::ExternalAnswer;
use outrigger_executors::{Executor, Protocol, Step, Task, Verdict};
use outrigger_kernel::merge::{Conversation, Form, Transcript};
use outrigger_protocol::event::Event;
use outrigger_protocol::message::AssistantMessage;
use serde_json::Value;

/// The conversation from these lines, the input sent to the agent, and its end.
pub(crate) struct Outcome {
    pub(crate) messages: String,
    pub(crate) sent: Vec<String>,
    pub(crate) ended: String,
}

/// Reads lines as the executor's, and refuses what removes something.
pub(crate) fn read(executor: &str, lines: &str, refuses: &str) -> Outcome {
    let task = Task {
        prompt: "Change one to two".into(),
        folder: "/project".into(),
        is_sandboxed: true,
        ..Task::default()
    };
    let executor: Executor = executor.parse().unwrap();
    let mut reader = Reader {
        protocol: executor.protocol(task),
        answer: ExternalAnswer::begin(AssistantMessage::default(), 1, 0).0,
        events: Vec::new(),
        shown: String::new(),
        sent: Vec::new(),
        ended: "not at all".into(),
        refuses: refuses.to_owned(),
        at: 1000,
    };
    let first = reader.protocol.begin();
    reader.take(first);
    for line in lines.lines() {
        reader.at += 1;
        let steps = reader.protocol.line(line, reader.at);
        reader.take(steps);
    }
    let steps = reader.protocol.finish(reader.at);
    reader.take(steps);
    reader.outcome()
}

struct Reader {
    protocol: Box<dyn Protocol>,
    answer: ExternalAnswer,
    events: Vec<Event>,
    shown: String,
    sent: Vec<String>,
    ended: String,
    refuses: String,
    at: u64,
}

impl Reader {
    fn take(&mut self, steps: Vec<Step>) {
        for step in steps {
            match step {
                Step::Say(said) => {
                    let events = self.answer.say_with(said.output, &said.facts, self.at);
                    self.events.extend(events);
                }
                Step::Piece { is_thought, text } => {
                    let (begun, piece) = self.answer.piece(is_thought, text, self.at);
                    self.events.extend(begun.into_iter().chain(piece));
                }
                Step::Used(used) => self.answer.used(used.tokens, used.cost),
                Step::Send(line) => self.sent.push(line),
                Step::Session(id) => writeln!(self.shown, "session {}", id.len()).unwrap(),
                Step::Ask(question) => {
                    writeln!(self.shown, "asks {} {}", question.tool, question.input).unwrap();
                    let verdict = if question.input.to_string().contains(&self.refuses) {
                        Verdict::Deny("The user refused this.".into())
                    } else {
                        Verdict::Allow
                    };
                    let steps = self.protocol.answer(question.id, &verdict);
                    self.take(steps);
                }
                Step::End(end) => self.ended = format!("{end:?}"),
            }
        }
    }

    fn outcome(mut self) -> Outcome {
        let finished = self.answer.finish(None, self.at);
        self.events.extend(finished);
        let mut conversation = Conversation::new(Form::Merged);
        let mut transcript = Transcript::default();
        let changes = self.events.iter().flat_map(|event| conversation.on(event));
        for change in changes.collect::<Vec<_>>() {
            transcript.apply(change);
        }
        for placed in transcript.iter() {
            let message = &placed.message;
            let content = message.content.replace('\n', "\\n");
            writeln!(self.shown, "{}: {content}", message.message_type).unwrap();
            let of = |key: &str| message.metadata.get(key).filter(|it| !it.is_null());
            let shown = [
                ("tool", of("tool_name")),
                ("input", of("input")),
                ("output", of("output")),
                (
                    "is_error",
                    of("is_error").filter(|it| **it == Value::Bool(true)),
                ),
                ("details", of("details")),
                ("executor", of("executor")),
            ];
            for (key, value) in shown {
                if let Some(value) = value {
                    writeln!(self.shown, "    {key}: {value}").unwrap();
                }
            }
        }
        writeln!(self.shown, "ended: {}", self.ended).unwrap();
        Outcome {
            messages: self.shown,
            sent: self.sent,
            ended: self.ended,
        }
    }
}

#[test]
fn the_same_task_by_every_agent_is_one_form() {
    let cases = [
        (
            "claude",
            "claude",
            include_str!("../fixtures/claude-2.1.332.jsonl"),
        ),
        (
            "codex",
            "codex",
            include_str!("../fixtures/codex-0.171.0.jsonl"),
        ),
        (
            "gemini",
            "gemini",
            include_str!("../fixtures/gemini-0.61.0.jsonl"),
        ),
        (
            "acp:opencode acp",
            "acp_opencode",
            include_str!("../fixtures/acp-opencode-1.18.33.jsonl"),
        ),
        (
            "acp:gemini --acp",
            "acp_gemini",
            include_str!("../fixtures/acp-gemini-0.61.0.jsonl"),
        ),
    ];
    for (executor, name, lines) in cases {
        let outcome = read(executor, lines, "rm -r");
        insta::assert_snapshot!(name, outcome.messages);
        assert_eq!(outcome.ended, "Done", "{executor}");
        assert!(
            !outcome.messages.contains("jsonrpc") && !outcome.messages.contains("\"method\""),
            "{executor} printed what is not understood:\n{}",
            outcome.messages
        );
    }
}

#[test]
fn what_is_sent_is_what_each_understands() {
    let sent = |executor, lines| read(executor, lines, "rm -r").sent.join("\n");
    let claude = sent("claude", include_str!("../fixtures/claude-2.1.332.jsonl"));
    assert_eq!(claude.matches(r#""permissionDecision":"allow""#).count(), 3);
    assert_eq!(claude.matches(r#""permissionDecision":"deny""#).count(), 1);
    let codex = sent("codex", include_str!("../fixtures/codex-0.171.0.jsonl"));
    assert_eq!(codex.matches(r#"{"decision":"accept"}"#).count(), 3);
    assert_eq!(codex.matches(r#"{"decision":"decline"}"#).count(), 1);
    assert!(codex.contains(r#""approvalPolicy":"untrusted""#));
    let acp = sent(
        "acp:x",
        include_str!("../fixtures/acp-opencode-1.18.33.jsonl"),
    );
    assert_eq!(acp.matches(r#""optionId":"once""#).count(), 2);
    assert_eq!(acp.matches(r#""optionId":"reject""#).count(), 1);
    assert!(acp.contains("fs/write_text_file is not supported"));
}

/// The agent no longer has the session: it reports this and starts a new one.
#[test]
fn an_earlier_session_that_is_gone_is_begun_anew() {
    let executor: Executor = "acp:x".parse().unwrap();
    let task = Task {
        prompt: "Go on".into(),
        folder: "/project".into(),
        resume: Some("old".into()),
        ..Task::default()
    };
    let mut protocol = executor.protocol(task);
    let mut all = protocol.begin();
    for line in [
        r#"{"id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}"#,
        r#"{"id":2,"error":{"code":-32603,"message":"Internal error","data":{"details":"No previous sessions found"}}}"#,
        r#"{"id":2,"result":{"sessionId":"new"}}"#,
    ] {
        all.extend(protocol.line(line, 1));
    }
    let all = format!("{all:?}");
    let order = [
        "session/load",
        "Internal error: No previous sessions found",
        "session/new",
        "Session(\"new\")",
        "session/prompt",
    ];
    let places: Vec<usize> = order.iter().map(|it| all.find(it).expect(it)).collect();
    assert!(places.is_sorted() && !all.contains("Failed"), "{all}");
}

/// Nothing unknown is dropped, and nothing panics.
#[test]
fn unknown_and_broken_lines_are_shown_as_they_are() {
    let lines = [
        "not JSON at all",
        "{\"type\":\"a_new_kind\",\"x\":1}",
        "[1,2]",
        "null",
        "{\"type\":\"assistant\",\"message\":7}",
        "{\"unclosed\": ",
        "{\"method\":\"item/new\",\"params\":{}}",
    ];
    for executor in ["claude", "codex", "gemini", "acp:x"] {
        for line in lines {
            let outcome = read(executor, line, "-").messages;
            assert!(
                outcome.contains(&format!("text: {line}\n")),
                "{executor} {line}: {outcome}"
            );
        }
    }
}

#[test]
fn failures_are_reported_in_words() {
    let cases = [
        (
            "claude",
            r#"{"type":"result","subtype":"success","is_error":true,"result":"Invalid API key · Please run /login"}"#,
            "Invalid API key · Please run /login",
        ),
        (
            "claude",
            r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["no such session"]}"#,
            "no such session",
        ),
        (
            "claude",
            r#"{"type":"result","subtype":"error_max_turns"}"#,
            "it ended with error_max_turns",
        ),
        (
            "codex",
            r#"{"id":2,"error":{"code":-32600,"message":"no rollout found"}}"#,
            "no rollout found",
        ),
        (
            "codex",
            r#"{"method":"turn/completed","params":{"turn":{"status":"failed","error":{"message":"401 Unauthorized"}}}}"#,
            "401 Unauthorized",
        ),
        (
            "gemini",
            r#"{"type":"result","status":"error","error":{"type":"FatalAuth","message":"no key"}}"#,
            "no key",
        ),
        (
            "acp:x",
            r#"{"id":1,"result":{"protocolVersion":2}}"#,
            "it speaks version 2 of the Agent Client Protocol, and Outrigger version 1",
        ),
        (
            "acp:x",
            r#"{"id":2,"error":{"code":-32000,"message":"Authentication required","data":{"details":"run login"}}}"#,
            "Authentication required: run login",
        ),
        (
            "acp:x",
            r#"{"id":3,"result":{"stopReason":"refusal"}}"#,
            "it refused to continue",
        ),
    ];
    for (executor, line, words) in cases {
        assert_eq!(
            read(executor, line, "-").ended,
            format!("Failed({words:?})")
        );
    }
}

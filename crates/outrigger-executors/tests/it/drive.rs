//! The loop: executors that hang, crash, flood, read nothing, and are cancelled.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_executors::{
    End, Executor, Host, Limits, Question, Streams, Task, Used, VendorOutput, Verdict, drive,
};
use outrigger_protocol::merged::AgentOutput;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex};

#[derive(Default)]
struct RecordingHost {
    texts: Vec<String>,
    pieces: Vec<String>,
    used: Used,
    session: Option<String>,
    /// Questions get no answer.
    is_silent: bool,
    asked: Arc<Mutex<Vec<Question>>>,
}

impl Host for RecordingHost {
    async fn say(&mut self, said: VendorOutput) -> Result<(), String> {
        self.texts.push(match said.output {
            AgentOutput::Text { text, .. } => text,
            AgentOutput::Other { text, .. } => format!("other: {text}"),
            other => format!("{other:?}"),
        });
        Ok(())
    }

    async fn piece(&mut self, _: bool, text: String) -> Result<(), String> {
        self.pieces.push(text);
        Ok(())
    }

    fn used(&mut self, used: Used) {
        self.used = used;
    }

    async fn session(&mut self, id: String) -> Result<(), String> {
        self.session = Some(id);
        Ok(())
    }

    fn decide(&self, question: Question) -> Pin<Box<dyn Future<Output = Verdict> + Send>> {
        self.asked.lock().unwrap().push(question);
        if self.is_silent {
            Box::pin(std::future::pending())
        } else {
            Box::pin(std::future::ready(Verdict::Allow))
        }
    }
}

/// The process's ends of its streams.
struct Process {
    input: BufReader<DuplexStream>,
    output: DuplexStream,
    errors: DuplexStream,
}

impl Process {
    async fn prints(&mut self, line: &str) {
        let line = format!("{line}\n");
        // The output of an ended process is no longer read.
        let _ = self.output.write_all(line.as_bytes()).await;
    }

    async fn reads(&mut self) -> String {
        let mut line = String::new();
        self.input.read_line(&mut line).await.unwrap();
        line
    }
}

fn limits() -> Limits {
    Limits {
        line: 4096,
        text: 100,
        output: 100_000,
        ..Limits::default()
    }
}

/// Runs an executor with this process.
async fn run<F: Future<Output = ()>>(
    executor: &str,
    mut host: RecordingHost,
    cancelled: impl Future<Output = ()>,
    process: impl FnOnce(Process) -> F,
) -> (End, RecordingHost) {
    let executor: Executor = executor.parse().unwrap();
    let (stdin, input) = duplex(1024);
    let (output, stdout) = duplex(64 * 1024);
    let (errors, stderr) = duplex(1024);
    let streams = Streams {
        stdin,
        stdout,
        stderr,
        input: None,
    };
    let protocol = executor.protocol(Task::default());
    let turn = drive(protocol, streams, &mut host, cancelled, limits());
    let process = process(Process {
        input: BufReader::new(input),
        output,
        errors,
    });
    let end = tokio::select! {
        end = turn => end,
        // Its streams are closed when it has ended.
        () = async { process.await; std::future::pending().await } => End::Done,
    };
    (end, host)
}

const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"abc"}"#;

fn text(text: &str) -> String {
    format!(r#"{{"type":"assistant","message":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#)
}

#[tokio::test(start_paused = true)]
async fn one_that_crashes_says_why() {
    let (end, kept) = run(
        "claude",
        RecordingHost::default(),
        std::future::pending(),
        |mut it| async move {
            it.prints(INIT).await;
            it.prints(&text("I begin.")).await;
            it.errors.write_all(b"Segmentation fault\n").await.unwrap();
            tokio::time::sleep(Duration::from_millis(10)).await;
        },
    )
    .await;
    let words = "it exited early: Segmentation fault";
    assert_eq!(end, End::Failed(words.into()));
    assert_eq!(kept.texts, ["I begin."]);
    assert_eq!(kept.session.as_deref(), Some("abc"));
}

#[tokio::test(start_paused = true)]
async fn one_that_hangs_is_ended() {
    for (line, seconds) in [(None, 60), (Some(INIT), 15 * 60)] {
        let begun = tokio::time::Instant::now();
        let waits = Duration::from_secs(seconds);
        let (end, _) = run(
            "claude",
            RecordingHost::default(),
            std::future::pending(),
            |mut it| async move {
                if let Some(line) = line {
                    it.prints(line).await;
                }
                it.reads().await;
                it.reads().await;
                tokio::time::sleep(waits + waits).await;
            },
        )
        .await;
        let words = "it stopped responding, and was ended";
        assert_eq!(end, End::Failed(words.into()));
        assert!(begun.elapsed() >= waits && begun.elapsed() < waits + Duration::from_secs(2));
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_reads_nothing_is_ended() {
    let (end, _) = run(
        "acp:x",
        RecordingHost::default(),
        std::future::pending(),
        |mut it| async move {
            // Each answer is larger than its input can buffer.
            for id in 0..100 {
                let method = "x".repeat(200);
                it.prints(&format!(r#"{{"id":{id},"method":"{method}"}}"#))
                    .await;
            }
            tokio::time::sleep(Duration::from_secs(300)).await;
        },
    )
    .await;
    let words = "it stopped reading its input, and was ended";
    assert_eq!(end, End::Failed(words.into()));
}

#[tokio::test(start_paused = true)]
async fn one_that_floods_is_ended_and_what_it_said_is_bounded() {
    let (end, kept) = run(
        "claude",
        RecordingHost::default(),
        std::future::pending(),
        |mut it| async move {
            it.prints(&text(&"x".repeat(1000))).await;
            it.prints(&"y".repeat(5000)).await;
            for _ in 0..200 {
                it.prints(&text(&"x".repeat(1000))).await;
            }
        },
    )
    .await;
    let words = "it printed more than 100000 bytes, and was ended";
    assert_eq!(end, End::Failed(words.into()));
    assert!(kept.texts[0].ends_with("x… (1000 bytes, of which the beginning is kept)"));
    assert!(kept.texts[1].starts_with("other: yyy"));
    assert!(kept.texts.len() < 110 && kept.texts.iter().all(|it| it.len() < 200));
}

const ASKS: &str = r#"{"type":"control_request","request_id":"r","request":{"subtype":"hook_callback","tool_use_id":"t","input":{"tool_name":"Bash","tool_input":{"command":"ls"}}}}"#;

#[tokio::test(start_paused = true)]
async fn a_question_waits_for_its_person_and_is_answered() {
    let silent = RecordingHost {
        is_silent: true,
        ..RecordingHost::default()
    };
    let cancelled = tokio::time::sleep(Duration::from_secs(50 * 60));
    let (end, kept) = run("claude", silent, cancelled, |mut it| async move {
        it.prints(ASKS).await;
        for _ in 0..3 {
            it.reads().await;
        }
    })
    .await;
    assert_eq!(end, End::Cancelled);
    assert_eq!(kept.asked.lock().unwrap()[0].tool, "bash");

    let (end, _) = run(
        "claude",
        RecordingHost::default(),
        std::future::pending(),
        |mut it| async move {
            it.prints(ASKS).await;
            it.reads().await;
            it.reads().await;
            assert!(it.reads().await.contains(r#""permissionDecision":"allow""#));
            it.prints(r#"{"type":"result","subtype":"success"}"#).await;
        },
    )
    .await;
    assert_eq!(end, End::Done);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_one_is_asked_to_end_and_waited_for_briefly() {
    let begun = tokio::time::Instant::now();
    let after = || tokio::time::sleep(Duration::from_secs(1));
    let (end, kept) = run(
        "claude",
        RecordingHost::default(),
        after(),
        |mut it| async move {
            it.prints(INIT).await;
            it.reads().await;
            it.reads().await;
            assert!(it.reads().await.contains("interrupt"));
            it.prints(&text("I stop.")).await;
            it.prints(r#"{"type":"result","subtype":"error_during_execution"}"#)
                .await;
        },
    )
    .await;
    assert_eq!(end, End::Cancelled);
    assert_eq!(kept.texts, ["I stop."]);
    assert!(begun.elapsed() < Duration::from_secs(2));
    // A process that ignores it.
    let (end, _) = run(
        "claude",
        RecordingHost::default(),
        after(),
        |mut it| async move {
            it.prints(INIT).await;
            for _ in 0..3 {
                it.reads().await;
            }
            tokio::time::sleep(Duration::from_secs(10)).await;
        },
    )
    .await;
    assert_eq!(end, End::Cancelled);
}

/// Hundreds of questions cannot be answered: those above a limit are refused at once, and what is stored of a call is
/// bounded.
#[tokio::test(start_paused = true)]
async fn one_that_asks_without_end_is_refused() {
    let silent = RecordingHost {
        is_silent: true,
        ..RecordingHost::default()
    };
    let cancelled = tokio::time::sleep(Duration::from_secs(10));
    let (end, kept) = run("claude", silent, cancelled, |mut it| async move {
        let long = "x".repeat(1000);
        it.prints(&format!(r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"t","name":"Write","input":{{"content":"{long}"}}}}]}}}}"#)).await;
        for id in 0..65 {
            it.prints(&ASKS.replace(r#""r""#, &format!(r#""r{id}""#))).await;
        }
        it.reads().await;
        it.reads().await;
        let refused = it.reads().await;
        assert!(refused.contains(r#""deny""#) && refused.contains("64 questions are already pending"), "{refused}");
        it.reads().await;
    })
    .await;
    assert_eq!(end, End::Cancelled);
    assert_eq!(kept.asked.lock().unwrap().len(), 64);
    assert!(
        kept.texts[0].contains("left out") && !kept.texts[0].contains("xxx"),
        "{}",
        kept.texts[0]
    );
}

//! Runs a protocol over the streams of a process, within limits.

use std::collections::VecDeque;
use std::future::Future;
use std::io::ErrorKind;
use std::pin::Pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use outrigger_protocol::merged::{AgentOutput, EXECUTOR};
use outrigger_sandbox::process_time::{self, Instant};
use outrigger_stdx::clock::now_ms;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::step::{End, Protocol, Question, Step, VendorOutput, Verdict};
use crate::used::Used;
use crate::wire::lines::{Line, Lines};

/// Maximum number of open questions. Further ones are refused.
const MAX_QUESTIONS: usize = 64;

/// Bytes of standard error that are kept: its end says why a process failed.
const MAX_STDERR: usize = 4096;

/// How long the rest of standard error is awaited after the end of the output.
const STDERR_TIMEOUT: Duration = Duration::from_secs(1);

/// The limits of an executor's turn.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum bytes of a line.
    pub line: usize,
    /// Maximum bytes of a text or a result.
    pub text: usize,
    /// Maximum bytes of output in a turn.
    pub output: usize,
    /// How long it may be silent at the start.
    pub start: Duration,
    /// How long it may be silent later, while no question waits for the user.
    pub idle: Duration,
    /// How long it may take to end after a cancellation.
    pub cancel: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            line: 16 * 1024 * 1024,
            text: 1024 * 1024,
            output: 256 * 1024 * 1024,
            start: Duration::from_secs(60),
            idle: Duration::from_secs(15 * 60),
            cancel: Duration::from_secs(5),
        }
    }
}

/// The streams of a process.
pub struct Streams<I, O, E> {
    /// Its standard input.
    pub stdin: I,
    /// Its standard output.
    pub stdout: O,
    /// Its standard error.
    pub stderr: E,
    /// The whole input, if it is not a conversation.
    pub input: Option<String>,
}

/// The session of the executor.
pub trait Host {
    /// Stores the agent's output. The next line is read after this.
    fn say(&mut self, said: VendorOutput) -> impl Future<Output = Result<(), String>> + Send;
    /// Shows a piece of a text or reasoning, which [`Self::say`] stores as a whole later.
    fn piece(
        &mut self,
        is_thought: bool,
        text: String,
    ) -> impl Future<Output = Result<(), String>> + Send;
    /// Records the turn's usage so far.
    fn used(&mut self, used: Used);
    /// Stores the vendor's session, by which it is resumed.
    fn session(&mut self, id: String) -> impl Future<Output = Result<(), String>> + Send;
    /// Decides a question. Several may be open at once.
    fn decide(&self, question: Question) -> Pin<Box<dyn Future<Output = Verdict> + Send>>;
}

/// Runs a turn to its end. The caller ends the process afterwards. `cancelled` completes to end the turn early.
pub async fn drive<H: Host, I, O, E>(
    protocol: Box<dyn Protocol>,
    streams: Streams<I, O, E>,
    host: &mut H,
    cancelled: impl Future<Output = ()>,
    limits: Limits,
) -> End
where
    I: AsyncWrite + Unpin,
    O: AsyncRead + Unpin,
    E: AsyncRead + Unpin,
{
    let mut turn = Turn {
        protocol,
        host,
        stdin: Some(streams.stdin),
        questions: FuturesUnordered::new(),
        limits,
        bytes: 0,
    };
    let mut errors = Tail::default();
    let mut stderr = Some(streams.stderr);
    let mut chunk = vec![0; 4096];
    let end = {
        let run = turn.run(streams.stdout, streams.input, cancelled);
        tokio::pin!(run);
        loop {
            tokio::select! {
                end = &mut run => break end,
                read = read(&mut stderr, &mut chunk), if stderr.is_some() => match read {
                    Some(bytes) => errors.add(bytes),
                    None => stderr = None,
                },
            }
        }
    };
    match end {
        Ok(end) => end,
        Err(Stopped::Closed) => {
            // The reason may follow the end of its output. Its descendants may keep the stream open.
            let rest = async {
                while let Some(bytes) = read(&mut stderr, &mut chunk).await {
                    errors.add(bytes);
                }
            };
            let _ = process_time::timeout(STDERR_TIMEOUT, rest).await;
            End::Failed(match errors.text() {
                text if text.is_empty() => "it exited early without a message".to_owned(),
                text => format!("it exited early: {text}"),
            })
        }
        Err(Stopped::Because(words)) => End::Failed(words),
    }
}

/// Returns a line, or `None` at the end.
fn read_line(line: std::io::Result<Option<Line>>) -> Result<Option<Line>, Stopped> {
    match line {
        // A socket reports this if the process ended without reading all of its input.
        Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(None),
        line => line.map_err(|error| Stopped::Because(format!("cannot read its output: {error}"))),
    }
}

async fn read<'b, R: AsyncRead + Unpin>(
    stream: &mut Option<R>,
    chunk: &'b mut [u8],
) -> Option<&'b [u8]> {
    let stream = stream.as_mut()?;
    let read = stream.read(chunk).await.unwrap_or(0);
    let bytes = chunk.get(..read)?;
    (!bytes.is_empty()).then_some(bytes)
}

/// Why a turn ended prematurely.
enum Stopped {
    /// Its output ended.
    Closed,
    /// The reason in words.
    Because(String),
}

type Decision = Pin<Box<dyn Future<Output = (u64, Verdict)> + Send>>;

struct Turn<'h, H, I> {
    protocol: Box<dyn Protocol>,
    host: &'h mut H,
    stdin: Option<I>,
    questions: FuturesUnordered<Decision>,
    limits: Limits,
    bytes: usize,
}

impl<H: Host, I: AsyncWrite + Unpin> Turn<'_, H, I> {
    async fn run<O: AsyncRead + Unpin>(
        &mut self,
        stdout: O,
        input: Option<String>,
        cancelled: impl Future<Output = ()>,
    ) -> Result<End, Stopped> {
        tokio::pin!(cancelled);
        let mut lines = Lines::new(stdout, self.limits.line);
        if let Some(input) = input {
            self.write(&input).await?;
            self.stdin = None;
        }
        let steps = self.protocol.begin();
        if let Some(end) = self.take(steps).await? {
            return Ok(end);
        }
        let mut deadline = Instant::now() + self.limits.start;
        let mut is_cancelled = false;
        loop {
            let waits = !self.questions.is_empty();
            tokio::select! {
                biased;
                () = &mut cancelled, if !is_cancelled => {
                    is_cancelled = true;
                    deadline = Instant::now() + self.limits.cancel;
                    self.questions.clear();
                    let steps = self.protocol.cancel();
                    if steps.is_empty() || self.take(steps).await.is_err() {
                        return Ok(End::Cancelled);
                    }
                }
                Some((question, verdict)) = self.questions.next(), if waits => {
                    let steps = self.protocol.answer(question, &verdict);
                    self.take(steps).await?;
                    deadline = Instant::now() + self.limits.idle;
                }
                line = lines.next() => {
                    let line = read_line(line)?;
                    let ended = self.line(line).await;
                    match (is_cancelled, ended) {
                        (_, Ok(None)) => {}
                        (true, _) => return Ok(End::Cancelled),
                        (false, Ok(Some(end))) => return Ok(end),
                        (false, Err(stopped)) => return Err(stopped),
                    }
                    if !is_cancelled {
                        deadline = Instant::now() + self.limits.idle;
                    }
                }
                () = process_time::sleep_until(deadline), if !waits => {
                    if is_cancelled {
                        return Ok(End::Cancelled);
                    }
                    let steps = self.protocol.finish(now_ms());
                    self.take(steps).await?;
                    return Err(Stopped::Because("it stopped responding, and was ended".to_owned()));
                }
            }
        }
    }

    async fn line(&mut self, line: Option<Line>) -> Result<Option<End>, Stopped> {
        let at = now_ms();
        let steps = match line {
            None => {
                let steps = self.protocol.finish(at);
                return match self.take(steps).await? {
                    Some(end) => Ok(Some(end)),
                    None => Err(Stopped::Closed),
                };
            }
            Some(Line::Whole(line)) if line.trim().is_empty() => Vec::new(),
            Some(Line::Whole(line)) => {
                self.count(line.len())?;
                self.protocol.line(&line, at)
            }
            Some(Line::Cut { start, bytes }) => {
                self.count(bytes)?;
                let text = format!("{start}… (a line of {bytes} bytes, which was not read)");
                let other = AgentOutput::Other {
                    text,
                    timestamp: at,
                };
                vec![Step::say(other)]
            }
        };
        self.take(steps).await
    }

    fn count(&mut self, bytes: usize) -> Result<(), Stopped> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limits.output {
            Err(Stopped::Because(format!(
                "it printed more than {} bytes, and was ended",
                self.limits.output
            )))
        } else {
            Ok(())
        }
    }

    async fn take(&mut self, steps: Vec<Step>) -> Result<Option<End>, Stopped> {
        let mut steps = VecDeque::from(steps);
        while let Some(step) = steps.pop_front() {
            match step {
                Step::Ask(question) if self.questions.len() >= MAX_QUESTIONS => {
                    let words = format!("{MAX_QUESTIONS} questions are already pending");
                    let answer = self.protocol.answer(question.id, &Verdict::Deny(words));
                    steps.extend(answer);
                }
                Step::Say(said) => {
                    let said = bounded(said, self.limits.text);
                    self.host.say(said).await.map_err(Stopped::Because)?;
                }
                Step::Piece { is_thought, text } => {
                    let shown = self.host.piece(is_thought, text).await;
                    shown.map_err(Stopped::Because)?;
                }
                Step::Used(used) => self.host.used(used),
                Step::Session(id) => self.host.session(id).await.map_err(Stopped::Because)?,
                Step::Send(line) => self.write(&format!("{line}\n")).await?,
                Step::Ask(question) => {
                    let id = question.id;
                    let verdict = self.host.decide(question);
                    self.questions
                        .push(Box::pin(async move { (id, verdict.await) }));
                }
                Step::End(end) => {
                    let left = self.protocol.finish(now_ms());
                    let says = left.into_iter().filter_map(|step| match step {
                        Step::Say(said) => Some(said),
                        _ => None,
                    });
                    for said in says {
                        let said = bounded(said, self.limits.text);
                        self.host.say(said).await.map_err(Stopped::Because)?;
                    }
                    return Ok(Some(end));
                }
            }
        }
        Ok(None)
    }

    /// A process that no longer reads is detected by its output, or by its silence.
    async fn write(&mut self, text: &str) -> Result<(), Stopped> {
        let Some(stdin) = &mut self.stdin else {
            return Ok(());
        };
        let written = async {
            stdin.write_all(text.as_bytes()).await?;
            stdin.flush().await
        };
        match process_time::timeout(self.limits.start, written).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => {
                self.stdin = None;
                Ok(())
            }
            Err(_) => Err(Stopped::Because(
                "it stopped reading its input, and was ended".to_owned(),
            )),
        }
    }
}

/// Truncates texts to `limit` bytes.
fn bounded(mut said: VendorOutput, limit: usize) -> VendorOutput {
    let bytes: usize = said.facts.values().map(length).sum();
    if bytes > limit {
        said.facts.retain(|key, _| key == EXECUTOR);
    }
    if let AgentOutput::ToolUse { tool_input, .. } = &mut said.output {
        let bytes = length(tool_input);
        if bytes > limit {
            *tool_input = json!({ "left out": format!("arguments of {bytes} bytes") });
        }
    }
    let text = match &mut said.output {
        AgentOutput::Text { text, .. }
        | AgentOutput::Thought { text, .. }
        | AgentOutput::Other { text, .. } => text,
        AgentOutput::ToolResult {
            result: Value::String(text),
            ..
        } => text,
        AgentOutput::ToolResult { .. } | AgentOutput::ToolUse { .. } => return said,
    };
    if text.len() > limit {
        let bytes = text.len();
        let end = (0..=limit).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or_default());
        text.push_str(&format!(
            "… ({bytes} bytes, of which the beginning is kept)"
        ));
    }
    said
}

/// Returns the length of a value as text in bytes.
fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        other => other.to_string().len(),
    }
}

/// The end of the output.
#[derive(Default)]
struct Tail(Vec<u8>);

impl Tail {
    fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        let over = self.0.len().saturating_sub(MAX_STDERR);
        self.0.drain(..over);
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).trim().to_owned()
    }
}

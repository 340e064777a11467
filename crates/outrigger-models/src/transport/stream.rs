//! One request from the first attempt to the end of its stream: sending, deadlines, retries, decoding.
//!
//! Nothing is spawned. Polling drives the stream, so dropping it drops the connection, which cancels the request.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;
use http::HeaderMap;
use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::model::StreamEvent;
use tokio::time::{sleep, timeout};

use crate::adapters::wire::{Decode, MakeDecoder, Progress, Target};
use crate::error::ModelError;
use crate::transport::answer::{NotAuthorised, NotSent, ProviderResponse, Way};
use crate::transport::client;
use crate::transport::event_stream::EventStream;
use crate::transport::retry::{Deadlines, RetryPolicy};
use outrigger_sandbox::process_time::{Instant, timeout_at};
use outrigger_sse::{Event as SseEvent, Parser};

/// Maximum bytes of an error response that are read.
const MAX_ERROR_BODY: usize = 64 * 1024;
/// Maximum bytes of an event.
const MAX_EVENT: usize = 32 * 1024 * 1024;
/// Maximum bytes of a response in one JSON document.
const MAX_WHOLE_BODY: usize = 64 * 1024 * 1024;
/// How long the rest of the body (usually nothing) is awaited after the response is complete, so that the connection
/// can be reused.
const DRAIN: Duration = Duration::from_millis(50);

/// An item of a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamItem {
    /// A piece of the response.
    Event(StreamEvent),
    /// The request failed before any content and will be retried. Comes before every event.
    Retry(RetryNotice),
}

/// A request is about to be retried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryNotice {
    /// Number of the next retry, from 1.
    pub attempt: u32,
    /// Why the last attempt failed.
    pub message: String,
    /// Stable code of that failure.
    pub code: &'static str,
    /// The wait before it.
    pub delay: Duration,
}

/// A response. After an error, and after `Finished`, it yields nothing more. Dropping it cancels the request.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<StreamItem, ModelError>> + Send>>;

/// A request ready to be sent, as often as necessary.
pub(crate) struct Prepared {
    pub(crate) target: Target,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) decoder: MakeDecoder,
    pub(crate) deadlines: Deadlines,
    pub(crate) policy: RetryPolicy,
    pub(crate) way: Way,
}

/// Opens a stream without starting it: the request is sent when the stream is first polled.
pub(crate) fn open(prepared: Prepared) -> ModelStream {
    let driver = Driver {
        prepared,
        queue: VecDeque::new(),
        state: State::Send,
        retries: 0,
        content: false,
        total: None,
    };
    Box::pin(unfold(driver, |mut driver| async move {
        let item = driver.next().await?;
        Some((item, driver))
    }))
}

enum State {
    Send,
    Wait(Duration),
    Read(Box<Reading>),
    Drain(Box<Reading>),
    Done,
}

struct Reading {
    response: ProviderResponse,
    parser: Framing,
    decoder: Box<dyn Decode>,
    /// The body so far, if it is one JSON document.
    whole: Option<Vec<u8>>,
    /// The deadline of the next byte.
    next_by: Option<(Instant, Step)>,
}

/// The framing of events.
enum Framing {
    Sse(Parser),
    Aws(EventStream),
}

impl Framing {
    fn of(content_type: &str) -> Self {
        match content_type {
            "application/vnd.amazon.eventstream" => Self::Aws(EventStream::new(MAX_EVENT)),
            _ => Self::Sse(Parser::new(MAX_EVENT)),
        }
    }

    fn feed(&mut self, bytes: &[u8], out: &mut Vec<SseEvent>) -> Result<(), String> {
        match self {
            Self::Sse(parser) => parser.feed(bytes, out).map_err(|error| error.to_string()),
            Self::Aws(parser) => parser.feed(bytes, out),
        }
    }
}

#[derive(Clone, Copy)]
enum Step {
    FirstByte,
    Idle,
}

struct Driver {
    prepared: Prepared,
    queue: VecDeque<Result<StreamItem, ModelError>>,
    state: State,
    retries: u32,
    content: bool,
    total: Option<Instant>,
}

/// A failed attempt, and the provider's requested wait.
type Failed = (ModelError, Option<Duration>);

impl Driver {
    async fn next(&mut self) -> Option<Result<StreamItem, ModelError>> {
        if self.total.is_none() {
            self.total = self
                .prepared
                .deadlines
                .total
                .and_then(|d| Instant::now().checked_add(d));
        }
        loop {
            if let Some(item) = self.queue.pop_front() {
                return Some(item);
            }
            match std::mem::replace(&mut self.state, State::Done) {
                State::Send => match self.send().await {
                    Ok(reading) => self.state = State::Read(Box::new(reading)),
                    Err(failed) => self.fail(failed),
                },
                State::Wait(delay) => match self.timed(None, sleep(delay)).await {
                    Ok(()) => self.state = State::Send,
                    Err(error) => self.queue.push_back(Err(error)),
                },
                State::Read(mut reading) => match self.read(&mut reading).await {
                    Ok(Progress::More) => self.state = State::Read(reading),
                    Ok(Progress::Done) => self.state = State::Drain(reading),
                    Err(error) => self.fail((error, None)),
                },
                State::Drain(mut reading) => {
                    let rest = async { while let Ok(Some(_)) = reading.response.chunk().await {} };
                    let _ = timeout(DRAIN, rest).await;
                }
                State::Done => return None,
            }
        }
    }

    async fn send(&self) -> Result<Reading, Failed> {
        let target = &self.prepared.target;
        let limit = |wait: Option<Duration>| wait.and_then(|d| Instant::now().checked_add(d));
        let first_by = limit(self.prepared.deadlines.first_byte).map(|at| (at, Step::FirstByte));
        let request =
            self.prepared
                .way
                .send(&target.url, &self.prepared.headers, &self.prepared.body);
        let response = self
            .timed(first_by, request)
            .await
            .map_err(|e| (e, None))?
            .map_err(|e| (self.not_sent(e), None))?;
        let status = response.status();
        if status != 200 {
            return Err(self.refused(response, first_by).await);
        }
        let kind = content_type(response.headers());
        if kind == "text/html" {
            let error = ModelError::BadStream {
                provider: target.provider.clone(),
                message: "an HTML page came instead of an answer; check options.baseURL".into(),
            };
            return Err((error, None));
        }
        Ok(Reading {
            whole: (kind == "application/json").then(Vec::new),
            response,
            parser: Framing::of(&kind),
            decoder: (self.prepared.decoder)(),
            next_by: first_by,
        })
    }

    async fn refused(&self, mut response: ProviderResponse, by: Option<(Instant, Step)>) -> Failed {
        let status = response.status();
        let mut body = Vec::new();
        while body.len() < MAX_ERROR_BODY {
            match self.timed(by, response.chunk()).await {
                Ok(Ok(Some(bytes))) => body.extend_from_slice(&bytes),
                // Without its text, the status is sufficient.
                _ => break,
            }
        }
        body.truncate(MAX_ERROR_BODY);
        let text = self.prepared.way.scrub(&String::from_utf8_lossy(&body));
        self.prepared
            .target
            .status_error(status, response.headers(), &text)
    }

    async fn read(&mut self, reading: &mut Reading) -> Result<Progress, ModelError> {
        let chunk = self
            .timed(reading.next_by, reading.response.chunk())
            .await?;
        reading.next_by = self
            .prepared
            .deadlines
            .idle
            .and_then(|d| Instant::now().checked_add(d))
            .map(|at| (at, Step::Idle));
        let mut events = Vec::new();
        match chunk {
            Err(error) => {
                // Received content is returned before the error.
                return Err(self.interrupted(&error));
            }
            Ok(None) => return self.end(reading),
            Ok(Some(bytes)) => {
                if let Some(whole) = &mut reading.whole {
                    whole.extend_from_slice(&bytes);
                    if whole.len() > MAX_WHOLE_BODY {
                        return Err(self.bad_stream("the answer is longer than 64 MiB"));
                    }
                } else if let Err(error) = reading.parser.feed(&bytes, &mut events) {
                    return Err(self.bad_stream(&error));
                }
            }
        }
        self.decode(reading, &events)
    }

    fn end(&mut self, reading: &mut Reading) -> Result<Progress, ModelError> {
        let mut out = Vec::new();
        if let Some(whole) = reading.whole.take() {
            let body = serde_json::from_slice(&whole)
                .map_err(|e| self.bad_stream(&format!("the answer is not JSON: {e}")))?;
            let result = reading.decoder.whole(body, &mut out);
            self.emit(out);
            return match result {
                Ok(()) => Ok(Progress::Done),
                Err(failure) => Err(self.prepared.target.stream_error(&failure)),
            };
        }
        let mut events = Vec::new();
        if let Framing::Sse(parser) = &mut reading.parser {
            parser.finish(&mut events);
        }
        if self.decode(reading, &events)? == Progress::Done {
            return Ok(Progress::Done);
        }
        let complete = reading.decoder.end(&mut out);
        self.emit(out);
        if complete {
            return Ok(Progress::Done);
        }
        Err(self.interrupted("the connection was closed before the answer was complete"))
    }

    fn decode(
        &mut self,
        reading: &mut Reading,
        events: &[SseEvent],
    ) -> Result<Progress, ModelError> {
        for event in events {
            let mut out = Vec::new();
            let result = reading.decoder.feed(event, &mut out);
            self.emit(out);
            match result {
                Ok(Progress::More) => {}
                Ok(Progress::Done) => return Ok(Progress::Done),
                Err(failure) => return Err(self.prepared.target.stream_error(&failure)),
            }
        }
        Ok(Progress::More)
    }

    // `Started` waits for the first content, so that a retry before it leaves no trace in the events.
    fn emit(&mut self, events: Vec<StreamEvent>) {
        if events.is_empty() {
            return;
        }
        if !self.content {
            self.content = true;
            // It is not sent again.
            self.prepared.body = Bytes::new();
            self.queue
                .push_back(Ok(StreamItem::Event(StreamEvent::Started)));
        }
        self.queue
            .extend(events.into_iter().map(|e| Ok(StreamItem::Event(e))));
    }

    fn fail(&mut self, (error, asked): Failed) {
        let policy = &self.prepared.policy;
        let retry = !self.content && self.retries < error.max_retries(policy);
        let delay = asked.unwrap_or_else(|| policy.backoff(self.retries + 1));
        if !retry || asked.is_some_and(|wait| wait > policy.max_asked) {
            self.queue.push_back(Err(error));
            return;
        }
        self.retries += 1;
        tracing::debug!(
            attempt = self.retries,
            ?delay,
            code = error.code(),
            "model request is sent again"
        );
        self.queue.push_back(Ok(StreamItem::Retry(RetryNotice {
            attempt: self.retries,
            message: error.to_string(),
            code: error.code(),
            delay,
        })));
        self.state = State::Wait(delay);
    }

    // Runs a future under the earlier of the step's deadline and the total one.
    async fn timed<F: Future>(
        &self,
        step: Option<(Instant, Step)>,
        future: F,
    ) -> Result<F::Output, ModelError> {
        let by_total = match (step, self.total) {
            (Some((at, _)), Some(total)) => total <= at,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        let at = if by_total {
            self.total
        } else {
            step.map(|(at, _)| at)
        };
        let Some(at) = at else {
            return Ok(future.await);
        };
        timeout_at(at, future).await.map_err(|_| {
            let provider = self.prepared.target.provider.clone();
            let deadlines = &self.prepared.deadlines;
            let after = |d: Option<Duration>| d.unwrap_or_default();
            if let (Some(plugin), Some((_, step)), false) =
                (self.prepared.way.plugin(), step, by_total)
            {
                let limit = match step {
                    Step::FirstByte => deadlines.first_byte,
                    Step::Idle => deadlines.idle,
                };
                return ModelError::FetchTimeout {
                    provider,
                    plugin: plugin.to_owned(),
                    after: after(limit),
                };
            }
            match step {
                Some((_, Step::FirstByte)) if !by_total => ModelError::FirstByteTimeout {
                    provider,
                    after: after(deadlines.first_byte),
                },
                Some((_, Step::Idle)) if !by_total => ModelError::IdleTimeout {
                    provider,
                    after: after(deadlines.idle),
                },
                _ => ModelError::TotalTimeout {
                    provider,
                    after: after(deadlines.total),
                },
            }
        })
    }

    fn not_sent(&self, not_sent: NotSent) -> ModelError {
        let target = &self.prepared.target;
        let NotSent {
            message, lookup, ..
        } = not_sent;
        if let Some(unsigned) = not_sent.unsigned {
            let (provider, message) = (target.provider.clone(), target.secrets.scrub(&message));
            return match unsigned {
                NotAuthorised::Config => ModelError::Config { provider, message },
                NotAuthorised::Login => ModelError::Login { provider, message },
            };
        }
        if let Some(plugin) = self.prepared.way.plugin() {
            return ModelError::Fetch {
                provider: target.provider.clone(),
                plugin: plugin.to_owned(),
                message: target.secrets.scrub(&message),
            };
        }
        let (provider, url) = (target.provider.clone(), target.secrets.scrub(&target.url));
        match client::check(&target.url) {
            Ok(()) => ModelError::Connect {
                provider,
                url,
                message: target.secrets.scrub(&message),
                lookup,
            },
            // A retry would get the same result.
            Err(refused) => ModelError::Forbidden {
                provider,
                url,
                message: refused.to_string(),
            },
        }
    }

    fn interrupted(&self, message: &str) -> ModelError {
        ModelError::StreamInterrupted {
            provider: self.prepared.target.provider.clone(),
            message: self.prepared.target.secrets.scrub(message),
        }
    }

    fn bad_stream(&self, message: &str) -> ModelError {
        ModelError::BadStream {
            provider: self.prepared.target.provider.clone(),
            message: message.to_owned(),
        }
    }
}

fn content_type(headers: &HeaderMap) -> String {
    let value = headers
        .get(http::header::CONTENT_TYPE)
        .and_then(|v| v.to_str().ok());
    let kind = value
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

//! The scripted model: an OpenAI-compatible chat completions server on loopback, in a thread.
//!
//! ```
//! use outrigger_test_support::World;
//! use outrigger_test_support::model::{call, done, turn};
//! use serde_json::json;
//!
//! // It calls a tool, reads what the tool answered, and is done.
//! let command = json!({ "command": "true", "description": "nothing" });
//! let world = World::new([turn([call("bash", command)]), done()]);
//! assert!(world.mock.url().starts_with("http://127.0.0.1:"));
//! assert!(world.mock.requests().is_empty());
//! ```
//!
//! A turn of the script is an object: `{text?, reasoning?, tools?: [{name, args | raw, id?}], then?: text}`, or `{status, error,
//! retry_after?}`. `cut: n` ends the connection after n frames, `stall: n` sends nothing more after n frames until the
//! client leaves; `usage: [n, m]` says how many tokens went in and out.
//!
//! A request that offers no tools asks for a title; the others get one turn each, and the last turn over and over. A request for
//! a summary of the conversation gets the turns of [`Mock::summaries`], in the same way. [`Mock::when`] answers by what is asked.
//! [`Mock::by_results`] makes the turn depend on the request alone: as many tool results as the history holds.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A request to the model.
#[derive(Clone, Debug)]
pub struct Request {
    /// Names and values of its headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Value,
    /// It requests the title of a session.
    pub is_title: bool,
    /// It requests a summary for a compaction.
    pub is_summary: bool,
}

impl Request {
    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| v.as_str())
    }

    /// Returns the texts of the messages of a role, in order.
    pub fn texts(&self, role: &str) -> Vec<String> {
        let messages = self.body["messages"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        messages
            .iter()
            .filter(|m| m["role"] == role)
            .map(|m| content(&m["content"]))
            .collect()
    }

    /// Returns the names of the offered tools.
    pub fn tools(&self) -> Vec<String> {
        let tools = self.body["tools"].as_array().cloned().unwrap_or_default();
        tools
            .iter()
            .filter_map(|t| t["function"]["name"].as_str().map(str::to_owned))
            .collect()
    }

    /// Returns identifiers of the tool calls and of their results, in the order of the history.
    pub fn call_ids(&self) -> (Vec<String>, Vec<String>) {
        let messages = self.body["messages"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let own = |value: &Value| value.as_str().map(str::to_owned);
        let calls = messages
            .iter()
            .filter_map(|m| m["tool_calls"].as_array())
            .flatten()
            .filter_map(|c| own(&c["id"]))
            .collect();
        let results = messages
            .iter()
            .filter_map(|m| own(&m["tool_call_id"]))
            .collect();
        (calls, results)
    }
}

fn content(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|p| p["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n"),
        _ => String::new(),
    }
}

/// Returns a turn with a text.
pub fn text(text: &str) -> Value {
    json!({ "text": text })
}

/// Returns the usual last turn.
pub fn done() -> Value {
    text("All done.")
}

/// Returns a tool call.
pub fn call(name: &str, args: Value) -> Value {
    json!({ "name": name, "args": args })
}

/// Returns a turn that calls tools.
pub fn turn(tools: impl IntoIterator<Item = Value>) -> Value {
    json!({ "tools": tools.into_iter().collect::<Vec<_>>() })
}

struct Shared {
    turns: Vec<Value>,
    title: Value,
    summaries: Mutex<Vec<Value>>,
    summarised: AtomicUsize,
    /// Turns for requests whose last user message contains a text.
    answers: Mutex<Vec<(String, Value)>>,
    by_results: AtomicBool,
    by_compaction: AtomicBool,
    asked: AtomicUsize,
    closed: AtomicBool,
    requests: Mutex<Vec<Request>>,
}

/// The model; stopped on drop.
pub struct Mock {
    port: u16,
    shared: Arc<Shared>,
}

impl Mock {
    /// Creates a model that answers with these turns.
    pub fn new(turns: impl IntoIterator<Item = Value>) -> Self {
        Self::titled(turns, text("A title"))
    }

    /// Like [`Mock::new`], with a turn for title requests.
    pub fn titled(turns: impl IntoIterator<Item = Value>, title: Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            turns: turns.into_iter().collect(),
            title,
            summaries: Mutex::new(vec![text("The summary.")]),
            summarised: AtomicUsize::new(0),
            answers: Mutex::default(),
            by_results: AtomicBool::new(false),
            by_compaction: AtomicBool::new(false),
            asked: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            requests: Mutex::default(),
        });
        let server = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if server.closed.load(Ordering::SeqCst) {
                    return;
                }
                let server = Arc::clone(&server);
                // Some tests kill a client in the middle of a request.
                std::thread::spawn(move || drop(server.serve(stream)));
            }
        });
        Self { port, shared }
    }

    /// Selects the turn by the number of tool results in the request, so that a repeated request gets the same answer.
    pub fn by_results(self) -> Self {
        self.shared.by_results.store(true, Ordering::SeqCst);
        self
    }

    /// Selects the turn by whether the request contains a summary: the first without one, the second with it.
    pub fn by_compaction(self) -> Self {
        self.shared.by_compaction.store(true, Ordering::SeqCst);
        self
    }

    /// Sets the answers to requests for summaries.
    pub fn summaries(self, turns: impl IntoIterator<Item = Value>) -> Self {
        *self.shared.summaries.lock().unwrap() = turns.into_iter().collect();
        self
    }

    /// Sets the turn for requests whose last message is the user's and contains this text, however often.
    pub fn when(&self, text: &str, turn: Value) {
        let mut answers = self.shared.answers.lock().unwrap();
        answers.push((text.to_owned(), turn));
    }

    /// Returns the base URL of its API.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// Returns the requests of turns so far, without those for titles.
    pub fn requests(&self) -> Vec<Request> {
        self.all_requests()
            .into_iter()
            .filter(|r| !r.is_title)
            .collect()
    }

    /// Returns all requests so far.
    pub fn all_requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Returns the last request of a turn.
    pub fn last(&self) -> Request {
        self.requests().pop().unwrap()
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let mut headers = Vec::new();
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let Some((name, value)) = header.trim_end().split_once(':') else {
                break;
            };
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        let length = headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .and_then(|(_, v)| v.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body)?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let no_tools = body["tools"].as_array().is_none_or(Vec::is_empty);
        let mut request = Request {
            headers,
            body,
            is_title: false,
            is_summary: false,
        };
        let said = request.texts("user").join("\n");
        request.is_summary = no_tools
            && (said.contains("<conversation>") || said.contains("The conversation so far:"));
        request.is_title = no_tools && !request.is_summary;
        let turn = self.choose(&request);
        self.requests.lock().unwrap().push(request.clone());
        self.answer(stream, &turn, &request)
    }

    fn choose(&self, request: &Request) -> Value {
        if request.is_title {
            return self.title.clone();
        }
        if request.is_summary {
            let turns = self.summaries.lock().unwrap();
            let n = self.summarised.fetch_add(1, Ordering::SeqCst);
            return turns.get(n).or(turns.last()).cloned().unwrap_or_default();
        }
        let last = request.body["messages"].as_array().and_then(|m| m.last());
        if let Some(last) = last.filter(|m| m["role"] == "user") {
            let said = content(&last["content"]);
            let answers = self.answers.lock().unwrap();
            if let Some((_, turn)) = answers.iter().find(|(text, _)| said.contains(text)) {
                return turn.clone();
            }
        }
        let asked = self.asked.fetch_add(1, Ordering::SeqCst);
        let n = if self.by_results.load(Ordering::SeqCst) {
            request.call_ids().1.len()
        } else if self.by_compaction.load(Ordering::SeqCst) {
            usize::from(
                request
                    .texts("user")
                    .iter()
                    .any(|text| text == "What did we do so far?"),
            )
        } else {
            asked
        };
        self.turns
            .get(n)
            .or(self.turns.last())
            .cloned()
            .unwrap_or_default()
    }

    fn answer(
        &self,
        mut stream: TcpStream,
        turn: &Value,
        request: &Request,
    ) -> std::io::Result<()> {
        if let Some(status) = turn["status"].as_u64() {
            let body = json!({ "error": { "message": turn["error"] } }).to_string();
            let wait = turn["retry_after"]
                .as_str()
                .map(|w| format!("retry-after: {w}\r\n"))
                .unwrap_or_default();
            let head = format!(
                "HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\nconnection: close\r\n{wait}content-length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all((head + &body).as_bytes())?;
            return stream.shutdown(Shutdown::Both);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n")?;
        let frames = frames(turn, request);
        let at = |key: &str| turn[key].as_u64().and_then(|n| usize::try_from(n).ok());
        for (n, frame) in frames.iter().enumerate() {
            if at("cut") == Some(n) {
                return stream.shutdown(Shutdown::Both);
            }
            if at("stall") == Some(n) {
                return self.stall(&stream);
            }
            stream.write_all(format!("{:x}\r\n{frame}\r\n", frame.len()).as_bytes())?;
        }
        stream.write_all(b"0\r\n\r\n")
    }

    /// Holds the connection until the client disconnects or the test ends.
    fn stall(&self, mut stream: &TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(Duration::from_millis(50)))?;
        let limit = Instant::now() + Duration::from_secs(60);
        while !self.closed.load(Ordering::SeqCst) && Instant::now() < limit {
            match stream.read(&mut [0; 64]) {
                Ok(0) => break,
                Err(error)
                    if !matches!(
                        error.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                    ) =>
                {
                    break;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn frames(turn: &Value, request: &Request) -> Vec<String> {
    let asked = request.call_ids().0.len();
    let frame = |body: Value| {
        let mut whole = json!({ "id": format!("chatcmpl-{asked}"), "object": "chat.completion.chunk", "created": 1, "model": request.body["model"] });
        whole
            .as_object_mut()
            .unwrap()
            .extend(body.as_object().cloned().unwrap_or_default());
        format!("data: {whole}\n\n")
    };
    let delta = |delta: Value, finish: Option<&str>| {
        frame(json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] }))
    };
    let mut frames = vec![delta(json!({ "role": "assistant", "content": "" }), None)];
    if let Some(thought) = turn["reasoning"].as_str() {
        frames.push(delta(json!({ "reasoning_content": thought }), None));
    }
    let said = |text: &Value| -> Vec<String> {
        let characters: Vec<char> = text.as_str().unwrap_or_default().chars().collect();
        characters
            .chunks(8)
            .map(|piece| piece.iter().collect())
            .map(|piece: String| delta(json!({ "content": piece }), None))
            .collect()
    };
    frames.extend(said(&turn["text"]));
    let tools = turn["tools"].as_array().cloned().unwrap_or_default();
    for (index, tool) in tools.iter().enumerate() {
        let id = tool["id"]
            .as_str()
            .map_or_else(|| format!("call_{asked}_{index}"), str::to_owned);
        let arguments = tool["raw"]
            .as_str()
            .map_or_else(|| tool["args"].to_string(), str::to_owned);
        frames.push(delta(json!({ "tool_calls": [{ "index": index, "id": id, "type": "function", "function": { "name": tool["name"], "arguments": "" } }] }), None));
        frames.push(delta(
            json!({ "tool_calls": [{ "index": index, "function": { "arguments": arguments } }] }),
            None,
        ));
    }
    frames.extend(said(&turn["then"]));
    frames.push(delta(
        json!({}),
        Some(if tools.is_empty() {
            "stop"
        } else {
            "tool_calls"
        }),
    ));
    let tokens = |n: usize, usual: u64| turn["usage"][n].as_u64().unwrap_or(usual);
    let (sent, got) = (tokens(0, 100), tokens(1, 10));
    frames.push(frame(json!({ "choices": [], "usage": { "prompt_tokens": sent, "completion_tokens": got, "total_tokens": sent + got } })));
    frames.push("data: [DONE]\n\n".to_owned());
    frames
}

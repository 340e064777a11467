//! `outrigger serve` and a plain HTTP client for it, which sends and receives bytes without any library.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use outrigger_test_support::process::{WAIT_TIMEOUT, wait_until};
use outrigger_test_support::{Done, Running, World};

use super::Program as _;

/// A listening server.
pub(crate) struct Server {
    pub(crate) running: Running,
    /// `127.0.0.1:PORT`.
    pub(crate) address: String,
    /// The value of `Authorization`.
    pub(crate) auth: Option<String>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the body of an answer that must have this status.
    #[track_caller]
    pub(crate) fn json(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e} in {:?}", self.text()))
    }
}

/// Starts servers in a [`World`].
pub(crate) trait Serve {
    /// Starts `outrigger serve` on a free port.
    #[track_caller]
    fn serve(&self, args: &[&str]) -> Server;

    /// Waits until this command listens.
    #[track_caller]
    fn serve_with(&self, command: Command) -> Server;
}

impl Serve for World {
    #[track_caller]
    fn serve(&self, args: &[&str]) -> Server {
        self.serve_with(self.command(&[&["serve", "--port", &free_port()], args].concat()))
    }

    #[track_caller]
    fn serve_with(&self, command: Command) -> Server {
        let running = self.start(command);
        let mut address = None;
        let listens = wait_until(WAIT_TIMEOUT, || {
            let stdout = running.stdout();
            let line = stdout
                .lines()
                .find(|line| line.contains(" server listening on http://"));
            address = line
                .and_then(|line| line.split("http://").nth(1))
                .map(str::to_owned);
            address.is_some() || running.is_over()
        });
        let Some(address) = address.filter(|_| listens) else {
            panic!("no server: {}{}", running.stdout(), running.stderr());
        };
        Server {
            running,
            address,
            auth: None,
        }
    }
}

/// Returns a value of `Authorization`.
pub(crate) fn basic(login: &str) -> String {
    use base64::Engine as _;
    format!(
        "Basic {}",
        base64::engine::general_purpose::STANDARD.encode(login)
    )
}

/// Returns a free port for this test, as an argument.
pub(crate) fn free_port() -> String {
    outrigger_test_support::free_port().to_string()
}

impl Server {
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sends a request, and disconnects after `meanwhile` without having read an answer.
    pub(crate) fn leave(&self, method: &str, path: &str, body: &str, meanwhile: impl FnOnce()) {
        let stream = self.open(method, path, &[], Some(body));
        meanwhile();
        drop(stream);
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], None)
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &[], Some(&body.to_string()))
    }

    /// Sends one request with these headers besides the usual ones; a `host` among them replaces ours.
    #[track_caller]
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Answer {
        let mut stream = self.open(method, path, headers, body);
        let (status, headers) = head(&mut stream);
        let mut body = Vec::new();
        if headers
            .iter()
            .any(|(name, value)| name == "transfer-encoding" && value == "chunked")
        {
            while let Some(piece) = chunk(&mut stream) {
                body.extend(piece);
            }
        } else {
            stream.read_to_end(&mut body).unwrap();
        }
        Answer {
            status,
            headers,
            body,
        }
    }

    fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> BufReader<TcpStream> {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
        let mut text = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        let named = |name: &str| {
            headers
                .iter()
                .any(|(known, _)| known.eq_ignore_ascii_case(name))
        };
        if !named("host") {
            text += &format!("host: {}\r\n", self.address);
        }
        if let Some(auth) = self.auth.as_deref().filter(|_| !named("authorization")) {
            text += &format!("authorization: {auth}\r\n");
        }
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        let body = body.unwrap_or_default();
        if !body.is_empty() {
            text += &format!(
                "content-type: application/json\r\ncontent-length: {}\r\n",
                body.len()
            );
        }
        (&stream)
            .write_all((text + "\r\n" + body).as_bytes())
            .unwrap();
        BufReader::new(stream)
    }

    /// Opens a stream of events, which must begin with `server.connected`.
    #[track_caller]
    pub(crate) fn events(&self, path: &str) -> Events {
        let mut events = self.follow(path, &[]);
        let first = events.next().unwrap();
        assert_eq!(kind(&first), "server.connected", "{first}");
        events
    }

    /// Opens a stream of events.
    #[track_caller]
    pub(crate) fn follow(&self, path: &str, headers: &[(&str, &str)]) -> Events {
        let mut stream = self.open("GET", path, headers, None);
        let (status, headers) = head(&mut stream);
        assert_eq!(status, 200);
        assert!(
            headers.contains(&("content-type".into(), "text/event-stream".into())),
            "{headers:?}"
        );
        Events {
            stream,
            buffer: String::new(),
            id: None,
        }
    }

    /// Ends it with SIGKILL.
    #[track_caller]
    pub(crate) fn kill(self) -> Done {
        self.running.signal(rustix::process::Signal::KILL);
        self.running.end()
    }

    /// Ends it with SIGTERM.
    #[track_caller]
    pub(crate) fn stop(self) -> Done {
        self.running.signal(rustix::process::Signal::TERM);
        self.running.end()
    }
}

/// Returns an event's kind, with or without an envelope.
pub(crate) fn kind(event: &Value) -> &str {
    event["type"]
        .as_str()
        .or(event["payload"]["type"].as_str())
        .unwrap_or_default()
}

fn head(stream: &mut BufReader<TcpStream>) -> (u16, Vec<(String, String)>) {
    let mut line = || {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    };
    let first = line();
    let status = first
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let mut headers = Vec::new();
    loop {
        let line = line();
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    (
        status.unwrap_or_else(|| panic!("no answer: {first:?}")),
        headers,
    )
}

fn chunk(stream: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    let length = usize::from_str_radix(line.trim(), 16).ok()?;
    let mut bytes = vec![0; length + 2];
    stream.read_exact(&mut bytes).unwrap();
    bytes.truncate(length);
    (length > 0).then_some(bytes)
}

/// A stream of events.
pub(crate) struct Events {
    stream: BufReader<TcpStream>,
    buffer: String,
    /// The ID of the last event received.
    pub(crate) id: Option<i64>,
}

impl Events {
    /// Returns the next event, or `None` when the stream has ended.
    pub(crate) fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((event, rest)) = self.buffer.split_once("\n\n") {
                let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
                let id = field("id: ").map(|id| id.parse().unwrap());
                // A block without data is a comment.
                let data = field("data: ").map(|data| serde_json::from_str(data).unwrap());
                self.buffer = rest.to_owned();
                if let Some(id) = id {
                    assert!(
                        self.id.is_none_or(|last| last < id),
                        "{id} after {:?}",
                        self.id
                    );
                    self.id = Some(id);
                }
                match data {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            let piece = chunk(&mut self.stream)?;
            self.buffer.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    /// Returns the next event of this kind.
    #[track_caller]
    pub(crate) fn until(&mut self, wanted: &str) -> Value {
        let end = Instant::now() + WAIT_TIMEOUT;
        let mut seen = Vec::new();
        while Instant::now() < end {
            let Some(event) = self.next() else { break };
            if kind(&event) == wanted {
                return event;
            }
            seen.push(kind(&event).to_owned());
        }
        panic!("no {wanted} after {seen:?}");
    }
}

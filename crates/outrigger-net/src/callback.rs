//! Receives the browser's callback after a login: a web server on loopback that answers one kind of request, once.

use std::time::Duration;

use reqwest::Url;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long a user may take (OpenCode's).
const LOGIN_TIMEOUT: Duration = Duration::from_secs(300);
/// How long a browser may take to send its request.
const REQUEST: Duration = Duration::from_secs(5);
const MAX_BYTES: usize = 16 * 1024;
/// Maximum number of silent open connections.
const MAX_WAITING: usize = 256;

/// Listens for the browser.
#[derive(Debug)]
pub struct Callback {
    listener: TcpListener,
    path: String,
}

enum Verdict {
    Code(String),
    Refused(String),
    Foreign(u16, &'static str),
}

impl Callback {
    /// Listens on loopback. Port 0 means any free one.
    ///
    /// # Errors
    /// The port is taken, in words.
    pub async fn listen(port: u16, path: &str) -> Result<Self, String> {
        let listener = TcpListener::bind(("127.0.0.1", port))
            .await
            .map_err(|error| format!("port {port}, to which the browser comes back: {error}"))?;
        Ok(Self {
            listener,
            path: path.to_owned(),
        })
    }

    /// Returns its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.listener.local_addr().map_or(0, |at| at.port())
    }

    /// Waits for the code of the login with this `state`. `check` validates the issuer, from the parameter `iss` (RFC 9207).
    ///
    /// # Errors
    /// The error of the authorization server or of `check`, or a timeout.
    pub async fn code(
        self,
        state: &str,
        check: impl Fn(Option<&str>) -> Result<(), String>,
    ) -> Result<String, String> {
        let wait = async {
            // A browser opens connections ahead of time without a request: they are handled concurrently.
            let mut waiting = JoinSet::new();
            loop {
                let (mut stream, target) = tokio::select! {
                    Some(asked) = waiting.join_next() => match asked {
                        Ok(Some(asked)) => asked,
                        _ => continue,
                    },
                    accepted = self.listener.accept(), if waiting.len() < MAX_WAITING => {
                        if let Ok((stream, _)) = accepted {
                            waiting.spawn(asked(stream));
                        }
                        continue;
                    }
                };
                let verdict = self.judge(&target, state, &check);
                let (status, text) = match &verdict {
                    Verdict::Code(_) => (
                        200,
                        "You are logged in. You can close this page and go back to the terminal.",
                    ),
                    Verdict::Refused(_) => (
                        200,
                        "The login was refused; the terminal has the reason. You can close this page.",
                    ),
                    Verdict::Foreign(status, text) => (*status, *text),
                };
                let _ = timeout(REQUEST, answer(&mut stream, status, text)).await;
                match verdict {
                    Verdict::Code(code) => return Ok(code),
                    Verdict::Refused(reason) => return Err(reason),
                    Verdict::Foreign(..) => {}
                }
            }
        };
        timeout(LOGIN_TIMEOUT, wait).await.unwrap_or_else(|_| {
            Err(format!(
                "nobody logged in within {} minutes",
                LOGIN_TIMEOUT.as_secs() / 60
            ))
        })
    }

    fn judge(
        &self,
        target: &str,
        state: &str,
        check: &impl Fn(Option<&str>) -> Result<(), String>,
    ) -> Verdict {
        let Ok(url) = Url::parse("http://127.0.0.1").and_then(|base| base.join(target)) else {
            return Verdict::Foreign(400, "Not an address.");
        };
        if url.path() != self.path {
            return Verdict::Foreign(404, "Not found.");
        }
        let value = |key: &str| {
            let mut pairs = url.query_pairs();
            pairs.find_map(|(name, value)| (name == key).then(|| value.into_owned()))
        };
        // Anyone can send a browser here; only the login that we started knows the state.
        if value("state").as_deref() != Some(state) {
            return Verdict::Foreign(400, "This is not the login that was begun.");
        }
        if let Err(reason) = check(value("iss").as_deref()) {
            return Verdict::Refused(reason);
        }
        if let Some(error) = value("error") {
            return Verdict::Refused(value("error_description").unwrap_or(error));
        }
        match value("code").filter(|code| !code.is_empty()) {
            Some(code) => Verdict::Code(code),
            None => Verdict::Foreign(400, "There is no code in the address."),
        }
    }
}

/// Reads a connection's request, if it arrives in time.
async fn asked(mut stream: TcpStream) -> Option<(TcpStream, String)> {
    let target = timeout(REQUEST, target(&mut stream)).await.ok()??;
    Some((stream, target))
}

/// Reads the target of a GET.
async fn target(stream: &mut TcpStream) -> Option<String> {
    let mut held = Vec::new();
    let mut chunk = [0; 2048];
    loop {
        let read = stream
            .read(&mut chunk)
            .await
            .ok()
            .filter(|read| *read > 0)?;
        held.extend_from_slice(chunk.get(..read)?);
        // The whole head is read, so that closing the connection does not lose the response.
        if held.windows(4).any(|end| end == b"\r\n\r\n") {
            break;
        }
        if held.len() > MAX_BYTES {
            return None;
        }
    }
    let head = String::from_utf8(held).ok()?;
    let mut words = head.lines().next()?.split(' ');
    (words.next() == Some("GET")).then(|| words.next().map(str::to_owned))?
}

async fn answer(stream: &mut TcpStream, status: u16, text: &str) -> std::io::Result<()> {
    let page =
        format!("<!doctype html><meta charset=\"utf-8\"><title>Outrigger</title><p>{text}</p>\n");
    let head = format!(
        "HTTP/1.1 {status} {}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\ncache-control: no-store\r\nconnection: close\r\n\r\n",
        if status == 200 { "OK" } else { "Error" },
        page.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(page.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "/auth/callback";

    async fn get(port: u16, target: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text.lines().next().unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn only_the_login_that_was_begun_gets_through() {
        let callback = Callback::listen(0, PATH).await.unwrap();
        let port = callback.port();
        let code = tokio::spawn(async move { callback.code("s", |_| Ok(())).await });
        // Silent connections do not delay others.
        let mut idle = Vec::new();
        for _ in 0..12 {
            idle.push(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
        }
        let began = std::time::Instant::now();
        for (target, status) in [
            ("/favicon.ico", "HTTP/1.1 404 Error"),
            ("/auth/callback?code=x", "HTTP/1.1 400 Error"),
            ("/auth/callback?code=x&state=other", "HTTP/1.1 400 Error"),
            ("/auth/callback?error=x&state=other", "HTTP/1.1 400 Error"),
            ("/auth/callback?state=s", "HTTP/1.1 400 Error"),
            ("/auth/callback?state=s&code=a%20b", "HTTP/1.1 200 OK"),
        ] {
            assert_eq!(get(port, target).await, status, "{target}");
        }
        assert_eq!(code.await.unwrap(), Ok("a b".to_owned()));
        assert!(began.elapsed() < REQUEST, "{:?}", began.elapsed());
        // It answers only once.
        assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
    }

    #[tokio::test]
    async fn a_refusal_is_reported_and_a_port_that_is_taken_named() {
        for (query, check, says) in [
            (
                "error=access_denied&error_description=not%20you",
                None,
                "not you",
            ),
            (
                "code=c&iss=other",
                Some("of another server"),
                "of another server",
            ),
        ] {
            let callback = Callback::listen(0, PATH).await.unwrap();
            let port = callback.port();
            let taken = Callback::listen(port, PATH).await;
            assert!(taken.unwrap_err().contains(&format!("port {port}")));
            let refuse = move |_: Option<&str>| check.map_or(Ok(()), |why| Err(String::from(why)));
            let code = tokio::spawn(async move { callback.code("s", refuse).await });
            get(port, &format!("/auth/callback?state=s&{query}")).await;
            assert_eq!(code.await.unwrap(), Err(says.to_owned()));
        }
    }
}

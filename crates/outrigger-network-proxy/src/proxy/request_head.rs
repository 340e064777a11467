//! The head of a request to the proxy: the client, the target, and what is forwarded.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::hosts::authority;

/// Maximum bytes of a head.
pub(super) const MAX_BYTES: usize = 32 * 1024;
/// Maximum number of lines.
const MAX_LINES: usize = 128;

/// The kind of request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    /// A tunnel to the target.
    Tunnel,
    /// A request in the form for its target.
    Forward {
        head: Vec<u8>,
        /// The length of its body; `None` if only the target knows it.
        body: Option<u64>,
    },
}

/// A complete head.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) token: Option<String>,
    /// Host and port; `None` if it names none, or an ambiguous one.
    pub(super) target: Option<(String, u16)>,
    /// The target as written.
    pub(super) said: String,
    pub(super) wanted: RequestKind,
    /// Bytes of the head; the body follows.
    pub(super) size: usize,
}

/// Parses a head. `Ok(None)`: it is incomplete.
///
/// # Errors
/// It is not a request.
pub(super) fn read(bytes: &[u8]) -> Result<Option<Head>, &'static str> {
    let mut lines = [httparse::EMPTY_HEADER; MAX_LINES];
    let mut request = httparse::Request::new(&mut lines);
    let size = match request.parse(bytes) {
        Ok(httparse::Status::Complete(size)) => size,
        Ok(httparse::Status::Partial) if bytes.len() < MAX_BYTES => return Ok(None),
        Ok(httparse::Status::Partial) => return Err("its head is too long"),
        Err(_) => return Err("it is not an HTTP request"),
    };
    let (method, path) = (
        request.method.unwrap_or_default(),
        request.path.unwrap_or_default(),
    );
    let token = request
        .headers
        .iter()
        .find(|line| line.name.eq_ignore_ascii_case("proxy-authorization"))
        .and_then(|line| token(line.value));
    let (target, said, wanted) = match method {
        "CONNECT" => (authority(path, None), path.to_owned(), RequestKind::Tunnel),
        _ => passed_on(&request, method, path),
    };
    Ok(Some(Head {
        token,
        target,
        said: said.chars().take(300).collect(),
        wanted,
        size,
    }))
}

fn token(value: &[u8]) -> Option<String> {
    let (way, login) = std::str::from_utf8(value).ok()?.trim().split_once(' ')?;
    let login = STANDARD.decode(login.trim()).ok()?;
    let login = String::from_utf8(login).ok()?;
    let (_, token) = login.split_once(':')?;
    way.eq_ignore_ascii_case("basic").then(|| token.to_owned())
}

/// Converts a request for `http://host/path` to the form for the host itself. Without `http://` there is no target:
/// a client that mistook the proxy for a server gets a response that says so.
fn passed_on(
    request: &httparse::Request<'_, '_>,
    method: &str,
    path: &str,
) -> (Option<(String, u16)>, String, RequestKind) {
    let rest = path
        .split_at_checked(7)
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("http://"))
        .map_or("", |(_, rest)| rest);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (named, place) = rest.split_at(end);
    let target = authority(named, Some(80));
    let slash = if place.starts_with('/') { "" } else { "/" };
    let mut head = format!("{method} {slash}{place} HTTP/1.1\r\nhost: {named}\r\n").into_bytes();
    let upgrades = request
        .headers
        .iter()
        .any(|line| line.name.eq_ignore_ascii_case("upgrade"));
    for line in request.headers.iter() {
        let name = line.name.to_ascii_lowercase();
        // The name in the request is the checked one; headers for the proxy itself are not forwarded.
        let ours = ["host", "connection", "keep-alive"].contains(&name.as_str())
            || name.starts_with("proxy-");
        if !ours {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(line.value);
            head.extend_from_slice(b"\r\n");
        }
    }
    // One request per connection: the next one may be for another host.
    let connection = if upgrades { "upgrade" } else { "close" };
    head.extend_from_slice(format!("connection: {connection}\r\n\r\n").as_bytes());
    let body = (!upgrades).then(|| body_of(request)).flatten();
    (
        target,
        named.to_owned(),
        RequestKind::Forward { head, body },
    )
}

/// Returns the length of a body if it is specified once and unambiguously.
fn body_of(request: &httparse::Request<'_, '_>) -> Option<u64> {
    let of = |name: &'static str| {
        request
            .headers
            .iter()
            .filter(move |line| line.name.eq_ignore_ascii_case(name))
    };
    if of("transfer-encoding").next().is_some() {
        return None;
    }
    let mut lengths = of("content-length");
    match (lengths.next(), lengths.next()) {
        (None, _) => Some(0),
        (Some(line), None) => {
            let text = std::str::from_utf8(line.value).ok()?.trim();
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| text.parse().ok()).flatten()
        }
        _ => None,
    }
}

/// Converts the request to the form for another proxy, with its credentials.
pub(super) fn absolute(head: &[u8], host: &str, port: u16, login: &str) -> Vec<u8> {
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    };
    let port = match port {
        80 => String::new(),
        port => format!(":{port}"),
    };
    let at = head.iter().position(|byte| *byte == b' ');
    let (method, rest) = head.split_at(at.map_or(0, |at| at + 1));
    let end = rest.iter().position(|byte| *byte == b'\n');
    let (line, lines) = rest.split_at(end.map_or(0, |end| end + 1));
    let place = format!("http://{host}{port}");
    [method, place.as_bytes(), line, login.as_bytes(), lines].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Head {
        read(text.as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn targets() {
        for (line, target, said) in [
            ("CONNECT a.com:443", Some(("a.com", 443)), "a.com:443"),
            ("CONNECT [::1]:80", Some(("::1", 80)), "[::1]:80"),
            // A tunnel must specify its port.
            ("CONNECT a.com", None, "a.com"),
            ("CONNECT http://a.com:80/", None, "http://a.com:80/"),
            ("GET http://A.com/x?y", Some(("a.com", 80)), "A.com"),
            (
                "GET http://a.com:8080?y",
                Some(("a.com", 8080)),
                "a.com:8080",
            ),
            ("GET HTTP://a.com", Some(("a.com", 80)), "a.com"),
            ("GET http://good.com@127.0.0.1/", None, "good.com@127.0.0.1"),
            (
                "GET http://good.com\\@evil.com/",
                None,
                "good.com\\@evil.com",
            ),
            ("GET https://a.com/", None, ""),
            ("GET /etc/passwd", None, ""),
        ] {
            let head = of(&format!("{line} HTTP/1.1\r\nHost: other.com\r\n\r\n"));
            let target = target.map(|(host, port): (&str, u16)| (host.to_owned(), port));
            assert_eq!((head.target, head.said.as_str()), (target, said), "{line}");
        }
    }

    #[test]
    fn what_is_passed_on() {
        let head = of(
            "POST http://a.com/x HTTP/1.1\r\nHost: evil.com\r\nProxy-Authorization: Basic dTp0b2s=\r\n\
            Proxy-Connection: keep-alive\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi",
        );
        assert_eq!(head.token.as_deref(), Some("tok"));
        let RequestKind::Forward { head: passed, body } = head.wanted else {
            panic!("no tunnel")
        };
        assert_eq!(body, Some(2));
        let other = absolute(&passed, "::1", 8080, "login: x\r\n");
        assert_eq!(
            String::from_utf8(other).unwrap(),
            "POST http://[::1]:8080/x HTTP/1.1\r\nlogin: x\r\nhost: a.com\r\ncontent-length: 2\r\nconnection: close\r\n\r\n"
        );
        assert_eq!(
            String::from_utf8(passed).unwrap(),
            "POST /x HTTP/1.1\r\nhost: a.com\r\ncontent-length: 2\r\nconnection: close\r\n\r\n"
        );
        assert_eq!(head.size, 158);
    }

    /// Another request could follow its end, for an unchecked host.
    #[test]
    fn the_length_of_a_body_is_known_or_not() {
        for (lines, body) in [
            ("", Some(0)),
            ("Content-Length: 12\r\n", Some(12)),
            ("Content-Length: +12\r\n", None),
            ("Content-Length: 1\r\nContent-Length: 2\r\n", None),
            ("Transfer-Encoding: chunked\r\n", None),
            ("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", None),
            ("Upgrade: websocket\r\n", None),
        ] {
            let head = of(&format!("POST http://a.com/ HTTP/1.1\r\n{lines}\r\n"));
            let RequestKind::Forward { body: got, .. } = head.wanted else {
                panic!("no tunnel")
            };
            assert_eq!(got, body, "{lines}");
        }
    }

    #[test]
    fn what_is_no_request() {
        assert!(
            read(b"GET http://a.com/ HTTP/1.1\r\nA: b")
                .unwrap()
                .is_none()
        );
        assert!(read(b"\x16\x03\x01\x02\x00\x01").is_err());
        assert!(read(b"GET http://a.com/ HTTP/1.1\r\n b: c\r\n\r\n").is_err());
        let long = format!("GET http://a.com/ HTTP/1.1\r\nA: {}", "b".repeat(MAX_BYTES));
        assert!(read(long.as_bytes()).is_err());
        for login in ["", "Basic", "Basic !!", "Bearer dTp0b2s=", "Basic dXRvaw=="] {
            let head = of(&format!(
                "CONNECT a.com:1 HTTP/1.1\r\nProxy-Authorization: {login}\r\n\r\n"
            ));
            assert_eq!(head.token, None, "{login}");
        }
    }
}

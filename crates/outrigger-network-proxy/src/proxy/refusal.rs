//! Responses to refused connections: a status, the reason in the status line (programs show only that for a tunnel), and
//! JSON.

use crate::hosts::Refusal;

use super::Client;

/// Returns the response to a refused request.
pub(super) fn refusal(client: &Client, host: &str, port: u16, refused: Refusal) -> Vec<u8> {
    let (message, grant) = words(client, host, port, refused);
    let status = match refused {
        Refusal::NoHost => 400,
        Refusal::Unknown => 502,
        Refusal::TooMany => 429,
        _ => 403,
    };
    answer(
        status,
        refused.code(),
        &client.name,
        host,
        &message,
        grant.as_deref(),
    )
}

/// Returns why a connection is refused, and the grant that is needed.
pub(super) fn words(
    client: &Client,
    host: &str,
    port: u16,
    refused: Refusal,
) -> (String, Option<String>) {
    let place = match host.contains(':') {
        _ if refused == Refusal::NoHost => format!("{host:?}"),
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    };
    let who = &client.name;
    let message = match refused {
        Refusal::NotAsked => {
            format!("{who} may not connect to {place}: its manifest does not ask for it")
        }
        Refusal::NotGranted => format!("{who} may not connect to {place}"),
        Refusal::Forbidden => {
            format!("{who} may not connect to {place}: the policy of this machine forbids it")
        }
        Refusal::Private(address) if address.to_string() == host => {
            format!("{who} may not connect to {place}: it is not an address of the public internet")
        }
        Refusal::Private(address) => format!(
            "{who} may not connect to {place}: the name leads to {address}, which is not an address of the public internet"
        ),
        Refusal::NoHost => format!("{who} may not connect to {place}: that is not a host"),
        Refusal::Unknown => format!("{place} cannot be found"),
        Refusal::TooMany => format!("{who} has too many connections open"),
    };
    let grant = match refused {
        Refusal::NotAsked => Some(
            "`permissions.network.hosts` in its outrigger.plugin.toml asks for hosts".to_owned(),
        ),
        Refusal::NotGranted => Some(client.hint.replace("HOST", &place)),
        Refusal::Private(address) => {
            let literal = if address.is_ipv6() {
                format!("[{address}]:{port}")
            } else {
                format!("{address}:{port}")
            };
            Some(client.hint.replace("HOST", &literal))
        }
        Refusal::Forbidden | Refusal::NoHost | Refusal::Unknown | Refusal::TooMany => None,
    };
    (message, grant)
}

/// Returns the response to a client without a token.
pub(super) fn unknown_client() -> Vec<u8> {
    let message = "this proxy is for processes that Outrigger started";
    answer(407, "network.no_pass", "", "", message, None)
}

/// Returns the response if something failed on the way.
pub(super) fn failed(client: &Client, host: &str, message: &str) -> Vec<u8> {
    answer(502, "network.failed", &client.name, host, message, None)
}

fn answer(
    status: u16,
    code: &str,
    client: &str,
    host: &str,
    message: &str,
    hint: Option<&str>,
) -> Vec<u8> {
    let mut body = format!(
        "{{\"error\":{{\"code\":{},\"client\":{},\"host\":{},\"message\":{}",
        json(code),
        json(client),
        json(host),
        json(message)
    );
    if let Some(hint) = hint {
        body.push_str(&format!(",\"hint\":{}", json(hint)));
    }
    body.push_str("}}\n");
    let words = match hint {
        Some(hint) => format!("{message}; {hint}"),
        None => message.to_owned(),
    };
    let words: String = words
        .chars()
        .map(|c| {
            if c == ' ' || c.is_ascii_graphic() {
                c
            } else {
                '?'
            }
        })
        .take(400)
        .collect();
    let asks = match status {
        407 => "proxy-authenticate: Basic realm=\"outrigger\"\r\n",
        _ => "",
    };
    format!(
        "HTTP/1.1 {status} {words}\r\ncontent-type: application/json\r\nx-outrigger-refused: {code}\r\n{asks}content-length: {}\r\n\
        connection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Returns a JSON string.
fn json(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

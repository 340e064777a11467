//! The Bot API, as far as needed.

use std::fmt;
use std::time::Duration;

use reqwest::Client;
use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;

/// How long the server may hold a request while there are no messages.
const POLL: Duration = Duration::from_secs(25);
/// Timeout of a request beyond that.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum UTF-16 units of a message, as Telegram counts (its limit is 4096).
const MAX_MESSAGE_UNITS: usize = 4000;
/// Maximum number of messages of one answer.
const PARTS: usize = 10;
/// How often a part is sent if it fails, and the pause between.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(2);
/// Maximum bytes of a response.
const MAX_BYTES: usize = 8 << 20;

/// The bot's token. It is never shown.
#[derive(Clone)]
pub struct Token(pub String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

/// Errors of the Bot API.
#[derive(Debug, Error)]
pub enum TelegramError {
    /// No client could be created.
    #[error("no web client could be made: {0}")]
    Client(String),
    /// No response.
    #[error("{method}: cannot reach Telegram: {why}")]
    Unreachable {
        /// Method of the API.
        method: &'static str,
        /// The reason, without the URL, which contains the token.
        why: String,
    },
    /// A refusal.
    #[error("{method}: Telegram answered {code}: {why}")]
    Refused {
        /// Method of the API.
        method: &'static str,
        /// Its code: 401 is a wrong token, 409 another program that receives this bot's messages.
        code: u16,
        /// Its message.
        why: String,
        /// The requested wait.
        wait: Option<Duration>,
    },
}

impl TelegramError {
    /// Returns whether the chat is unavailable: the bot was blocked, removed from the chat, or its token is invalid.
    fn ends_it(&self) -> bool {
        matches!(
            self,
            Self::Refused {
                code: 401 | 403,
                ..
            }
        )
    }

    /// Returns whether a retry may succeed.
    pub(crate) fn passes(&self) -> bool {
        match self {
            Self::Refused { code, .. } => *code == 429 || *code >= 500,
            _ => true,
        }
    }

    /// Returns how long to wait, if Telegram specifies it.
    pub(crate) fn wait(&self) -> Option<Duration> {
        match self {
            Self::Refused { wait, .. } => *wait,
            _ => None,
        }
    }
}

#[derive(Deserialize)]
struct ApiResponse {
    ok: bool,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    error_code: u16,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: Parameters,
}

#[derive(Default, Deserialize)]
struct Parameters {
    retry_after: Option<u64>,
}

/// An event of a chat.
pub(crate) struct Update {
    pub(crate) id: i64,
    /// `None` if it is not a text.
    pub(crate) message: Option<Message>,
}

/// A text.
pub(crate) struct Message {
    pub(crate) chat: i64,
    pub(crate) text: String,
}

/// A bot.
#[derive(Debug)]
pub struct Bot {
    client: Client,
    api: String,
    token: Token,
}

impl Bot {
    /// Creates a bot. `api` is the URL of the API, `https://api.telegram.org` except for tests and self-hosted servers.
    ///
    /// # Errors
    /// [`TelegramError::Client`].
    pub fn new(api: &str, token: Token) -> Result<Self, TelegramError> {
        outrigger_net::check_text(api)
            .map_err(|refused| TelegramError::Client(refused.to_string()))?;
        let client = outrigger_net::builder()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| TelegramError::Client(error.to_string()))?;
        Ok(Self {
            client,
            api: api.trim_end_matches('/').to_owned(),
            token,
        })
    }

    async fn call(&self, method: &'static str, body: &Value) -> Result<Value, TelegramError> {
        let url = format!("{}/bot{}/{method}", self.api, self.token.0);
        let unreachable = |error: reqwest::Error| TelegramError::Unreachable {
            method,
            // The URL contains the token.
            why: error.without_url().to_string(),
        };
        let mut response = self
            .client
            .post(url)
            .header("content-type", "application/json")
            .body(body.to_string())
            .timeout(POLL + TIMEOUT)
            .send()
            .await
            .map_err(unreachable)?;
        let status = response.status().as_u16();
        let mut bytes = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(unreachable)? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > MAX_BYTES {
                let why = format!("an answer of more than {MAX_BYTES} bytes");
                return Err(TelegramError::Unreachable { method, why });
            }
        }
        let answer: ApiResponse =
            serde_json::from_slice(&bytes).map_err(|_| TelegramError::Refused {
                method,
                code: status,
                why: "what it said is not an answer of the Bot API".to_owned(),
                wait: None,
            })?;
        if answer.ok {
            return Ok(answer.result);
        }
        Err(TelegramError::Refused {
            method,
            code: if answer.error_code == 0 {
                status
            } else {
                answer.error_code
            },
            why: answer.description,
            wait: answer
                .parameters
                .retry_after
                .map(|s| Duration::from_secs(s.min(600))),
        })
    }

    /// Returns messages from that number on; waits a while if there are none.
    pub(crate) async fn updates(&self, from: i64) -> Result<Vec<Update>, TelegramError> {
        let body =
            json!({"offset": from, "timeout": POLL.as_secs(), "allowed_updates": ["message"]});
        let result = self.call("getUpdates", &body).await?;
        let read = |update: &Value| {
            let message = update.get("message");
            let chat = message.and_then(|it| it.get("chat")?.get("id")?.as_i64());
            let text = message.and_then(|it| it.get("text")?.as_str());
            Some(Update {
                id: update.get("update_id")?.as_i64()?,
                message: chat.zip(text).map(|(chat, text)| Message {
                    chat,
                    text: text.to_owned(),
                }),
            })
        };
        let updates = result.as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(updates.iter().filter_map(read).collect())
    }

    /// Sends a text, split if it is long. A part that cannot be sent is logged and replaced by a note; the others are still
    /// sent.
    pub(crate) async fn send(&self, chat: i64, text: &str) {
        let mut lost = 0;
        for part in parts(text) {
            if lost > 0 {
                let said =
                    format!("({lost} part(s) of this are missing: Telegram did not take them.)");
                if self.part(chat, &said).await.is_ok() {
                    lost = 0;
                }
            }
            match self.part(chat, &part).await {
                Ok(()) => {}
                Err(error) if error.ends_it() => return,
                Err(_) => lost += 1,
            }
        }
        if lost > 0 {
            let said = format!("({lost} part(s) of this are missing: Telegram did not take them.)");
            let _ = self.part(chat, &said).await;
        }
    }

    /// Sends untrusted text as a block, in which a client makes no links or commands.
    pub(crate) async fn block(&self, chat: i64, text: &str) -> Result<(), TelegramError> {
        let length = text.encode_utf16().count();
        let block = json!({"type": "pre", "offset": 0, "length": length});
        let body = json!({"chat_id": chat, "text": text, "entities": [block]});
        self.message(chat, &body).await
    }

    /// Sends our own words, which are within the limit.
    pub(crate) async fn part(&self, chat: i64, text: &str) -> Result<(), TelegramError> {
        self.message(chat, &json!({"chat_id": chat, "text": text}))
            .await
    }

    async fn message(&self, chat: i64, body: &Value) -> Result<(), TelegramError> {
        let mut tried = 1;
        loop {
            let Err(error) = self.call("sendMessage", body).await else {
                return Ok(());
            };
            tracing::warn!("[telegram] chat {chat}: {error}");
            if tried >= TRIES || !error.passes() {
                return Err(error);
            }
            tokio::time::sleep(error.wait().unwrap_or(PAUSE)).await;
            tried += 1;
        }
    }
}

/// Splits an answer into parts within the limit. After ten, the rest is omitted with a note.
fn parts(text: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        if parts.len() == PARTS {
            parts.push(format!(
                "(and {} characters more, which are omitted here)",
                rest.chars().count()
            ));
            break;
        }
        let (part, behind) = first_part(rest);
        parts.push(part.trim_end().to_owned());
        rest = behind.trim_start_matches('\n');
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Splits a text into parts within the limit, without omitting any.
pub(crate) fn split(text: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (part, behind) = first_part(rest);
        // The line end stays with its line.
        let end = part.len() + usize::from(behind.starts_with('\n'));
        let (part, behind) = rest.split_at(end);
        parts.push(part.to_owned());
        rest = behind;
    }
    parts
}

/// Splits off what fits into a message, up to a line end if possible.
fn first_part(text: &str) -> (&str, &str) {
    let mut units = 0;
    let end = text.char_indices().find(|(_, char)| {
        units += char.len_utf16();
        units > MAX_MESSAGE_UNITS
    });
    let Some((end, _)) = end else {
        return (text, "");
    };
    let (head, _) = text.split_at(end);
    let line = head.rfind('\n').filter(|at| *at > 0);
    text.split_at(line.unwrap_or(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_sent_in_parts() {
        let lengths = |text: &str| -> Vec<usize> {
            parts(text)
                .iter()
                .map(|p| p.encode_utf16().count())
                .collect()
        };
        assert!(lengths("").is_empty());
        assert_eq!(lengths("  a\n"), [1]);
        assert_eq!(
            lengths(&"\u{e9}".repeat(MAX_MESSAGE_UNITS)),
            [MAX_MESSAGE_UNITS]
        );
        // Two units each, and none is split.
        assert_eq!(
            lengths(&"\u{1f600}".repeat(MAX_MESSAGE_UNITS + 1)),
            [MAX_MESSAGE_UNITS, MAX_MESSAGE_UNITS, 2]
        );
        assert_eq!(
            lengths(&format!("a{}", "\u{1f600}".repeat(MAX_MESSAGE_UNITS / 2))),
            [MAX_MESSAGE_UNITS - 1, 2]
        );
        assert_eq!(
            lengths(&format!("{}\n{}", "a".repeat(3000), "b".repeat(2000))),
            [3000, 2000]
        );
        let many = parts(&"x".repeat(MAX_MESSAGE_UNITS * 11));
        assert_eq!(many.len(), PARTS + 1);
        assert_eq!(
            many[PARTS],
            "(and 4000 characters more, which are omitted here)"
        );
    }

    #[test]
    fn nothing_of_a_question_is_lost_between_its_parts() {
        let long = "x".repeat(MAX_MESSAGE_UNITS + 1);
        for text in [
            " a\n b\n".repeat(9000),
            format!("\n\n{long}\n\n{long}"),
            "\u{1f600}".repeat(MAX_MESSAGE_UNITS * 12),
            String::new(),
        ] {
            let parts = split(&text);
            assert_eq!(parts.concat(), text);
            let longest = parts.iter().map(|part| part.encode_utf16().count()).max();
            // With its line end.
            assert!(longest.unwrap_or_default() <= MAX_MESSAGE_UNITS + 1);
        }
    }

    #[test]
    fn the_token_is_never_shown() {
        let bot = Bot::new("http://127.0.0.1:1/", Token("12:secret".into())).unwrap();
        assert!(!format!("{bot:?}").contains("secret"));
    }

    #[tokio::test]
    async fn an_error_does_not_tell_the_address() {
        let bot = Bot::new("http://127.0.0.1:1", Token("12:secret".into())).unwrap();
        let error = bot.updates(0).await.err().unwrap().to_string();
        assert!(
            error.starts_with("getUpdates: cannot reach Telegram: "),
            "{error}"
        );
        assert!(!error.contains("secret"), "{error}");
    }
}

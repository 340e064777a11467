//! The kernel for hosts that are not written in Rust (C10): [`Kernel::call`] takes and returns JSON. The browser
//! extension uses it as WebAssembly; the native build has the same code, so that tests can compare the two (`tests/it`).
//!
//! A request is `{"op": NAME, "with": {…}}`, with stored records as further lines where an operation takes them. An answer is
//! `{"ok": VALUE}` or `{"error": {"code", "message"}}`. Objects with state (a turn, a chain, a conversation) are
//! opened, identified by a number, and closed. They do not have to survive the host: turns are replayed from their stored
//! inputs, and breakers, leases and references have a serialised form.
//!
//! It makes no decisions of its own. Numbers are JSON's; values that do not fit a JavaScript number (a seed) are strings that the host
//! stores and returns unchanged.

mod browser;
mod chains;
mod conversations;
#[cfg(target_arch = "wasm32")]
mod exports;
mod failure;
mod log;
mod open;
mod request;
mod rules;
mod turns;

use serde_json::json;

pub use failure::Failure;
use request::Request;

/// The state of a host.
#[derive(Default)]
pub struct Kernel {
    turns: turns::Turns,
    chains: chains::Chains,
    conversations: conversations::Conversations,
    breakers: rules::Breakers,
    browser: browser::Browser,
}

impl Kernel {
    /// Creates it without state.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Answers a request. Invalid and unknown requests are errors in the answer.
    #[must_use]
    pub fn call(&mut self, request: &[u8]) -> Vec<u8> {
        let end = request.iter().position(|byte| *byte == b'\n');
        let (request, lines) = request.split_at(end.unwrap_or(request.len()));
        let answer = match Request::read(request) {
            Ok(request) => self.answer(request, lines),
            Err(error) => Err(Failure::new("kernel.request", error.to_string())),
        };
        let answer = match answer {
            Ok(text) => format!("{{\"ok\":{text}}}"),
            Err(failure) => {
                json!({ "error": { "code": failure.code, "message": failure.message } }).to_string()
            }
        };
        answer.into_bytes()
    }

    /// `lines`: bodies of stored records, one per line.
    fn answer(&mut self, request: Request, lines: &[u8]) -> Answer {
        match request {
            Request::Turn(it) => self.turns.answer(it, lines),
            Request::Chain(it) => self.chains.answer(it),
            Request::Conversation(it) => self.conversations.answer(it),
            Request::Breaker(it) => self.breakers.answer(it),
            Request::Rule(it) => rules::answer(it),
            Request::Log(it) => log::answer(it),
            Request::Browser(it) => self.browser.answer(it),
        }
    }
}

/// An answer as JSON.
type Answer = Result<String, Failure>;

/// Arguments of operations without arguments.
#[derive(serde::Deserialize)]
struct Empty {}

/// Returns a value as JSON. The kernel's types have only string keys, so this does not fail.
fn text(it: &impl serde::Serialize) -> String {
    serde_json::to_string(it).unwrap_or_else(|_| NOTHING.to_owned())
}

/// An answer without content.
const NOTHING: &str = "null";

fn nothing() -> Answer {
    Ok(NOTHING.to_owned())
}

//! The kernel for a host that is not Rust (C10): [`Kernel::call`] takes a request as JSON and answers with JSON. The browser
//! extension has it as WebAssembly; natively it is the same code, which is how the two are compared (`tests/it`).
//!
//! A request is `{"op": NAME, "with": {…}}`, with stored records as further lines where an operation takes them. An answer is
//! `{"ok": VALUE}` or `{"error": {"code", "message"}}`. What has a state (a turn, a chain, a conversation) is
//! opened, has a number from then on, and is closed. Nothing of it has to outlive the host: turns are replayed from their stored
//! inputs, and breakers, leases and references say what is to be kept of them.
//!
//! It decides nothing itself. Numbers are JSON's: what does not fit a JavaScript number (a seed) travels in texts that the host stores
//! and hands back as they are.

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

/// All states of one host.
#[derive(Default)]
pub struct Kernel {
    turns: turns::Turns,
    chains: chains::Chains,
    conversations: conversations::Conversations,
    breakers: rules::Breakers,
    browser: browser::Browser,
}

impl Kernel {
    /// Without any state.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Answers a request. What it cannot read or does not know is an error in the answer.
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

    /// `lines`: bodies of records, as they are stored, each on a line of its own.
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

/// What an operation takes that takes nothing.
#[derive(serde::Deserialize)]
struct Empty {}

/// A value as JSON. The types of the kernel have string keys only, so that this does not fail.
fn text(it: &impl serde::Serialize) -> String {
    serde_json::to_string(it).unwrap_or_else(|_| NOTHING.to_owned())
}

/// An answer without content.
const NOTHING: &str = "null";

fn nothing() -> Answer {
    Ok(NOTHING.to_owned())
}

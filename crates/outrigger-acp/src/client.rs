//! The capabilities of the editor.

use serde_json::{Value, json};

/// The supported protocol version.
pub(crate) const VERSION: u64 = 1;
/// The offered login method.
pub(crate) const LOGIN: &str = "outrigger-login";

/// An editor's capabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Client {
    /// Messages for the user next to the conversation.
    pub(crate) notices: bool,
    /// Forms to fill in.
    pub(crate) forms: bool,
    /// Programs in a terminal, for a login.
    pub(crate) terminal_login: bool,
}

impl Client {
    /// Parses the parameters of `initialize`.
    pub(crate) fn read(params: &Value) -> Self {
        let has = |pointer: &str| {
            let found = params.pointer(&format!("/clientCapabilities{pointer}"));
            found.is_some_and(|it| !it.is_null() && *it != json!(false))
        };
        Self {
            notices: has("/session/notices"),
            forms: has("/elicitation/form"),
            terminal_login: has("/auth/terminal"),
        }
    }
}

/// Returns the response to `initialize`. It always contains our version; an editor that does not support it disconnects.
pub(crate) fn hello(client: Client) -> Value {
    let mut login = json!({
        "id": LOGIN,
        "name": "Log in with outrigger",
        "description": "Run `outrigger auth login` in a terminal",
    });
    if client.terminal_login {
        login["type"] = json!("terminal");
        login["args"] = json!(["auth", "login"]);
    }
    json!({
        "protocolVersion": VERSION,
        "agentCapabilities": {
            "loadSession": true,
            "mcpCapabilities": { "http": true, "sse": true },
            "promptCapabilities": { "image": true, "audio": false, "embeddedContext": true },
            "sessionCapabilities": { "list": {}, "resume": {}, "close": {}, "delete": {} },
        },
        "authMethods": [login],
        "agentInfo": { "name": "outrigger", "title": "Outrigger", "version": env!("CARGO_PKG_VERSION") },
    })
}

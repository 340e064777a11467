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
    /// Terminals that show what the agent sends them, as in Zed. They run nothing.
    pub(crate) shows_terminals: bool,
    /// It cannot use configuration options: a JetBrains IDE 2026.1 (LLM-28118 in JetBrains' tracker).
    pub(crate) lacks_options: bool,
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
            shows_terminals: has("/_meta/terminal_output"),
            lacks_options: is_jetbrains_2026_1(&params["clientInfo"]),
        }
    }
}

fn is_jetbrains_2026_1(info: &Value) -> bool {
    let text = |pointer: &str| info.pointer(pointer).and_then(Value::as_str);
    let is_jetbrains = text("/name").is_some_and(|it| it.starts_with("JetBrains"))
        || text("/_meta/platform") == Some("intellij");
    is_jetbrains && text("/version").is_some_and(|it| it.starts_with("2026.1"))
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
        // The editor appends these to its own arguments, which are `acp`.
        login["args"] = json!(["--login"]);
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

//! The Telegram connector of `outrigger serve` (D5), started if the snapshot includes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use outrigger_agent::Boot;
use outrigger_server::Hub;
use outrigger_telegram::{Agent, Bot, Failed, Settings, Token};
use serde_json::Value;
use tokio::task::JoinHandle;

/// Variables for a bot's token, in order of precedence.
const TOKENS: [&str; 2] = ["TELEGRAM_BOT_TOKEN", "TELOXIDE_TOKEN"];

/// The agents of a server, called in process.
struct Local(Hub);

impl Agent for Local {
    fn call(
        &self,
        method: &'static str,
        path: String,
        body: Option<Value>,
    ) -> BoxFuture<'static, Result<Value, Failed>> {
        let answer = outrigger_server::call(self.0.clone(), method, path, body);
        Box::pin(async move { answer.await.map_err(|(status, why)| Failed { status, why }) })
    }
}

/// Starts the connector if it should run in the server's folder. Its problems are logged and affect nothing else.
pub(crate) fn start(
    hub: &Hub,
    boot: &Boot,
    env: &BTreeMap<String, String>,
) -> Option<JoinHandle<()>> {
    let config = boot
        .load(&outrigger_agent::ProjectLocation::find(&boot.directory))
        .ok()?;
    if !outrigger_agent::runs_bundled(&config, &boot.folders, "telegram") {
        return None;
    }
    let token = TOKENS
        .iter()
        .find_map(|name| env.get(*name).filter(|it| !it.is_empty()))?;
    let telegram = config.settings.telegram;
    let bot = Bot::new(&telegram.api, Token(token.clone()))
        .inspect_err(|error| tracing::error!("[telegram] {error}; the connector does not run"))
        .ok()?;
    let settings = Settings {
        chats: telegram.chats,
        agent: telegram.agent,
        state: boot.folders.data.join("telegram.json"),
    };
    let agent = Arc::new(Local(hub.clone()));
    Some(tokio::spawn(outrigger_telegram::run(bot, agent, settings)))
}

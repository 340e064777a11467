//! The connector to Telegram (requirement D5, `telegram`): prompts come from chats, results go there.

mod bot;
mod chat;
mod state;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::mpsc;

pub use bot::{Bot, TelegramError, Token};
use bot::{Message, Update};
use chat::{Chat, Order};
use state::State;

/// Prompts that may wait in one chat.
const WAITING: usize = 16;
/// After a failed request for messages; it doubles up to a minute.
const AGAIN: Duration = Duration::from_secs(1);

/// The agent, as a call of its HTTP API.
pub trait Agent: Send + Sync + 'static {
    /// Calls `path` and answers with the body; the error says what went wrong, in words for people.
    fn call(
        &self,
        method: &'static str,
        path: String,
        body: Option<Value>,
    ) -> BoxFuture<'static, Result<Value, String>>;
}

/// What the connector works with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Chats whose messages are prompts (`telegram.chats`). To all others it says which number to add, and nothing else.
    pub chats: Vec<i64>,
    /// The agent that prompts are for; the default one if none is named (`telegram.agent`).
    pub agent: Option<String>,
    /// Where it keeps which session belongs to which chat, and up to where messages were taken.
    pub state: PathBuf,
}

/// Takes messages until it is dropped. Whatever fails is logged and tried again; it never ends by itself.
pub async fn run(bot: Bot, agent: Arc<dyn Agent>, settings: Settings) {
    let state = Arc::new(State::open(&settings.state));
    let bot = Arc::new(bot);
    let mut chats: HashMap<i64, mpsc::Sender<Order>> = HashMap::new();
    let mut pause = AGAIN;
    loop {
        let wait = match bot.updates(state.next()).await {
            Ok(updates) => {
                let mut failed = None;
                for update in updates {
                    // Before anything is done about it: a crash must not give the same prompt twice.
                    if let Err(error) = state.took(update.id) {
                        tracing::error!("[telegram] {error}; no message is taken until it can be");
                        failed = Some(pause);
                        break;
                    }
                    take(update, &bot, &agent, &state, &settings, &mut chats).await;
                }
                failed
            }
            Err(error) => {
                let wait = error.wait().unwrap_or(pause);
                tracing::warn!("[telegram] {error}; asked again in {} s", wait.as_secs());
                Some(wait)
            }
        };
        match wait {
            Some(wait) => {
                tokio::time::sleep(wait).await;
                pause = (pause * 2).min(Duration::from_secs(60));
            }
            None => pause = AGAIN,
        }
    }
}

async fn take(
    update: Update,
    bot: &Arc<Bot>,
    agent: &Arc<dyn Agent>,
    state: &Arc<State>,
    settings: &Settings,
    chats: &mut HashMap<i64, mpsc::Sender<Order>>,
) {
    let Some(Message { chat, text }) = update.message else {
        return;
    };
    if !settings.chats.contains(&chat) {
        tracing::warn!(
            "[telegram] a message from chat {chat} was refused: it is not in telegram.chats"
        );
        let refusal = format!(
            "This chat may not give prompts here. Whoever runs Outrigger can allow it: `telegram.chats = [{chat}]` in their outrigger.toml."
        );
        bot.send(chat, &refusal).await;
        return;
    }
    let orders = chats.entry(chat).or_insert_with(|| {
        let (sender, receiver) = mpsc::channel(WAITING);
        let chat = Chat::new(
            chat,
            Arc::clone(bot),
            Arc::clone(agent),
            Arc::clone(state),
            settings.agent.clone(),
        );
        // Ends with its sender, when the connector is dropped.
        tokio::spawn(chat.serve(receiver));
        sender
    });
    if orders.try_send(Order::read(&text)).is_err() {
        bot.send(
            chat,
            "Too many messages wait already; this one was left out.",
        )
        .await;
    }
}

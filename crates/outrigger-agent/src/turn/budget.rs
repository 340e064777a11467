//! Session budgets (C16): turns, tokens and money, and turns that plugins start on their own.

use outrigger_config::settings::Settings;
use outrigger_protocol::history::History;
use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::{MessageInfo, NamedError};
use outrigger_protocol::provenance::{Deed, Provenance};
use outrigger_store::SessionUsage;
use serde_json::json;

use crate::error::AgentError;
use crate::state::{Agent, AgentState};

/// Default limit of consecutive turns started by plugins.
const MAX_PLUGIN_TURNS: u64 = 100;

/// Returns the used budget of a session for display: `3 of 10 turns, 12 of 100 cents`. `None` if the user set no budget.
#[must_use]
pub fn budget_line(settings: &Settings, used: &SessionUsage) -> Option<String> {
    let parts = parts(settings, used).into_iter();
    let line = |(name, used, most): (&str, u64, Option<u64>)| {
        most.map(|most| format!("{used} of {most} {name}"))
    };
    let lines: Vec<String> = parts.filter_map(line).collect();
    (!lines.is_empty()).then(|| lines.join(", "))
}

/// Returns name, used amount and limit of each part.
fn parts(settings: &Settings, used: &SessionUsage) -> [(&'static str, u64, Option<u64>); 3] {
    let budget = &settings.budget;
    [
        ("turns", used.turns, budget.turns),
        ("tokens", used.tokens, budget.tokens),
        ("cents", cents(used.cost), budget.cents),
    ]
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an amount of money"
)]
fn cents(dollars: f64) -> u64 {
    (dollars * 100.0).max(0.0) as u64
}

/// Returns which part of the budget is used up. The running turn counts as one.
fn used_up(settings: &Settings, used: &SessionUsage) -> Option<NamedError> {
    let over = |(name, used, most): &(&str, u64, Option<u64>)| {
        most.is_some_and(|most| match *name {
            "turns" => *used > most,
            _ => *used >= most,
        })
    };
    let (name, used, most) = parts(settings, used).into_iter().find(over)?;
    let message = format!(
        "the budget of this session is used up: {used} {name}, and the limit is {} (budget.{name} in outrigger.toml)",
        most.unwrap_or_default()
    );
    Some(NamedError {
        name: "BudgetExceededError".to_owned(),
        data: json!({ "message": message, "code": format!("budget.{name}") }),
    })
}

impl AgentState {
    /// Whether a model may be asked for a session.
    ///
    /// # Errors
    /// `BudgetExceededError`.
    pub(crate) fn within_budget(&self, session: &SessionId) -> Result<(), NamedError> {
        let settings = &self.config.settings;
        let budget = &settings.budget;
        if budget.turns.or(budget.tokens).or(budget.cents).is_none() {
            return Ok(());
        }
        let used = self.store.session_usage(session);
        let used = used.map_err(|error| NamedError::new("UnknownError", error.to_string()))?;
        used_up(settings, &used).map_or(Ok(()), Err)
    }
}

impl Agent {
    /// Counts a turn that a prompt starts. Turns that plugins start are limited, so that a plugin loop, for example on
    /// `session.idle`, ends, in one session or with a new one each time. Refused before anything is stored, so that no event makes
    /// the plugin try again.
    ///
    /// # Errors
    /// [`AgentError::Budget`] for a plugin if the limit, or the budget of the session, is used up; those of the store.
    pub(crate) fn admit_turn(
        &self,
        session: &SessionId,
        provenance: &Provenance,
    ) -> Result<(), AgentError> {
        let state = &self.state;
        if provenance.plugins_that(Deed::Prompted).is_empty() {
            state.sessions.turns.forget_plugin_turns();
            return Ok(());
        }
        if let Err(error) = state.within_budget(session) {
            return Err(AgentError::Budget(error.message().to_owned()));
        }
        let settings = &state.config.settings.agent;
        let most = settings.max_plugin_turns.unwrap_or(MAX_PLUGIN_TURNS);
        // The history remembers across restarts; a plugin may begin a new session each time.
        let in_session = plugin_turns(&state.history(session)?);
        let counted = state.sessions.turns.count_plugin_turn(in_session, most);
        counted.map_err(|begun| {
            AgentError::Budget(format!(
                "plugins have started {begun} turns since the last prompt of the user, and the limit is {most} (agent.max_plugin_turns in outrigger.toml); a prompt of the user starts a new count"
            ))
        })
    }
}

/// Returns how many of the newest answered prompts came from plugins, with no user prompt in between.
fn plugin_turns(history: &History) -> u64 {
    let mut answered: Vec<&MessageId> = Vec::new();
    let mut count = 0;
    let messages: Vec<_> = history.iter().collect();
    for message in messages.into_iter().rev().filter_map(|it| it.stored()) {
        match &message.info {
            MessageInfo::Assistant(answer) => answered.push(&answer.parent_id),
            MessageInfo::User(user) if !answered.contains(&&user.id) => {}
            MessageInfo::User(user) => {
                if user.provenance.plugins_that(Deed::Prompted).is_empty() {
                    break;
                }
                count += 1;
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use outrigger_protocol::history::HistoryMessage;
    use outrigger_protocol::id::PluginId;
    use outrigger_protocol::message::{AssistantMessage, MessageWithParts, UserMessage};
    use outrigger_protocol::provenance::Actor;

    use super::*;

    #[test]
    fn turns_of_plugins_count_since_the_last_prompt_of_a_person() {
        let mut messages = Vec::new();
        let mut add = |n: usize, by_plugin: bool, is_answered: bool| {
            let id = MessageId(format!("msg_{n}"));
            let mut user = UserMessage {
                id: id.clone(),
                ..UserMessage::default()
            };
            if by_plugin {
                let actor = Actor::plugin(&PluginId("p".to_owned()));
                user.provenance = Provenance::prompted(actor);
            }
            let answer = AssistantMessage {
                id: MessageId(format!("msg_{n}a")),
                parent_id: id,
                ..AssistantMessage::default()
            };
            let mut infos = vec![MessageInfo::User(user)];
            infos.extend(is_answered.then_some(MessageInfo::Assistant(answer)));
            let parts = Vec::new;
            messages.extend(infos.into_iter().map(|info| MessageWithParts {
                info,
                parts: parts(),
            }));
            let all = messages.iter().cloned().map(HistoryMessage::from);
            let history: History = all.collect();
            plugin_turns(&history)
        };
        let counts = [
            add(1, true, true),
            add(2, false, true),
            add(3, true, true),
            // A prompt that wants no reply starts no turn.
            add(4, true, false),
            add(5, true, true),
            add(6, false, true),
        ];
        assert_eq!(counts, [1, 0, 1, 1, 2, 0]);
    }

    #[test]
    fn what_is_used_up_is_named() {
        let mut settings = Settings::default();
        let used = SessionUsage {
            turns: 3,
            tokens: 500,
            cost: 0.129,
        };
        assert_eq!(budget_line(&settings, &used), None);
        assert_eq!(used_up(&settings, &used), None);
        settings.budget.turns = Some(3);
        settings.budget.cents = Some(13);
        assert_eq!(
            budget_line(&settings, &used).as_deref(),
            Some("3 of 3 turns, 12 of 13 cents")
        );
        assert_eq!(used_up(&settings, &used), None);
        settings.budget.tokens = Some(500);
        let code = |settings: &Settings| used_up(settings, &used).unwrap().data["code"].clone();
        assert_eq!(code(&settings), "budget.tokens");
        settings.budget.turns = Some(2);
        assert_eq!(code(&settings), "budget.turns");
    }
}

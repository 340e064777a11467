//! Compaction: what is summarised, how it is asked for, and what stays. When it happens is the kernel's
//! (`outrigger_kernel::turn::compact`).

pub(crate) mod ask;
pub(crate) mod history;
mod prune;
pub(crate) mod select;
#[cfg(test)]
mod testing;
pub(crate) mod text;

use history::{Active, is_compaction};
use outrigger_kernel::turn::Turn;
use outrigger_kernel::turn::compact::{AGENT, Compaction};
use outrigger_protocol::compaction::{AutoCompact, CompactionPlan, Replay};
use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::{
    MessageInfo, MessageWithParts, NamedError, Part, PartKind, TextPart,
};
use outrigger_protocol::model::{ChatMessage, Content, ModelInfo};
use outrigger_protocol::session::PartInput;
use outrigger_protocol::turn::{EffectId, HookPayload, Input};
use serde_json::{Value, json};

use crate::error::AgentError;
use crate::state::Inner;
use crate::tools::tool_catalog;
use crate::turn::drive::Msg;

/// What a compaction works with.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) plan: CompactionPlan,
    /// The messages that are summarised.
    pub(crate) head: Vec<MessageWithParts>,
    /// The summary of what was before them.
    pub(crate) previous: Option<String>,
}

impl Inner {
    /// When a turn with this model compacts by itself.
    pub(crate) fn auto_compact(
        &self,
        model: &ModelInfo,
        history: &[MessageWithParts],
    ) -> Option<AutoCompact> {
        let config = &self.config.config.compaction;
        (config.auto != Some(false)).then(|| AutoCompact {
            limit: select::usable(config, model),
            used: Active::of(history.to_vec()).used(),
        })
    }

    /// Works out what the compaction that `message_id` stands for summarises, and what stays.
    ///
    /// # Errors
    /// [`AgentError::NothingToCompact`], a model that cannot be used, and those of the store.
    pub(crate) fn plan_compaction(
        &self,
        session_id: &SessionId,
        message_id: &MessageId,
        overflow: bool,
    ) -> Result<Planned, AgentError> {
        let mut all = self.store.messages(session_id)?;
        // What came later is no part of it: a message that wants no reply, or the summary that is being written.
        let at = all.iter().position(|m| m.info.id() == message_id);
        let message = at.and_then(|at| {
            let message = all.get(at).cloned();
            all.truncate(at);
            message
        });
        let Some(MessageInfo::User(asked)) = message.map(|m| m.info) else {
            return Err(AgentError::NothingToCompact(session_id.to_string()));
        };
        let agent = self.agents.get(AGENT);
        let model = agent.and_then(|a| a.model.clone()).unwrap_or(asked.model);
        let resolved = self.models.resolve(&model)?;
        let active = Active::of(all);
        let previous = active.summary();
        let mut head = active.rest;
        let replay = if overflow {
            take_replay(&mut head)
        } else {
            None
        };
        if !has_text(&head) {
            return Err(AgentError::NothingToCompact(session_id.to_string()));
        }
        let mut tail_start = None;
        if replay.is_none()
            && let Some((at, id)) =
                select::tail(&self.config.config.compaction, &resolved.model, &head)
        {
            head.truncate(at);
            tail_start = Some(id);
        } else if replay.is_none()
            && head.len() > 1
            && let Some(last) = head.pop_if(|last| is_prompt(last))
        {
            // What the user has just asked is answered, not summarised, however much else fits.
            tail_start = Some(last.info.id().clone());
        }
        let cost = resolved.model.cost;
        Ok(Planned {
            plan: CompactionPlan {
                model,
                prices: [cost.input, cost.output, cost.cache.read, cost.cache.write],
                tail_start,
                replay: replay.map(Box::new),
            },
            head,
            previous,
        })
    }

    /// The payload of a point of the request for a summary.
    pub(crate) fn compaction_payload(
        &self,
        session_id: &SessionId,
        state: &Turn,
        compaction: &Compaction,
        planned: Option<&Planned>,
        point: &str,
    ) -> Result<HookPayload, AgentError> {
        if point == "llm.before_messages" {
            let head = planned.map(|planned| planned.head.iter().cloned().collect());
            return Ok(HookPayload::with_history(
                json!({}),
                head.unwrap_or_default(),
            ));
        }
        let user = state.user();
        if point == "compaction.after_finish" {
            let resolved = self.models.resolve(&user.model)?;
            let provider = resolved.provider_for_hooks(true);
            return Ok(HookPayload::new(
                json!({
                    "sessionID": session_id, "agent": user.agent, "model": resolved.model,
                    "provider": { "source": provider.source, "info": *provider, "options": provider.options },
                    "message": MessageInfo::User(user.clone()), "overflow": compaction.is_overflow(),
                }),
                json!({ "enabled": true }),
            ));
        }
        let agent = self.agents.get(AGENT).cloned().unwrap_or_default();
        let resolved = self
            .models
            .resolve(compaction.model().unwrap_or(&user.model))?;
        let about = json!({
            "sessionID": session_id, "agent": AGENT, "model": resolved.model,
            "provider": *resolved.provider_for_hooks(true), "message": MessageInfo::User(user.clone()),
        });
        Ok(match point {
            "llm.before_system" => HookPayload::new(
                json!({ "sessionID": session_id, "model": resolved.model }),
                json!({ "system": [agent.prompt.unwrap_or_default()] }),
            ),
            "llm.before_params" => HookPayload::new(
                about,
                json!(tool_catalog::parameters(
                    &agent, &resolved, session_id, false
                )),
            ),
            _ => HookPayload::new(about, json!({ "headers": {} })),
        })
    }
}

/// Begins a compaction: what it works with, or why it cannot begin.
pub(crate) fn prepare(
    inner: &Inner,
    session_id: &SessionId,
    effect: EffectId,
    message_id: &MessageId,
    overflow: bool,
) -> Msg {
    match inner.plan_compaction(session_id, message_id, overflow) {
        Ok(planned) => Msg::Planned {
            effect,
            planned: Box::new(planned),
        },
        Err(error) => refused(effect, error.to_named()),
    }
}

/// What is told when [`prepare`] panics.
pub(crate) fn lost(effect: EffectId) -> Msg {
    let message = "the compaction ended in a panic; this is a defect of Outrigger";
    refused(effect, NamedError::new("UnknownError", message))
}

fn refused(effect: EffectId, error: NamedError) -> Msg {
    Msg::Input(Input::CompactionRefused { effect, error })
}

/// The one message of a request for a summary, from the messages as the hooks left them.
#[must_use]
pub(crate) fn question<'a>(
    compaction: &Compaction,
    head: impl IntoIterator<Item = &'a MessageWithParts>,
    previous: Option<&str>,
) -> ChatMessage {
    let text = text::prompt(
        &text::transcript(head),
        previous,
        compaction.context(),
        compaction.prompt(),
    );
    ChatMessage::User {
        content: vec![Content::Text { text }],
    }
}

fn is_prompt(message: &MessageWithParts) -> bool {
    matches!(message.info, MessageInfo::User(_)) && !is_compaction(message)
}

/// There is something to summarise.
fn has_text(messages: &[MessageWithParts]) -> bool {
    !text::transcript(messages).is_empty()
}

/// Takes the last prompt out of a history that did not fit, to be asked again behind the summary; what was done for it
/// stays and is summarised. The first prompt of all is not taken: nothing would be left.
fn take_replay(head: &mut Vec<MessageWithParts>) -> Option<Replay> {
    let at = head.iter().rposition(is_prompt)?;
    if !head.iter().take(at).any(is_prompt) {
        return None;
    }
    let taken = head.remove(at);
    let MessageInfo::User(message) = taken.info else {
        return None;
    };
    Some(Replay {
        message,
        parts: taken.parts.into_iter().map(without_media).collect(),
    })
}

fn without_media(part: Part) -> PartInput {
    let kind = match part.kind {
        PartKind::File(file) if is_media(&file) => PartKind::Text(TextPart {
            text: text::attached(&file),
            ..TextPart::default()
        }),
        kind => kind,
    };
    PartInput { id: None, kind }
}

/// Images and PDF: what makes requests large.
fn is_media(file: &outrigger_protocol::Object) -> bool {
    let mime = file.get("mime").and_then(Value::as_str).unwrap_or_default();
    mime.starts_with("image/") || mime == "application/pdf"
}

#[cfg(test)]
mod tests {
    use super::testing::*;
    use super::*;

    #[test]
    fn the_last_prompt_is_asked_again_without_its_images() {
        let image = json!({ "type": "file", "mime": "image/png", "filename": "a.png", "url": "data:image/png;base64,AAAA" });
        let mut head = vec![
            user("u1", "first"),
            answered("a1", "u1", "one"),
            user_parts("u2", json!([{ "type": "text", "text": "look" }, image])),
            answered("a2", "u2", "half"),
        ];
        let replay = take_replay(&mut head).unwrap();
        let ids: Vec<&str> = head.iter().map(|m| m.info.id().as_str()).collect();
        assert_eq!(
            ids,
            ["u1", "a1", "a2"],
            "what was done for it is summarised"
        );
        let parts = serde_json::to_value(&replay.parts).unwrap();
        assert_eq!(
            parts,
            json!([{ "type": "text", "text": "look" }, { "type": "text", "text": "[Attached image/png: a.png]" }])
        );

        let mut first = vec![user("u1", "first"), answered("a1", "u1", "one")];
        assert_eq!(take_replay(&mut first), None);
        assert_eq!(first.len(), 2);
    }
}

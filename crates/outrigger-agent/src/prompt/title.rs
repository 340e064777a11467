//! Titles, made by the small model beside the turn.

use futures_util::StreamExt as _;
use outrigger_kernel::hooks::points::llm::{
    RequestInput, before_headers, before_params, before_request, before_system,
};
use outrigger_kernel::hooks::points::runtime::route_small_model;
use outrigger_kernel::hooks::{Empty, HookInput};
use outrigger_models::{Resolved, StreamItem};
use outrigger_permissions::agents::AgentInfo;
use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::{MessageInfo, ModelRef, Part, PartKind};
use outrigger_protocol::model::{ChatMessage, Content, StreamEvent};
use serde_json::Value;

use crate::session::sessions::is_placeholder;
use crate::state::{Agent, AgentState};
use crate::turn::draft::Draft;
use crate::turn::request_options;

/// Longest title, in characters.
const LONGEST: usize = 100;

impl AgentState {
    /// Makes a title and gives it to the session. A failure costs the title only.
    pub(crate) async fn make_title(
        self: std::sync::Arc<Self>,
        session_id: SessionId,
        message_id: MessageId,
        model: ModelRef,
    ) {
        match self.title(&session_id, &message_id, &model).await {
            Ok(Some(title)) => {
                let agent = Agent { inner: self };
                let changed = agent
                    .update_session(&session_id, |session| {
                        // The user, or a plugin, may have named it meanwhile.
                        if is_placeholder(&session.title) {
                            session.title = title;
                        }
                    })
                    .await;
                if let Err(error) = changed {
                    tracing::warn!("[title] {error}");
                }
            }
            Ok(None) => {}
            Err(error) => tracing::info!("[title] {error}"),
        }
    }

    async fn title(
        &self,
        session_id: &SessionId,
        message_id: &MessageId,
        model: &ModelRef,
    ) -> Result<Option<String>, crate::AgentError> {
        let Some(message) = self.store.message(session_id, message_id)? else {
            return Ok(None);
        };
        if !matches!(message.info, MessageInfo::User(_)) {
            return Ok(None);
        }
        let agent = self.agents.get("title").cloned().unwrap_or_default();
        let resolved = match &agent.model {
            Some(model) => self.models.resolve(model)?,
            None => self
                .models
                .resolve(&self.small_model(session_id, model).await)?,
        };
        let input = RequestInput {
            session_id,
            agent: "title",
            model: &resolved.model_for_hooks(),
            provider: &resolved.provider_for_hooks(true),
            message: &message.info,
        };
        let Some(mut draft) = self.beside_draft(input, &agent, &resolved, true).await else {
            return Ok(None);
        };
        draft.opening = opening(&message.parts);
        let about = before_request::Input::Beside(input);
        let mut request = draft.into_request();
        if let Err(error) = self
            .run_before_request_hooks(&about, &mut request, session_id, None, None)
            .await
        {
            tracing::warn!("[title] refused: {}", error.message());
            return Ok(None);
        }
        request_options::put_back(&mut request.params, &agent, &resolved, session_id, true);
        let mut stream = resolved.stream(&request, &self.stream_options(session_id));
        let mut text = String::new();
        while let Some(item) = stream.next().await {
            if let StreamItem::Event(StreamEvent::TextDelta { text: piece, .. }) = item? {
                text.push_str(&piece);
            }
        }
        Ok(tidy(&text))
    }

    /// A request beside the turn as hooks leave it; `small`: for a small model. None where a hook that is critical for security could
    /// not look at it: it is not sent (C5), and the session keeps the title that it has.
    pub(crate) async fn beside_draft(
        &self,
        input: RequestInput<'_>,
        agent: &AgentInfo,
        resolved: &Resolved,
        small: bool,
    ) -> Option<Draft> {
        let session_id = input.session_id;
        let prompt = agent.prompt.as_deref().unwrap_or_default();
        let system = before_system::Input {
            session_id,
            model: input.model,
        };
        let parameters = request_options::shown(agent, resolved, session_id, small);
        let mut draft = Draft::default();
        for (point, payload) in [
            system.call(&before_system::Output { system: [prompt] }),
            before_params::Input(input).call(&parameters),
            before_headers::Input(input).call(&before_headers::Output::default()),
        ] {
            let result = self
                .run_hooks(point, vec![payload], Some(session_id), None, None)
                .await;
            if let Some(block) = result.block {
                tracing::warn!("[{}] refused at {point}: {}", input.agent, block.message);
                return None;
            }
            if let Some(output) = result.outputs.into_iter().next() {
                draft.take(point, output, None);
            }
        }
        Some(draft)
    }
}

/// What the model reads: that a title is wanted, and what the user said.
fn opening(parts: &[Part]) -> Vec<ChatMessage> {
    let said = parts.iter().filter_map(|part| match &part.kind {
        PartKind::Text(text) if text.synthetic != Some(true) && text.ignored != Some(true) => {
            Some(text.text.clone())
        }
        PartKind::Subtask(task) => {
            let prompt = task.get("prompt").and_then(Value::as_str)?;
            Some(prompt.to_owned())
        }
        _ => None,
    });
    let wanted = "Generate a title for this conversation:\n".to_owned();
    std::iter::once(wanted)
        .chain(said)
        .map(|text| ChatMessage::User {
            content: vec![Content::Text { text }],
        })
        .collect()
}

impl AgentState {
    /// The configured small model, else what a plugin says, else a known small one of the same provider.
    async fn small_model(&self, session_id: &SessionId, model: &ModelRef) -> ModelRef {
        if let Some(configured) = self.models.configured_small_model() {
            return configured;
        }
        let provider = self.models.provider_for_hooks(&model.provider_id, true);
        let input = route_small_model::Input {
            provider: provider.as_deref(),
        };
        let (point, payload) = input.call(&Empty {});
        let result = self
            .run_hooks(point, vec![payload], Some(session_id), None, None)
            .await;
        let chosen = result.outputs.first().and_then(route_small_model::read);
        let chosen = chosen.filter(|model| self.models.resolve(model).is_ok());
        chosen.unwrap_or_else(|| self.models.small_model(model))
    }
}

/// One line without quotation marks, of bounded length; models also think aloud.
fn tidy(text: &str) -> Option<String> {
    let text = match text.split_once("</think>") {
        Some((_, after)) => after,
        None => text,
    };
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let line = line.trim_matches(['"', '\'', '`', '*', '#', ' ']);
    if line.is_empty() {
        return None;
    }
    Some(if line.chars().count() > LONGEST {
        line.chars()
            .take(LONGEST - 3)
            .chain("...".chars())
            .collect()
    } else {
        line.to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_tidied() {
        for (text, want) in [
            ("A title", Some("A title".to_owned())),
            (
                "<think>hm</think>\n\n\"Fix the bug\"\n",
                Some("Fix the bug".to_owned()),
            ),
            ("  \n ", None),
            ("\"\"", None),
        ] {
            assert_eq!(tidy(text), want);
        }
        assert_eq!(tidy(&"x".repeat(200)).unwrap().chars().count(), LONGEST);
    }
}

//! Answers an MCP server with the session's model. The user has approved it before.

use futures_util::StreamExt as _;
use outrigger_kernel::hooks::points::llm::{RequestInput, before_request};
use outrigger_models::StreamItem;
use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::ModelRef;
use outrigger_protocol::model::{ChatMessage, StreamEvent};
use outrigger_tools::{SampleAnswer, SampleRequest};

use crate::state::AgentState;
use crate::turn::request_options;

/// Agent name of such a request, for hooks.
const AGENT: &str = "mcp_sampling";

impl AgentState {
    /// Sends the request. It runs the same hooks as the request for a title.
    pub(crate) async fn sample(
        &self,
        session_id: &SessionId,
        message_id: &MessageId,
        model: &ModelRef,
        request: SampleRequest,
    ) -> Result<SampleAnswer, String> {
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let budget = self.within_budget(session_id);
        budget.map_err(|error| error.message().to_owned())?;
        let resolved = self.models.resolve(model).map_err(|error| said(&error))?;
        let message = self.store.message(session_id, message_id);
        let message = message.map_err(|error| said(&error))?;
        let message = message.ok_or("the call is not in the session any more")?;
        let input = RequestInput {
            session_id,
            agent: AGENT,
            model: &resolved.model_for_hooks(),
            provider: &resolved.provider_for_hooks(true),
            message: &message.info,
        };
        let agent = Default::default();
        let draft = self.beside_draft(input, &agent, &resolved, false).await;
        let mut draft = draft.ok_or("a plugin refused it")?;
        let system = request
            .system
            .map(|content| ChatMessage::System { content });
        draft.opening = system.into_iter().chain(request.messages).collect();
        let mut sent = draft.into_request();
        let about = before_request::Input::Beside(input);
        self.run_before_request_hooks(&about, &mut sent, session_id, None, None)
            .await
            .map_err(|error| error.message().to_owned())?;
        let most = request.max_tokens.filter(|most| *most > 0);
        sent.params.max_output_tokens = match (sent.params.max_output_tokens, most) {
            (Some(limit), Some(most)) => Some(limit.min(most)),
            (limit, most) => limit.or(most),
        };
        if request.temperature.is_some() {
            sent.params.temperature = request.temperature;
        }
        request_options::put_back(&mut sent.params, &agent, &resolved, session_id, false);
        let options = self.stream_options(session_id);
        let mut stream = resolved.stream(&sent, &options);
        let mut text = String::new();
        while let Some(item) = stream.next().await {
            let item = item.map_err(|error| said(&error))?;
            if let StreamItem::Event(StreamEvent::TextDelta { text: piece, .. }) = item {
                text.push_str(&piece);
            }
        }
        Ok(SampleAnswer {
            model: resolved.model.id.to_string(),
            text,
        })
    }
}

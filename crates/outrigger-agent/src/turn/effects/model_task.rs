//! A model request in progress: converts its stream to signals for the kernel.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt as _;
use outrigger_kernel::hooks::points::llm::before_request::{self, Step};
use outrigger_kernel::hooks::points::llm::on_error;
use outrigger_kernel::hooks::{Context, HookInput, HookPoint};
use outrigger_models::{Resolved, StreamItem};
use outrigger_protocol::id::{SessionId, TurnId};
use outrigger_protocol::message::{ModelRef, NamedError};
use outrigger_protocol::model::{ModelRequest, StreamEvent};
use outrigger_protocol::session::SessionStatus;
use outrigger_protocol::turn::{EffectId, Input, ModelSignal};
use outrigger_tools::{CancelFlag, with_context};
use serde_json::Value;

use crate::state::AgentState;
use crate::turn::request_options;
use outrigger_session_state::notifications::About;
use outrigger_session_state::turn_channel::{Msg, Outbox};
use outrigger_stdx::clock::now_ms;

/// Incomplete blocks: whether each is reasoning, and its text so far.
type Texts = BTreeMap<u32, (bool, String)>;

/// A model request in progress.
pub(crate) struct ModelTask {
    pub(crate) state: Arc<AgentState>,
    pub(crate) sender: Outbox,
    pub(crate) effect: EffectId,
    pub(crate) session_id: SessionId,
    pub(crate) turn: TurnId,
    /// Step as shown to hooks.
    pub(crate) step: Step,
    pub(crate) cancel: CancelFlag,
}

impl ModelTask {
    fn signal(&self, signal: ModelSignal) {
        let _ = self.sender.send(Msg::Input(Input::Model {
            effect: self.effect,
            signal,
        }));
    }

    /// Runs to the end and returns the last signal. Text streamed by then is kept as it is: clients saw it.
    pub(crate) async fn run(self, model: ModelRef, request: ModelRequest) -> ModelSignal {
        let mut texts = Texts::new();
        let last = match self.stream(model, request, &mut texts).await {
            Ok(finished) => finished,
            Err(error) => ModelSignal::Failed {
                error: Box::pin(self.explained(error)).await,
            },
        };
        for (index, (reasoning, text)) in texts {
            self.signal(if reasoning {
                ModelSignal::ReasoningEnd {
                    index,
                    text,
                    metadata: None,
                }
            } else {
                ModelSignal::TextEnd { index, text }
            });
        }
        last
    }

    /// Restores the options that were hidden from hooks.
    fn put_back(&self, resolved: &Resolved, request: &mut ModelRequest) {
        let agent = self.state.catalog.agents.get(&self.step.agent).cloned();
        let (agent, left) = (agent.unwrap_or_default(), &mut request.params);
        request_options::put_back(left, &agent, resolved, &self.session_id, false);
    }

    async fn stream(
        &self,
        model: ModelRef,
        mut request: ModelRequest,
        texts: &mut Texts,
    ) -> Result<ModelSignal, NamedError> {
        let input = before_request::Input::Step(&self.step);
        let hooks = self.state.run_before_request_hooks(
            &input,
            &mut request,
            &self.session_id,
            Some(&self.turn),
            Some(self.cancel.clone()),
        );
        Box::pin(hooks).await?;
        let mut stream = {
            let resolved = self.state.models.resolve(&model);
            let resolved = resolved.map_err(|error| error.to_named())?;
            self.put_back(&resolved, &mut request);
            resolved.stream(&request, &self.state.stream_options(&self.session_id))
        };
        // The serialised form replaces it; the request with all tool schemas is several times larger.
        drop(request);
        loop {
            let item = tokio::select! {
                biased;
                () = self.cancel.cancelled() => {
                    return Err(NamedError::new("MessageAbortedError", "The turn was cancelled."));
                }
                item = stream.next() => item,
            };
            match item {
                None => {
                    return Err(NamedError::new(
                        "UnknownError",
                        "the model's stream ended early",
                    ));
                }
                Some(Err(error)) => return Err(error.to_named()),
                Some(Ok(StreamItem::Retry(notice))) => {
                    let _ = self.sender.send(Msg::Retry(SessionStatus::Retry {
                        attempt: notice.attempt,
                        message: notice.message,
                        next: now_ms() + u64::try_from(notice.delay.as_millis()).unwrap_or(0),
                    }));
                }
                Some(Ok(StreamItem::Event(StreamEvent::Finished { reason, usage }))) => {
                    return Ok(ModelSignal::Finished { reason, usage });
                }
                Some(Ok(StreamItem::Event(event))) => self.on_event(event, texts),
            }
        }
    }

    /// Returns the error of a request that failed for good, with the additions of `llm.on_error` hooks appended to its
    /// message (C4), so that everyone who reads the error sees them. A stopped turn does not wait for plugins.
    async fn explained(&self, mut error: NamedError) -> NamedError {
        if !self
            .state
            .plugins
            .host
            .pipeline()
            .has(HookPoint::LlmOnError)
        {
            return error;
        }
        let input = on_error::Input {
            step: &self.step,
            error: &error,
        };
        let (point, payload) = input.call(&Context::default());
        let (session, turn) = (Some(&self.session_id), Some(&self.turn));
        if self.cancel.is_cancelled() {
            let about = About::of(session, turn);
            self.state.notify_payload(point, payload, about);
            return error;
        }
        let cancel = Some(self.cancel.clone());
        let result = self
            .state
            .run_hooks(point, vec![payload], session, turn, cancel);
        if let (Some(output), Some(message)) = (
            result.await.outputs.first(),
            error.data.get("message").and_then(Value::as_str),
        ) {
            error.data["message"] = with_context(message.to_owned(), output).into();
        }
        error
    }

    fn on_event(&self, event: StreamEvent, texts: &mut Texts) {
        match event {
            StreamEvent::Started => self.signal(ModelSignal::Started),
            StreamEvent::TextStart { index } => {
                texts.insert(index, (false, String::new()));
                self.signal(ModelSignal::TextStart { index });
            }
            StreamEvent::ReasoningStart { index } => {
                texts.insert(index, (true, String::new()));
                self.signal(ModelSignal::ReasoningStart { index });
            }
            StreamEvent::TextDelta { index, text }
            | StreamEvent::ReasoningDelta { index, text } => {
                if let Some((_, whole)) = texts.get_mut(&index) {
                    whole.push_str(&text);
                }
                let _ = self.sender.send(Msg::Delta { index, text });
            }
            StreamEvent::TextEnd { index } => {
                let text = texts.remove(&index).unwrap_or_default().1;
                self.signal(ModelSignal::TextEnd { index, text });
            }
            StreamEvent::ReasoningEnd { index, metadata } => {
                let text = texts.remove(&index).unwrap_or_default().1;
                self.signal(ModelSignal::ReasoningEnd {
                    index,
                    text,
                    metadata,
                });
            }
            StreamEvent::ToolStart { call_id, tool } => {
                self.signal(ModelSignal::ToolStart { call_id, tool })
            }
            StreamEvent::ToolEnd {
                call_id,
                tool,
                raw,
                metadata,
            } => self.signal(ModelSignal::ToolEnd {
                call_id,
                tool,
                raw,
                metadata,
            }),
            StreamEvent::Finished { .. } => {}
        }
    }
}

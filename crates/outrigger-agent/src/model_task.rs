//! One model request under way: from the stream to the kernel's signals.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt as _;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::{ModelRef, NamedError};
use outrigger_protocol::model::{ModelRequest, StreamEvent};
use outrigger_protocol::turn::{EffectId, Input, ModelSignal};
use outrigger_tools::CancelFlag;
use tokio::sync::mpsc;

use crate::drive::Msg;
use crate::ids::now;
use crate::inner::Inner;

/// One model request under way.
pub(crate) struct ModelTask {
    pub(crate) inner: Arc<Inner>,
    pub(crate) sender: mpsc::UnboundedSender<Msg>,
    pub(crate) effect: EffectId,
    pub(crate) session_id: SessionId,
    pub(crate) cancel: CancelFlag,
}

impl ModelTask {
    fn signal(&self, signal: ModelSignal) {
        let _ = self.sender.send(Msg::Input(Input::Model { effect: self.effect, signal }));
    }

    fn failed(&self, error: NamedError) {
        self.signal(ModelSignal::Failed { error });
    }

    pub(crate) async fn run(self, model: ModelRef, request: ModelRequest) {
        let resolved = match self.inner.models.resolve(&model) {
            Ok(resolved) => resolved,
            Err(error) => return self.failed(error.to_named()),
        };
        let mut stream = resolved.stream(&request, &self.inner.stream_options(&self.session_id));
        let mut texts: BTreeMap<u32, String> = BTreeMap::new();
        let mut finished = false;
        loop {
            let item = tokio::select! {
                biased;
                () = self.cancel.cancelled() => {
                    return self.failed(NamedError::new("MessageAbortedError", "The turn was cancelled."));
                }
                item = stream.next() => item,
            };
            match item {
                None if finished => return,
                None => return self.failed(NamedError::new("UnknownError", "the model's stream ended without an end")),
                Some(Err(error)) => return self.failed(error.to_named()),
                Some(Ok(outrigger_models::StreamItem::Retry(notice))) => {
                    let _ = self.sender.send(Msg::Retry {
                        attempt: notice.attempt,
                        message: notice.message,
                        next: now() + u64::try_from(notice.delay.as_millis()).unwrap_or(0),
                    });
                }
                Some(Ok(outrigger_models::StreamItem::Event(event))) => {
                    finished |= matches!(event, StreamEvent::Finished { .. });
                    self.on_event(event, &mut texts);
                }
            }
        }
    }

    fn on_event(&self, event: StreamEvent, texts: &mut BTreeMap<u32, String>) {
        match event {
            StreamEvent::Started => self.signal(ModelSignal::Started),
            StreamEvent::TextStart { index } => self.signal(ModelSignal::TextStart { index }),
            StreamEvent::ReasoningStart { index } => self.signal(ModelSignal::ReasoningStart { index }),
            StreamEvent::TextDelta { index, text } => self.delta(index, text, texts),
            StreamEvent::ReasoningDelta { index, text } => self.delta(index, text, texts),
            StreamEvent::TextEnd { index } => {
                let text = texts.remove(&index).unwrap_or_default();
                self.signal(ModelSignal::TextEnd { index, text });
            }
            StreamEvent::ReasoningEnd { index, metadata } => {
                let text = texts.remove(&index).unwrap_or_default();
                self.signal(ModelSignal::ReasoningEnd { index, text, metadata });
            }
            StreamEvent::ToolStart { call_id, tool } => self.signal(ModelSignal::ToolStart { call_id, tool }),
            StreamEvent::ToolEnd { call_id, tool, raw } => self.signal(ModelSignal::ToolEnd { call_id, tool, raw }),
            StreamEvent::Finished { reason, usage } => self.signal(ModelSignal::Finished { reason, usage }),
        }
    }

    fn delta(&self, index: u32, text: String, texts: &mut BTreeMap<u32, String>) {
        texts.entry(index).or_default().push_str(&text);
        let _ = self.sender.send(Msg::Delta { index, text });
    }
}

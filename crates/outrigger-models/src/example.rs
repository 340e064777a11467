//! One request of its own, to see whether a model answers.

use futures_util::StreamExt as _;
use outrigger_protocol::model::{ChatMessage, Content, ModelParams, ModelRequest, ToolChoice};

use crate::error::ModelError;
use crate::models::max_output_tokens;
use crate::resolved::{Resolved, StreamOptions};

impl Resolved {
    /// Sends a prompt alone, without tools and a system prompt, and waits for the end of the answer.
    ///
    /// # Errors
    /// Whatever keeps the model from answering, or ends its answer before it is complete.
    pub async fn answers(&self, prompt: &str, options: &StreamOptions) -> Result<(), ModelError> {
        let request = ModelRequest {
            messages: [ChatMessage::User {
                content: vec![Content::Text {
                    text: prompt.to_owned(),
                }],
            }]
            .into(),
            tools: Vec::new(),
            tool_choice: ToolChoice::Auto,
            params: ModelParams {
                max_output_tokens: Some(max_output_tokens(&self.model)),
                options: self.default_options(&options.session_id, false),
                ..ModelParams::default()
            },
            headers: Vec::new(),
        };
        let mut stream = self.stream(&request, options);
        while let Some(item) = stream.next().await {
            item?;
        }
        Ok(())
    }
}

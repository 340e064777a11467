//! A separate request to check whether a model answers.

use futures_util::StreamExt as _;
use outrigger_protocol::model::{ChatMessage, Content, ModelParams, ModelRequest, ToolChoice};

use crate::error::ModelError;
use crate::models::max_output_tokens;
use crate::resolved::{Resolved, StreamOptions};

impl Resolved {
    /// Sends a prompt without tools and system prompt, and waits for the end of the answer.
    ///
    /// # Errors
    /// Anything that prevents an answer, or ends it early.
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

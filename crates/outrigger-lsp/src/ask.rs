//! Requests about a file, such as where something is defined or used. The caller knows LSP's methods; this module decides
//! which servers are asked, and for how long.

use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::client::Client;
use crate::lsp::Lsp;
use crate::uri;

/// Timeout of a request (OpenCode waits forever).
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

impl Lsp {
    /// Sends a request about a file to its servers, starting them if necessary; `None` if there are none. Returns each valid
    /// answer, in the order of the servers. Methods of `textDocument/` get the file's URI; an empty method sends nothing.
    pub async fn ask(&self, file: &Path, method: &str, params: &Value) -> Option<Vec<Value>> {
        let slots = self.slots_for(file);
        if slots.is_empty() {
            return None;
        }
        if method.is_empty() {
            return Some(Vec::new());
        }
        let mut params = params.clone();
        if method.starts_with("textDocument/")
            && let Some(fields) = params.as_object_mut()
        {
            let document = json!({"uri": uri::of_path(file)});
            fields.insert("textDocument".to_owned(), document);
        }
        let asked = slots.into_iter().map(|slot| {
            let params = &params;
            async move {
                let client = self.ready(&slot, self.limits().ready).await?;
                client.answer(method, params).await
            }
        });
        Some(join_all(asked).await.into_iter().flatten().collect())
    }
}

impl Client {
    /// Returns the answer to a request, unless it is an error or `null`.
    async fn answer(&self, method: &str, params: &Value) -> Option<Value> {
        match self.request(method, params, REQUEST_TIMEOUT).await {
            Ok(answer) => Some(answer).filter(|answer| !answer.is_null()),
            Err(error) => {
                tracing::debug!("[lsp] {method}: {error}");
                None
            }
        }
    }
}

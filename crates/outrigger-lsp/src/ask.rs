//! Questions about a file, such as where something is defined or used. The caller knows LSP's methods; this module
//! decides which servers are asked, and for how long.

use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::client::Client;
use crate::lsp::Lsp;
use crate::uri;

/// How long a server may think about one (OpenCode waits for ever).
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

impl Lsp {
    /// Puts a request about a file to the servers that are for it, starting them if need be; `None` where there is none.
    /// Each answer that is one, in the order of the servers. Methods of `textDocument/` get the file's address; with an empty
    /// method nothing is asked.
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
    /// The answer to a request, if it is one: not an error, and not `null`.
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

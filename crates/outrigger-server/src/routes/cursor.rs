//! Cursors of pages: the start of the next page, as base64url of JSON. Clients pass them on without reading
//! them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::ApiError;

pub(crate) fn encode(cursor: &impl Serialize) -> Result<String, ApiError> {
    let text = serde_json::to_vec(cursor)
        .map_err(|e| ApiError::internal(format!("the cursor of a page: {e}")))?;
    Ok(URL_SAFE_NO_PAD.encode(text))
}

/// Returns `None` if the text is not such a cursor.
pub(crate) fn decode<T: DeserializeOwned>(text: &str) -> Option<T> {
    let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?;
    serde_json::from_slice(&bytes).ok()
}

//! The connection to an agent: in this process or at a server, with the same routes.

use http::Method;
use outrigger_server::{LocalClient, RequestError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::ClientError;
use crate::events::{self, Events};
use crate::remote::Remote;

/// An agent's routes. Cheap to clone.
#[derive(Clone)]
pub enum Connection {
    /// The agent is in this process.
    Local(LocalClient),
    /// The agent is on a server.
    Remote(Remote),
}

impl Connection {
    /// Returns whether the agent is in this process, and so ends with it.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Local(_))
    }

    /// Sends a GET.
    ///
    /// # Errors
    /// The error of the route, or the server cannot be reached.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.call(Method::GET, path, None).await
    }

    /// Sends a POST.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        with: &impl Serialize,
    ) -> Result<T, ClientError> {
        let with = serde_json::to_vec(with).map_err(|error| unreadable(&error))?;
        self.call(Method::POST, path, Some(with)).await
    }

    /// Sends a DELETE.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn delete(&self, path: &str) -> Result<(), ClientError> {
        let deleted: Result<bool, ClientError> = self.call(Method::DELETE, path, None).await;
        deleted.map(drop)
    }

    /// Sends any request; returns `null` for an empty response.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn request(
        &self,
        method: Method,
        path: &str,
        with: Option<&serde_json::Value>,
    ) -> Result<serde_json::Value, ClientError> {
        self.call(method, path, with.map(|it| it.to_string().into_bytes()))
            .await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        with: Option<Vec<u8>>,
    ) -> Result<T, ClientError> {
        match self {
            Self::Local(client) => {
                let body = client.call(method, path, with).await.map_err(refused)?;
                let body: &[u8] = if body.is_empty() { b"null" } else { &body };
                serde_json::from_slice(body).map_err(|error| unreadable(&error))
            }
            Self::Remote(remote) => remote.read(&remote.call(method, path, with).await?),
        }
    }

    /// Subscribes to events: none is missed after this returns.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub async fn listen(&self) -> Result<Events, ClientError> {
        match self {
            Self::Local(client) => Ok(Events::Local(client.listen())),
            Self::Remote(remote) => Ok(Events::Remote(events::listen(remote).await?)),
        }
    }
}

fn refused(refusal: RequestError) -> ClientError {
    let code = refusal.code.unwrap_or("agent.refused");
    ClientError::new(code, refusal.message, refusal.hint)
}

fn unreadable(error: &serde_json::Error) -> ClientError {
    ClientError::new(
        "agent.answer",
        format!("unexpected request or response format: {error}"),
        None,
    )
}

/// Percent-encodes everything but letters, digits and characters that are unchanged in a path.
pub fn encoded(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_segment() {
        assert_eq!(encoded("/a b/ü"), "%2Fa%20b%2F%C3%BC");
    }
}

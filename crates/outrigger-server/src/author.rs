//! Who sends a request, as the one that answers it knows: nothing of the request says so.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::request::Parts;
use outrigger_protocol::id::PluginId;
use outrigger_protocol::provenance::{Actor, Provenance, UNKNOWN_PLUGIN};

use crate::dispatch::{FromPlugin, Sender};

/// Who prompts with a request: a client, or the plugin whose request it is.
pub(crate) struct Author(pub(crate) Provenance);

/// Who sends a request.
pub(crate) struct By(pub(crate) Actor);

impl By {
    fn of(parts: &Parts) -> Self {
        let sender = parts.extensions.get::<Sender>();
        let known = sender.and_then(|sender| sender.0.clone());
        Self(match (known, parts.extensions.get::<FromPlugin>()) {
            (Some(plugin), _) => Actor::plugin(&PluginId(plugin)),
            (None, Some(FromPlugin)) => Actor::plugin(&UNKNOWN_PLUGIN.into()),
            (None, None) => Actor::Client,
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for By {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(parts))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Author {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(Provenance::prompted(By::of(parts).0)))
    }
}

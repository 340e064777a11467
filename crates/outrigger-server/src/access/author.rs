//! The sender of a request as known to the receiving process; nothing in the request itself
//! determines it.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::request::Parts;
use outrigger_protocol::id::PluginId;
use outrigger_protocol::provenance::{Actor, Provenance, UNKNOWN_PLUGIN};

use crate::access::marks::{FromPlugin, LocalUser, Sender};

/// Who prompts with a request: the user of this program, a client, or the plugin that sent the
/// request.
pub(crate) struct Author(pub(crate) Provenance);

/// The sender of a request.
pub(crate) struct By(pub(crate) Actor);

impl By {
    fn of(parts: &Parts) -> Self {
        let sender = parts.extensions.get::<Sender>();
        let known = sender.and_then(|sender| sender.0.clone());
        Self(match (known, parts.extensions.get::<FromPlugin>()) {
            (Some(plugin), _) => Actor::plugin(&PluginId(plugin)),
            (None, Some(FromPlugin)) => Actor::plugin(&UNKNOWN_PLUGIN.into()),
            (None, None) if parts.extensions.get::<LocalUser>().is_some() => Actor::User,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_program_speaks_as_its_user() {
        let by = |mark: &dyn Fn(&mut http::Extensions)| {
            let mut parts = http::Request::new(()).into_parts().0;
            mark(&mut parts.extensions);
            By::of(&parts).0
        };
        assert_eq!(by(&|_| {}), Actor::Client);
        let user = by(&|marks| {
            marks.insert(LocalUser);
        });
        assert_eq!(user, Actor::User);
        let plugin = by(&|marks| {
            marks.insert(LocalUser);
            marks.insert(FromPlugin);
            marks.insert(Sender(Some("p".to_owned())));
        });
        assert_eq!(plugin, Actor::plugin(&"p".into()));
    }
}

//! Providers that a plugin speaks for with a protocol of its own (B8): requests go to it in our own form, and the pieces
//! come back in one, as server-sent events.

mod decode;

use outrigger_protocol::Object;
use outrigger_protocol::custom_points::ProviderAsked;
use outrigger_protocol::model::{ModelInfo, ModelRequest};

pub(crate) use decode::Decoder;

/// `npm` of such a provider's models. In the configuration it says that a plugin may speak for that provider.
pub(crate) const NPM: &str = "plugin";

/// The request, with the options of the provider and without its keys.
pub(crate) fn body(model: &ModelInfo, options: Object, request: &ModelRequest) -> Object {
    let asked = ProviderAsked {
        model: model.clone(),
        options,
        request: request.clone(),
    };
    match serde_json::to_value(asked) {
        Ok(serde_json::Value::Object(body)) => body,
        _ => Object::new(),
    }
}

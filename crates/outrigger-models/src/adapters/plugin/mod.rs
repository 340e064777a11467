//! Providers that a plugin implements with its own protocol (B8): requests and responses are in our own form, as
//! server-sent events.

mod decode;

use outrigger_protocol::Object;
use outrigger_protocol::custom_points::ProviderAsked;
use outrigger_protocol::model::{ModelInfo, ModelRequest};

pub(crate) use decode::Decoder;

/// `npm` of such a provider's models. In the configuration it allows a plugin to implement that provider.
pub(crate) const NPM: &str = "plugin";

/// Builds the request, with the provider's options but without its keys.
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

//! What the options that several commands have must be, beyond what clap checks.

use outrigger_protocol::message::ModelRef;

use crate::failure::Failure;

/// The model of `--model`.
///
/// # Errors
/// A text that is not `provider/model`.
pub(crate) fn named_model(text: Option<&str>) -> Result<Option<ModelRef>, Failure> {
    let parsed = |text: &str| {
        ModelRef::parse(text).ok_or_else(|| {
            Failure::usage(
                format!("`{text}` does not name a model"),
                Some("write it as provider/model".into()),
            )
        })
    };
    text.map(parsed).transpose()
}

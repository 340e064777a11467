//! Validation of options shared by several commands, beyond clap's.

use outrigger_protocol::message::ModelRef;

use crate::failure::Failure;

/// Parses the model of `--model`.
///
/// # Errors
/// The text is not `provider/model`.
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

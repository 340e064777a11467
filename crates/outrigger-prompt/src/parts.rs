//! Parts of a prompt.

use outrigger_protocol::message::{PartKind, TextPart};
use outrigger_protocol::session::PartInput;

/// A text of a prompt; a synthetic one was not written by the user.
#[must_use]
pub fn text_part(text: String, synthetic: bool) -> PartInput {
    PartInput {
        id: None,
        kind: PartKind::Text(TextPart {
            text,
            synthetic: synthetic.then_some(true),
            ..TextPart::default()
        }),
    }
}

/// Text of a prompt as parts.
#[must_use]
pub fn text(text: &str) -> PartInput {
    text_part(text.to_owned(), false)
}

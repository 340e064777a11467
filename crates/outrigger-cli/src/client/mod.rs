//! Turns as a person follows them: what they do is shown, their questions are put, and signals reach them.

pub(crate) mod follow;
mod model_question;
pub(crate) mod permission_question;
pub(crate) mod remote;
pub(crate) mod view;

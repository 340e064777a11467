//! The client of an agent, in this process or at a server: shows its turns, asks their questions, and forwards signals.

pub(crate) mod follow;
mod live_output;
mod permission_question;
pub(crate) mod result;
pub(crate) mod view;

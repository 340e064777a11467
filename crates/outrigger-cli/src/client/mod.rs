//! The client of an agent, in this process or at a server: its turns are shown, their questions are put, and signals reach them.

pub(crate) mod follow;
mod live_output;
mod permission_question;
pub(crate) mod result;
pub(crate) mod view;

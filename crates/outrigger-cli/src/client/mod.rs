//! The client of an agent, in this process or at a server: its turns are shown, their questions are put, and signals reach them.

pub(crate) mod connection;
pub(crate) mod events;
pub(crate) mod follow;
mod live_output;
mod model_question;
mod permission_display;
mod permission_question;
pub(crate) mod remote;
pub(crate) mod result;
pub(crate) mod session;
pub(crate) mod view;

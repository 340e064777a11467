//! What an agent holds of its sessions in memory, beside what is in the store: the event bus and the order in which events are
//! published ([`bus`], [`deferred_events`]), turns under way and the way to each ([`turns`], [`turn_channel`]), what waits for its
//! turn ([`prompt_queue`], [`session_locks`], [`notifications`], [`logins`]), tasks beside the turns ([`background`]), calls of
//! plugins ([`plugin_calls`]), what is known of a history ([`facts`]), and new identifiers ([`ids`]).
//!
//! Each part is alone: none decides what a session does, and none reaches the store.

pub mod background;
pub mod bus;
pub mod deferred_events;
pub mod facts;
pub mod ids;
pub mod logins;
pub mod notifications;
pub mod plugin_calls;
pub mod prompt_queue;
pub mod session_locks;
pub mod turn_channel;
pub mod turns;

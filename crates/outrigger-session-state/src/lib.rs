//! An agent's in-memory state of its sessions, besides what is in the store: the event bus and the order in which events are
//! published ([`bus`], [`deferred_events`]), running turns and how to reach each ([`turns`], [`turn_channel`]), queues
//! ([`prompt_queue`], [`session_locks`], [`notifications`], [`logins`]), background tasks ([`background`]), calls of plugins
//! ([`plugin_calls`]), changes of calls and conversations ([`revisions`]), facts about a history ([`facts`]), histories in use ([`histories`]), the hooks that a turn called ([`hook_sequence`]), and new ids ([`ids`]).
//!
//! The parts are independent: none decides what a session does, and only [`histories`] and [`hook_sequence`] read the store.

pub mod background;
pub mod bus;
pub mod deferred_events;
pub mod facts;
pub mod histories;
pub mod hook_sequence;
pub mod ids;
pub mod logins;
pub mod notifications;
pub mod plugin_calls;
pub mod prompt_queue;
pub mod revisions;
pub mod session_locks;
pub mod turn_channel;
pub mod turns;

//! Points of `agent_end`.

pub mod before_stop;

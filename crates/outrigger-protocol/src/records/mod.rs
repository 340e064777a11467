//! What is stored: the log, the audit, steps of a turn, who caused it.

pub mod audit;
pub mod log;
pub mod provenance;
pub mod turn;

//! Stored records: the log, the audit, steps of a turn, provenance.

pub mod audit;
pub mod log;
pub mod provenance;
pub mod turn;

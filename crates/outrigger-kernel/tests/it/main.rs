//! The kernel's laws, from outside: what a chain, a turn and a merger promise whatever comes in.

mod chain;
mod drive;
// mod gold;
mod guard;
mod invariant;
// mod laws;
// mod merge;
// mod merge_laws;
// mod resume;
mod turn;
mod turn_ends;
// mod world;

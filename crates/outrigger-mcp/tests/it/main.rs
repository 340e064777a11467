//! Servers of every kind of behaviour, as real processes.

mod calls;
mod ends;
mod remote;
mod starts;
mod support;

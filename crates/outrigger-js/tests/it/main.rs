//! Real plugin processes: Node always, Bun when it is there (see `support::bun`).

mod doc;
mod faults;
mod hooks;
mod load;
mod modules;
mod support;
mod tools;

//! What the tests stand on.

mod mock;
mod server;
#[path = "../../../../../tests/skip/mod.rs"]
mod skip;
mod world;

pub(crate) use mock::{Mock, Request, call, done, text, turn};
pub(crate) use server::{Answer, Server, basic, free_port};
pub(crate) use skip::{skip, skip_npm};
pub(crate) use world::{
    Done, Running, World, alive, bun, bun_or_skip, members, wait_until, without_session,
};

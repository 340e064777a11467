//! What the tests stand on.

mod mock;
mod server;
mod world;

pub(crate) use mock::{Mock, call, done, text, turn};
pub(crate) use server::{Answer, Server, basic, free_port};
pub(crate) use world::{Done, Running, World, alive, bun, wait_until};

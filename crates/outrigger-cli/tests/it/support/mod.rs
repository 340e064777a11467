//! Helpers for the command's tests beyond `outrigger-test-support`: the binary, and a server started from it.

mod program;
mod server;

pub(crate) use outrigger_test_support::model::{Mock, Request, call, done, text, turn};
pub(crate) use outrigger_test_support::process::{WAIT_TIMEOUT, alive, gone, members, wait_until};
pub(crate) use outrigger_test_support::skip::{skip, skip_npm};
pub(crate) use outrigger_test_support::{Done, Running, World, bun, bun_or_skip};
pub(crate) use program::{Program, outrigger, without_session};
pub(crate) use server::{Answer, Events, Serve, Server, basic, free_port, kind};

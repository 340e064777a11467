//! What the state wants done.

use std::io;

use http::Method;

use super::Interface;
use super::screen::Screen;
use crate::state::effect::{Effect, Input, Then};

impl Interface {
    pub(super) fn perform(&mut self, effect: Effect) -> io::Result<()> {
        match effect {
            Effect::Call {
                method,
                path,
                body,
                then,
            } => self.call(method, path, body, then),
            Effect::Answer(id, yes) => self.host.answer(id, yes),
            Effect::Copy(text) => Screen::copy(&text)?,
            Effect::Remember(text) => (self.remember)(&text),
            Effect::Suspend | Effect::Quit => {}
        }
        Ok(())
    }

    /// Asks the agent, without waiting for the answer.
    fn call(
        &self,
        method: &'static str,
        path: String,
        body: Option<serde_json::Value>,
        then: Then,
    ) {
        let Some(connection) = self.connection.clone() else {
            return;
        };
        let sender = self.sender.clone();
        tokio::spawn(async move {
            let method = Method::from_bytes(method.as_bytes()).unwrap_or(Method::GET);
            let reply = connection.request(method, &path, body.as_ref()).await;
            let _ = sender.send(Input::Reply(then, reply));
        });
    }

    /// Stops until the shell says to go on.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        self.screen.lend();
        let this = rustix::process::getpid();
        let _ = rustix::process::kill_process(this, rustix::process::Signal::TSTP);
        self.again()
    }

    /// Takes the terminal back, which may have another size.
    fn again(&mut self) -> io::Result<()> {
        self.screen.take()?;
        let (columns, rows) = Screen::size();
        let _ = self.sender.send(Input::Resize(columns, rows));
        Ok(())
    }
}

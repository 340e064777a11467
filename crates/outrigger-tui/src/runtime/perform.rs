//! Performs the effects of the state.

use std::io;

use http::Method;

use super::Interface;
use super::screen::Screen;
use crate::state::attachments::Image;
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
            Effect::Remember(text) => (self.services.remember)(&text),
            Effect::Export { session, file } => self.export(session, file),
            Effect::KeepTheme(name) => (self.services.keep_theme)(name),
            Effect::Image(path, pasted) => self.image(path, pasted),
            Effect::Edit(_) | Effect::Suspend | Effect::Quit => {}
        }
        Ok(())
    }

    /// Sends a request to the agent without waiting for the response.
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

    /// Writes a conversation to a file, outside the loop: it may be long.
    fn export(&self, session: String, file: String) {
        let (services, sender) = (self.services.clone(), self.sender.clone());
        tokio::task::spawn_blocking(move || {
            let written = (services.export)(&session, &file);
            let _ = sender.send(Input::Exported(written));
        });
    }

    /// Reads a file that may be an image, outside the loop: it may be on a slow disk.
    fn image(&self, path: String, pasted: String) {
        let (services, sender) = (self.services.clone(), self.sender.clone());
        tokio::task::spawn_blocking(move || {
            let bytes = (services.read)(&path);
            let image = bytes.and_then(|bytes| Image::of(&path, bytes));
            let _ = sender.send(Input::Image(pasted, image));
        });
    }

    /// Gives the terminal to the user's editor until the editor has ended.
    pub(super) fn edit(&mut self, text: &str) -> io::Result<()> {
        self.screen.lend();
        let edited = (self.services.edit)(text);
        let _ = self.sender.send(Input::Edited(edited));
        self.again()
    }

    /// Suspends the process until the shell resumes it.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        self.screen.lend();
        let this = rustix::process::getpid();
        let _ = rustix::process::kill_process(this, rustix::process::Signal::TSTP);
        self.again()
    }

    /// Takes the terminal back, which may have a different size.
    fn again(&mut self) -> io::Result<()> {
        self.screen.take()?;
        let (columns, rows) = Screen::size();
        let _ = self.sender.send(Input::Resize(columns, rows));
        Ok(())
    }
}

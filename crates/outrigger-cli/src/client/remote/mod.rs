//! A server somewhere else, over its HTTP API (`attach`, `run --attach`).

mod events;
mod turn;

use std::fmt;
use std::path::{Path, PathBuf};

use outrigger_agent::Folders;
use outrigger_protocol::session::Session;
use reqwest::{Client, Method, Response};
use serde_json::Value;

use crate::args::ServerArgs;
use crate::failure::Failure;

pub(crate) use events::{Told, listen};
pub(crate) use turn::{Answers, Attached, Heard, gone};

/// The user where none is named, as in OpenCode.
pub(crate) const USERNAME: &str = "opencode";

/// A server and how it is asked. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    client: Client,
    base: String,
    username: String,
    password: Password,
    /// The folder on the server; without one it is the server's own.
    directory: Option<String>,
}

/// What is sent to prove who asks.
#[derive(Clone)]
enum Password {
    None,
    /// That of the options or of the environment: the user means it for this address.
    Given(String),
    /// The kept one, for whoever is found to be a server of this user's at each request.
    Kept {
        password: String,
        data: PathBuf,
        port: u16,
    },
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

impl Password {
    fn kept(base: &str, data: PathBuf) -> Self {
        let port = port_here(base);
        let password = outrigger_server::kept_password(&data).ok().flatten();
        match (password, port) {
            (Some(password), Some(port)) => Self::Kept {
                password,
                data,
                port,
            },
            _ => Self::None,
        }
    }

    /// The password, if it may be sent now.
    fn sent(&self) -> Option<&str> {
        match self {
            Self::None => None,
            Self::Given(password) => Some(password),
            Self::Kept {
                password,
                data,
                port,
            } => outrigger_server::is_announced(data, *port).then_some(password),
        }
    }
}

impl Remote {
    /// A server at an address, with the password of the options, of the environment, or, for a server that this user
    /// started on this machine, the kept one.
    ///
    /// # Errors
    /// An address that is none.
    pub(crate) fn new(
        url: &str,
        args: &ServerArgs,
        directory: Option<&Path>,
    ) -> Result<Self, Failure> {
        let base = url.trim_end_matches('/').to_owned();
        if !["http://", "https://"]
            .iter()
            .any(|scheme| base.starts_with(scheme))
        {
            return Err(Failure::usage(
                format!("`{url}` is not the address of a server"),
                Some("write it as http://HOST:PORT".into()),
            ));
        }
        let env = crate::boot::environment();
        let of = |name: &str| env.get(name).filter(|value| !value.is_empty()).cloned();
        let given = args.password.clone();
        let password = match given.or_else(|| of("OPENCODE_SERVER_PASSWORD")) {
            Some(password) => Password::Given(password),
            None => Password::kept(&base, Folders::from_env(&env).data),
        };
        Ok(Self {
            client: outrigger_models::http_client(&base)
                .map_err(|message| Failure::new("attach.client", message, None))?,
            username: args
                .username
                .clone()
                .or_else(|| of("OPENCODE_SERVER_USERNAME"))
                .unwrap_or_else(|| USERNAME.to_owned()),
            base,
            password,
            directory: directory.map(|dir| dir.to_string_lossy().into_owned()),
        })
    }

    /// What a GET answers.
    ///
    /// # Errors
    /// A server that cannot be reached or refuses.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, Failure> {
        body(self.send(Method::GET, path, None).await?).await
    }

    /// What a POST answers.
    ///
    /// # Errors
    /// A server that cannot be reached or refuses.
    pub(crate) async fn post(&self, path: &str, with: Value) -> Result<Value, Failure> {
        body(self.send(Method::POST, path, Some(with)).await?).await
    }

    /// The same as a type of ours.
    ///
    /// # Errors
    /// As [`Self::post`], and an answer of another form.
    pub(crate) async fn session(&self, made: Value) -> Result<Session, Failure> {
        serde_json::from_value(made).map_err(|error| self.strange(&error.to_string()))
    }

    /// The sessions of the folder, the last one first.
    ///
    /// # Errors
    /// As [`Self::get`], and an answer of another form.
    pub(crate) async fn sessions(&self) -> Result<Vec<Session>, Failure> {
        let list = self.get("/session?roots=true").await?;
        let mut list: Vec<Session> =
            serde_json::from_value(list).map_err(|error| self.strange(&error.to_string()))?;
        list.retain(|session| session.parent_id.is_none());
        list.sort_by_key(|session| std::cmp::Reverse(session.time.updated));
        Ok(list)
    }

    fn strange(&self, why: &str) -> Failure {
        let message = format!(
            "{} does not answer as a server of this API: {why}",
            self.base
        );
        Failure::new("attach.answer", message, None)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        with: Option<Value>,
    ) -> Result<Response, Failure> {
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        if let Some(directory) = &self.directory {
            request = request.header("x-opencode-directory", encoded(directory));
        }
        if let Some(password) = self.password.sent() {
            request = request.basic_auth(&self.username, Some(password));
        }
        if let Some(with) = with {
            request = request
                .header("content-type", "application/json")
                .body(with.to_string());
        }
        let response = request.send().await.map_err(|error| {
            let why = if error.is_connect() {
                "nobody listens there"
            } else {
                "the connection broke off"
            };
            Failure::new(
                "attach.unreachable",
                format!("{} cannot be reached: {why}", self.base),
                Some("start it with `outrigger serve`, and give the address that it prints".into()),
            )
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status.as_u16() == 401 {
            let message = format!("{} asks for another password", self.base);
            let hint = "set OPENCODE_SERVER_PASSWORD, or give --password (the kept one goes only to a server that you have started on this machine)";
            return Err(Failure::new("attach.password", message, Some(hint.into())));
        }
        let text = response.text().await.unwrap_or_default();
        let told: Value = serde_json::from_str(&text).unwrap_or_default();
        let message = told["data"]["message"].as_str().map_or_else(
            || format!("{} answers {status} to {path}", self.base),
            str::to_owned,
        );
        let code = told["data"]["code"].as_str().unwrap_or("attach.refused");
        Err(Failure::new(code, message, None))
    }
}

async fn body(response: Response) -> Result<Value, Failure> {
    let lost = |error: reqwest::Error| {
        let message = format!("the answer broke off: {}", error.without_url());
        Failure::new("attach.unreachable", message, None)
    };
    let text = response.text().await.map_err(lost)?;
    if text.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(&text).map_err(|error| {
        let message = format!("the server does not answer in JSON: {error}");
        Failure::new("attach.answer", message, None)
    })
}

/// The port of a server on this machine; none for any other address.
fn port_here(base: &str) -> Option<u16> {
    let url = reqwest::Url::parse(base).ok()?;
    let host = url.host_str().unwrap_or_default();
    let here = host == "localhost"
        || host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback());
    here.then(|| url.port_or_known_default())?
}

/// Percent-encoding of everything but letters, digits and what stays as it is in a path.
pub(crate) fn encoded(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kept_password_goes_to_this_machine_only() {
        for (url, here) in [
            ("http://127.0.0.1:4096", Some(4096)),
            ("http://localhost:4096/", Some(4096)),
            ("http://[::1]:4096", Some(4096)),
            ("http://localhost", Some(80)),
            ("http://127.0.0.1.evil.example:80", None),
            ("http://localhost@evil.example", None),
            ("http://localhost:x@evil.example", None),
            ("http://evil.example/localhost", None),
            ("http://192.168.0.1:4096", None),
        ] {
            assert_eq!(port_here(url), here, "{url}");
        }
        assert_eq!(encoded("/a b/ü"), "%2Fa%20b%2F%C3%BC");
    }
}

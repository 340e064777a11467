//! A remote server, over its HTTP API (`attach`, `run --attach`).

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use http::Method;
use outrigger_agent::Folders;
use reqwest::{Client, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::connection::encoded;
use crate::error::ClientError;

/// The default user, as in OpenCode.
pub const USERNAME: &str = "opencode";

/// Credentials for a server.
#[derive(Clone, Default)]
pub struct Login {
    /// Default: that of the environment, then the kept one.
    pub password: Option<String>,
    /// Default: that of the environment, then [`USERNAME`].
    pub username: Option<String>,
}

/// A server and its connection settings. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Remote {
    client: Client,
    base: String,
    username: String,
    password: Password,
    /// The folder on the server; `None` means the server's own.
    directory: Option<String>,
}

/// The password that is sent.
#[derive(Clone)]
enum Password {
    None,
    /// From the options or the environment: the user intends it for this address.
    Given(String),
    /// The kept one, sent only if the address is found to be a server of this user at each request.
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

    /// Returns the password, if it may be sent now.
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
    /// Connects to a server with the password of the options, of the environment, or, for a server that this user
    /// started on this machine, the kept one.
    ///
    /// # Errors
    /// The address is invalid.
    pub fn new(
        url: &str,
        login: &Login,
        env: &BTreeMap<String, String>,
        directory: Option<&Path>,
    ) -> Result<Self, ClientError> {
        let base = url.trim_end_matches('/').to_owned();
        if !["http://", "https://"]
            .iter()
            .any(|scheme| base.starts_with(scheme))
        {
            return Err(ClientError::usage(
                format!("`{url}` is not the address of a server"),
                Some("write it as http://HOST:PORT".into()),
            ));
        }
        let of = |name: &str| env.get(name).filter(|value| !value.is_empty()).cloned();
        let given = login.password.clone();
        let password = match given.or_else(|| of("OPENCODE_SERVER_PASSWORD")) {
            Some(password) => Password::Given(password),
            None => Password::kept(&base, Folders::from_env(env).data),
        };
        Ok(Self {
            client: outrigger_models::http_client(&base)
                .map_err(|message| ClientError::new("attach.client", message, None))?,
            username: login
                .username
                .clone()
                .or_else(|| of("OPENCODE_SERVER_USERNAME"))
                .unwrap_or_else(|| USERNAME.to_owned()),
            base,
            password,
            directory: directory.map(|dir| dir.to_string_lossy().into_owned()),
        })
    }

    /// Sends a GET.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.read(&self.call(Method::GET, path, None).await?)
    }

    /// Sends a POST.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        with: &impl Serialize,
    ) -> Result<T, ClientError> {
        let with = serde_json::to_vec(with).unwrap_or_default();
        self.read(&self.call(Method::POST, path, Some(with)).await?)
    }

    /// Returns the body of a response; `null` if it is empty.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        with: Option<Vec<u8>>,
    ) -> Result<Vec<u8>, ClientError> {
        let response = self.send(method, path, with).await?;
        let body = response.bytes().await.map_err(|error| {
            let message = format!("the answer broke off: {}", error.without_url());
            ClientError::new("attach.unreachable", message, None)
        })?;
        Ok(if body.is_empty() {
            b"null".to_vec()
        } else {
            body.to_vec()
        })
    }

    /// Parses a response.
    ///
    /// # Errors
    /// It has another form.
    pub fn read<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, ClientError> {
        match serde_json::from_slice(body) {
            Ok(answer) => Ok(answer),
            Err(error) if error.is_data() => Err(self.strange(&error.to_string())),
            Err(error) => Err(ClientError::new(
                "attach.answer",
                format!("the server does not answer in JSON: {error}"),
                None,
            )),
        }
    }

    /// Creates the error for a server that is not one of ours.
    pub(crate) fn strange(&self, why: &str) -> ClientError {
        let message = format!(
            "{} does not answer as a server of this API: {why}",
            self.base
        );
        ClientError::new("attach.answer", message, None)
    }

    /// Returns the response once its head has arrived.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        with: Option<Vec<u8>>,
    ) -> Result<Response, ClientError> {
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
                .body(with);
        }
        let response = request.send().await.map_err(|error| {
            let why = if error.is_connect() {
                "no server is running there"
            } else {
                "the connection was lost"
            };
            ClientError::new(
                "attach.unreachable",
                format!("cannot reach {}: {why}", self.base),
                Some("start one with `outrigger serve` and use the address it prints".into()),
            )
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status.as_u16() == 401 {
            let message = format!("wrong password for {}", self.base);
            let hint = "set OPENCODE_SERVER_PASSWORD or use --password (the stored one is only sent to a server that you started on this machine)";
            return Err(ClientError::new(
                "attach.password",
                message,
                Some(hint.into()),
            ));
        }
        Err(refused(response, &self.base, path).await)
    }
}

/// Converts a refusal of a server.
async fn refused(response: Response, base: &str, path: &str) -> ClientError {
    let status = response.status();
    let text = response.text().await.unwrap_or_default();
    let error: Value = serde_json::from_str(&text).unwrap_or_default();
    let message = error["data"]["message"].as_str().map_or_else(
        || format!("{base} answers {status} to {path}"),
        str::to_owned,
    );
    let code = error["data"]["code"].as_str().unwrap_or("attach.refused");
    ClientError::new(code, message, None)
}

/// Returns the port of a server on this machine; `None` for any other address.
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
    }
}

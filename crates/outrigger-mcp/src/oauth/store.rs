//! Stored logins: one JSON file that only its owner can read, in the form of OpenCode's `mcp-auth.json`.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use outrigger_files::Readers;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::now;

/// The file; without a path nothing is stored.
#[derive(Clone, Default)]
pub struct TokenStore {
    path: Option<PathBuf>,
    /// Called with the secrets of each login that is read or stored.
    watcher: Option<Watcher>,
}

impl std::fmt::Debug for TokenStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenStore")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

type Watcher = Arc<dyn Fn(&Value) + Send + Sync>;

/// The login state of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthState {
    /// There is a valid token.
    Authenticated,
    /// The token has expired; it is renewed if possible.
    Expired,
    /// There is no token.
    NotAuthenticated,
}

/// The stored data of one server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tokens: Option<Tokens>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_info: Option<ClientInfo>,
    /// A server's challenge for a login with more rights (`WWW-Authenticate`), until there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) wanted: Option<String>,
    /// The URL that the data are for: a server that moved is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) server_url: Option<String>,
}

impl Entry {
    fn secrets(&self) -> Value {
        let tokens = self.tokens.as_ref();
        let client = self.client_info.as_ref();
        json!([
            tokens.map(|it| &it.access_token),
            tokens.and_then(|it| it.refresh_token.as_ref()),
            client.and_then(|it| it.client_secret.as_ref()),
        ])
    }
}

/// Tokens. Not shown in `Debug` (invariant 10).
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tokens {
    pub(crate) access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refresh_token: Option<String>,
    /// Seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scope: Option<String>,
    /// The issuer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) issuer: Option<String>,
    /// Where they are renewed. Tokens without one are not: what was stored before there was one may have come from anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token_endpoint: Option<String>,
    /// The requested scope, which may differ from the granted one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked_scope: Option<String>,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens")
            .field("expires_at", &self.expires_at)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

impl Tokens {
    /// Returns whether it has expired, or will within `slack` seconds.
    pub(crate) fn is_expired(&self, slack: f64) -> bool {
        self.expires_at.is_some_and(|at| at < now() + slack)
    }
}

/// A registered client.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClientInfo {
    pub(crate) client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_secret: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_id_issued_at: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_secret_expires_at: Option<f64>,
    /// The authorization server that registered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) issuer: Option<String>,
    /// Where it gets tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token_endpoint: Option<String>,
}

impl std::fmt::Debug for ClientInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientInfo")
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

impl ClientInfo {
    /// Creates a client without a secret.
    pub(crate) fn of(id: &str) -> Self {
        Self {
            client_id: id.to_owned(),
            client_secret: None,
            client_id_issued_at: None,
            client_secret_expires_at: None,
            issuer: None,
            token_endpoint: None,
        }
    }
}

impl TokenStore {
    /// Opens the store in a file, which need not exist yet.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self {
            path: Some(path),
            watcher: None,
        }
    }

    /// Reports the secrets of each login that is read or stored, before they are returned.
    #[must_use]
    pub fn watched(mut self, watcher: impl Fn(&Value) + Send + Sync + 'static) -> Self {
        self.watcher = Some(Arc::new(watcher));
        self
    }

    fn report(&self, all: &BTreeMap<String, Entry>) {
        if let Some(watcher) = &self.watcher {
            all.values().for_each(|entry| watcher(&entry.secrets()));
        }
    }

    /// Returns the login state of a server at this URL.
    #[must_use]
    pub fn state(&self, server: &str, url: &str) -> AuthState {
        match self.get(server, url).tokens {
            None => AuthState::NotAuthenticated,
            Some(tokens) if tokens.is_expired(0.0) => AuthState::Expired,
            Some(_) => AuthState::Authenticated,
        }
    }

    /// Removes the data of a server; returns `false` if there was none.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn remove(&self, server: &str) -> io::Result<bool> {
        let mut there = false;
        self.change(|all| there = all.remove(server).is_some())?;
        Ok(there)
    }

    /// Returns the names of servers with data.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.read().into_keys().collect()
    }

    /// Returns the data of a server at this URL; data of a server configured with another URL are not used.
    pub(crate) fn get(&self, server: &str, url: &str) -> Entry {
        let entry = self.read().remove(server);
        entry
            .filter(|entry| entry.server_url.as_deref() == Some(url))
            .unwrap_or_default()
    }

    /// Updates the data of a server.
    pub(crate) fn update(
        &self,
        server: &str,
        url: &str,
        change: impl FnOnce(&mut Entry),
    ) -> io::Result<()> {
        self.change(|all| {
            let entry = all.entry(server.to_owned()).or_default();
            if entry.server_url.as_deref() != Some(url) {
                *entry = Entry {
                    server_url: Some(url.to_owned()),
                    ..Entry::default()
                };
            }
            change(entry);
        })
    }

    fn read(&self) -> BTreeMap<String, Entry> {
        let text = self
            .path
            .as_ref()
            .map(|path| outrigger_files::read(path, outrigger_files::DATA));
        let all = text
            .and_then(Result::ok)
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default();
        self.report(&all);
        all
    }

    // Under a lock, so that another process of ours does not undo it, and atomically.
    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, Entry>)) -> io::Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let _held = outrigger_files::lock(&path.with_extension("lock"))?;
        let mut all = self.read();
        change(&mut all);
        self.report(&all);
        let text = serde_json::to_vec_pretty(&all)?;
        outrigger_files::replace(path, &text, Readers::Owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn tokens(expires_at: Option<f64>) -> Tokens {
        Tokens {
            access_token: "secret-token".into(),
            refresh_token: None,
            expires_at,
            scope: None,
            issuer: None,
            token_endpoint: None,
            asked_scope: None,
        }
    }

    #[test]
    fn it_is_private_and_of_one_address() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sub/mcp-auth.json");
        let store = TokenStore::new(path.clone());
        assert_eq!(store.state("m", "u"), AuthState::NotAuthenticated);
        store
            .update("m", "u", |entry| entry.tokens = Some(tokens(None)))
            .unwrap();
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(store.state("m", "u"), AuthState::Authenticated);
        assert_eq!(store.state("m", "elsewhere"), AuthState::NotAuthenticated);
        insta::assert_snapshot!(std::fs::read_to_string(&path).unwrap(), @r#"
        {
          "m": {
            "tokens": {
              "accessToken": "secret-token"
            },
            "serverUrl": "u"
          }
        }
        "#);
        assert!(!format!("{:?}", store.get("m", "u")).contains("secret-token"));
        store
            .update("m", "u", |entry| entry.tokens = Some(tokens(Some(1.0))))
            .unwrap();
        assert_eq!(store.state("m", "u"), AuthState::Expired);
        assert!(store.remove("m").unwrap() && !store.remove("m").unwrap());
        assert!(store.names().is_empty());
    }

    /// The audit must know them before they are used, including those that another process stored.
    #[test]
    fn secrets_are_reported_where_they_are_stored_and_where_they_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mcp-auth.json");
        let reported: Arc<std::sync::Mutex<String>> = Arc::default();
        let sink = Arc::clone(&reported);
        let watched = TokenStore::new(path.clone())
            .watched(move |secrets| sink.lock().unwrap().push_str(&secrets.to_string()));
        let taken = || std::mem::take(&mut *reported.lock().unwrap());
        let set = |store: &TokenStore, token: &str| {
            let tokens = Tokens {
                access_token: token.to_owned(),
                scope: Some("everything".to_owned()),
                ..tokens(None)
            };
            store
                .update("m", "u", |entry| entry.tokens = Some(tokens))
                .unwrap();
        };
        set(&watched, "of this process");
        assert_eq!(taken(), r#"["of this process",null,null]"#);
        set(&TokenStore::new(path), "of another one");
        assert_eq!(
            watched.get("m", "u").tokens.unwrap().access_token,
            "of another one"
        );
        assert_eq!(taken(), r#"["of another one",null,null]"#);
    }

    #[test]
    fn a_file_that_cannot_be_read_counts_as_empty() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mcp-auth.json");
        std::fs::write(&path, "{").unwrap();
        let store = TokenStore::new(path);
        assert_eq!(store.state("m", "u"), AuthState::NotAuthenticated);
        let nowhere = TokenStore::default();
        nowhere.update("m", "u", |_| {}).unwrap();
        assert!(nowhere.names().is_empty());
    }
}

//! The credentials of this user: a file of ours that only the user can read, and OpenCode's file in addition.
//!
//! The first source with an entry for a provider wins: what was set in this process while the environment provides the
//! credentials, `OPENCODE_AUTH_CONTENT` (instead of all files, as in OpenCode), our `auth.json`, OpenCode's `auth.json`. The last
//! is only ever read: logging out of its entries is recorded in ours.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use outrigger_files::Readers;
use outrigger_protocol::Object;
use outrigger_protocol::auth::Credential;
use outrigger_protocol::diagnose::Diagnose;
use outrigger_stdx::sync::lock;
use serde_json::{Value, json};

/// Marks a provider that was logged out of although OpenCode's file has it.
const REMOVED: &str = "removed";
/// The key in a credential of our file that names the plugin whose login stored it.
const BY: &str = "outriggerPlugin";

/// The source of a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Our file.
    Own,
    /// OpenCode's file.
    OpenCode,
    /// `OPENCODE_AUTH_CONTENT`.
    Environment,
}

/// A credential and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Provider.
    pub provider: String,
    /// The credential.
    pub credential: Credential,
    /// Its source.
    pub origin: Origin,
    /// The NAME of `[plugins.NAME]` of the plugin whose login stored it.
    pub by: Option<String>,
}

/// The credential file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// It cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Read {
        /// File.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// It is not a JSON object. It is not overwritten, since its content may be recoverable.
    #[error("{} is not a JSON object: {reason}", path.display())]
    Format {
        /// File.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// It cannot be written.
    #[error("cannot write {}: {reason}", path.display())]
    Write {
        /// File.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl Diagnose for CredentialError {
    fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } => "auth.read",
            Self::Format { .. } => "auth.format",
            Self::Write { .. } => "auth.write",
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Format { path, .. } => Some(format!(
                "repair it, or move {} away and log in again",
                path.display()
            )),
            _ => None,
        }
    }
}

/// Credentials by provider. Cheap to clone; the files are read on each request, so that logins of other processes are seen.
#[derive(Clone, Default)]
pub struct Credentials(Arc<CredentialsState>);

/// A credential, and the plugin whose login stored it.
type Given = (Credential, Option<String>);

#[derive(Default)]
struct CredentialsState {
    own: PathBuf,
    opencode: Option<PathBuf>,
    content: Option<Object>,
    /// What was set while the environment replaces the files; `None`: removed.
    overlay: Mutex<BTreeMap<String, Option<Given>>>,
    renewal: tokio::sync::Mutex<()>,
    /// Called with each credential that is read or stored.
    watcher: OnceLock<Watcher>,
}

type Watcher = Box<dyn Fn(&Value) + Send + Sync>;

/// While this exists, no one else renews a login.
#[derive(Debug)]
pub(crate) struct Renewal<'a> {
    _process: tokio::sync::MutexGuard<'a, ()>,
    _user: Option<outrigger_files::Lock>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("own", &self.0.own)
            .field("opencode", &self.0.opencode)
            .finish_non_exhaustive()
    }
}

impl Credentials {
    /// Opens credentials in `own`, in addition to those in `opencode`, if it exists. `content` is `OPENCODE_AUTH_CONTENT`; text
    /// that is not a JSON object is ignored, as in OpenCode.
    #[must_use]
    pub fn new(own: PathBuf, opencode: Option<PathBuf>, content: Option<&str>) -> Self {
        let content = content.filter(|text| !text.is_empty()).and_then(|text| {
            let parsed = serde_json::from_str(text).ok();
            if parsed.is_none() {
                tracing::warn!("[auth] OPENCODE_AUTH_CONTENT is not a JSON object and is ignored");
            }
            parsed
        });
        Self(Arc::new(CredentialsState {
            own,
            opencode,
            content,
            overlay: Mutex::default(),
            renewal: tokio::sync::Mutex::default(),
            watcher: OnceLock::new(),
        }))
    }

    /// Returns our file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.own
    }

    /// Reports each credential that is stored from now on, here or by another process, before it is returned, and the existing
    /// ones. There can be one watcher; a second one is ignored.
    pub fn watch(&self, watcher: impl Fn(&Value) + Send + Sync + 'static) {
        if self.0.watcher.set(Box::new(watcher)).is_ok() {
            self.all_or(|_| {});
        }
    }

    fn report<'a>(&self, credentials: impl IntoIterator<Item = &'a Credential>) {
        if let Some(watcher) = self.0.watcher.get() {
            for credential in credentials {
                watcher(&serde_json::to_value(credential).unwrap_or_default());
            }
        }
    }

    fn overlay(&self) -> MutexGuard<'_, BTreeMap<String, Option<Given>>> {
        lock(&self.0.overlay)
    }

    /// Returns every credential by provider. Invalid entries are skipped, as in OpenCode; so is an unreadable file, with a
    /// warning.
    #[must_use]
    pub fn all(&self) -> BTreeMap<String, Stored> {
        self.all_or(|error| tracing::warn!("[auth] {error}"))
    }

    /// Reads every credential, so that the watcher of [`Credentials::watch`] learns the keys.
    pub fn report_all(&self) {
        let _ = self.all();
    }

    /// Returns the providers with credentials, without warnings about unreadable files.
    #[must_use]
    pub fn providers(&self) -> BTreeSet<String> {
        self.all_or(|_| {}).into_keys().collect()
    }

    fn all_or(&self, failed: impl Fn(CredentialError)) -> BTreeMap<String, Stored> {
        let all = self.read_all(failed);
        self.report(all.values().map(|it| &it.credential));
        all
    }

    fn read_all(&self, failed: impl Fn(CredentialError)) -> BTreeMap<String, Stored> {
        let mut out = BTreeMap::new();
        if let Some(content) = &self.0.content {
            add(&mut out, content, Origin::Environment);
            for (provider, credential) in self.overlay().iter() {
                out.remove(provider);
                if let Some((credential, by)) = credential {
                    let stored = Stored {
                        provider: provider.clone(),
                        credential: credential.clone(),
                        origin: Origin::Own,
                        by: by.clone(),
                    };
                    out.insert(provider.clone(), stored);
                }
            }
            return out;
        }
        let files = [
            (self.0.opencode.as_deref(), Origin::OpenCode),
            (Some(self.0.own.as_path()), Origin::Own),
        ];
        for (path, origin) in files {
            match path.map_or(Ok(Object::new()), read) {
                Ok(entries) => add(&mut out, &entries, origin),
                Err(error) => failed(error),
            }
        }
        out
    }

    /// Returns the credential of a provider.
    #[must_use]
    pub fn get(&self, provider: &str) -> Option<Credential> {
        self.stored(provider).map(|stored| stored.credential)
    }

    /// Like [`Self::get`], with its source.
    #[must_use]
    pub fn stored(&self, provider: &str) -> Option<Stored> {
        self.all().remove(provider)
    }

    /// Stores a credential; `by` names the plugin whose login it is from ([`Stored::by`]). Trailing slashes of the provider's name
    /// are removed, as in OpenCode (well-known logins are named by a URL).
    ///
    /// # Errors
    /// [`CredentialError`]; the file is then unchanged.
    pub fn set(
        &self,
        provider: &str,
        credential: &Credential,
        by: Option<&str>,
    ) -> Result<(), CredentialError> {
        let name = provider.trim_end_matches('/');
        self.report([credential]);
        if self.0.content.is_some() {
            self.overlay().insert(
                name.to_owned(),
                Some((credential.clone(), by.map(str::to_owned))),
            );
            return Ok(());
        }
        self.change(|entries| {
            entries.shift_remove(provider);
            entries.shift_remove(&format!("{name}/"));
            let mut value = serde_json::to_value(credential).unwrap_or_default();
            if let (Some(by), Value::Object(fields)) = (by, &mut value) {
                fields.insert(BY.to_owned(), json!(by));
            }
            entries.insert(name.to_owned(), value);
        })
    }

    /// Waits until no login is being renewed, in this process or another one of this user.
    pub(crate) async fn renewal(&self) -> Renewal<'_> {
        let process = self.0.renewal.lock().await;
        let path = self.0.own.with_file_name("auth-renewal.lock");
        let is_file = self.0.content.is_none();
        let held =
            is_file.then(|| tokio::task::spawn_blocking(move || outrigger_files::lock(&path)));
        let user = match held {
            Some(held) => held.await.ok().and_then(Result::ok),
            None => None,
        };
        Renewal {
            _process: process,
            _user: user,
        }
    }

    /// Removes a credential; not an error if there is none.
    ///
    /// # Errors
    /// [`CredentialError`]; the file is then unchanged.
    pub fn remove(&self, provider: &str) -> Result<(), CredentialError> {
        let name = provider.trim_end_matches('/');
        if self.0.content.is_some() {
            self.overlay().insert(name.to_owned(), None);
            return Ok(());
        }
        let theirs = self.0.opencode.as_deref().map(read);
        let is_theirs = matches!(theirs, Some(Ok(entries)) if entries.contains_key(name));
        self.change(|entries| {
            entries.shift_remove(provider);
            entries.shift_remove(name);
            if is_theirs {
                entries.insert(name.to_owned(), json!({ "type": REMOVED }));
            }
        })
    }

    /// Changes our file: under a lock, so that two processes do not lose each other's changes, and by renaming a complete new file
    /// over it, so that a kill leaves the old or the new one.
    fn change(&self, change: impl FnOnce(&mut Object)) -> Result<(), CredentialError> {
        let path = &self.0.own;
        let failed = |error: std::io::Error| CredentialError::Write {
            path: path.clone(),
            reason: error.to_string(),
        };
        let _held = outrigger_files::lock(&path.with_extension("lock")).map_err(failed)?;
        let mut entries = read(path)?;
        change(&mut entries);
        let text = serde_json::to_string_pretty(&entries).unwrap_or_default();
        outrigger_files::replace(path, text.as_bytes(), Readers::Owner).map_err(failed)
    }
}

/// Reads the entries of a file; empty if there is no file.
fn read(path: &Path) -> Result<Object, CredentialError> {
    let text = match outrigger_files::read_to_string(path, outrigger_files::SETTINGS) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Object::new()),
        Err(error) => {
            return Err(CredentialError::Read {
                path: path.to_owned(),
                reason: error.to_string(),
            });
        }
    };
    // The position of the error is reported, the content is not.
    serde_json::from_str(&text).map_err(|error| CredentialError::Format {
        path: path.to_owned(),
        reason: format!("line {}, column {}", error.line(), error.column()),
    })
}

fn add(out: &mut BTreeMap<String, Stored>, entries: &Object, origin: Origin) {
    for (provider, value) in entries {
        if value.get("type").and_then(Value::as_str) == Some(REMOVED) {
            out.remove(provider);
        } else if let Ok(credential) = serde_json::from_value(value.clone()) {
            let stored = Stored {
                provider: provider.clone(),
                credential,
                origin,
                // Ignored in OpenCode's file.
                by: (origin == Origin::Own)
                    .then(|| Some(value.get(BY)?.as_str()?.to_owned()))
                    .flatten(),
            };
            out.insert(provider.clone(), stored);
        }
    }
}

#[cfg(test)]
#[path = "credentials_tests.rs"]
mod tests;

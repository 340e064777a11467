//! How much a plugin's client may store: a number of requests and of bytes a day, for each plugin of a folder.
//!
//! What is stored stays: the log is append-only, and one full disk stops the turns of all projects. So a request is counted
//! before it is carried out, by its body and by what it makes the store write again: the session that it changes, the
//! conversation that it copies, the files that it attaches. The count is in the store, where all processes find it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use outrigger_agent::Agent;
use outrigger_protocol::audit::{AuditKind, AuditRecord};
use outrigger_protocol::id::{PluginId, SessionId};
use outrigger_protocol::provenance::UNKNOWN_PLUGIN;
use outrigger_protocol::rpc::SdkRequest;
use outrigger_stdx::clock::now_ms;
use outrigger_stdx::sync::lock;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ApiError;
use crate::request::decoded;

/// Prefix of the counts in the store.
const KEY: &str = "plugin_storage";
/// Milliseconds of a day.
const DAY: u64 = 86_400_000;
/// Maximum bytes of a session itself (title, metadata, rules) that a plugin makes or changes: each step of a turn stores it
/// again.
const SESSION: u64 = 256 * 1024;
/// Maximum bytes that an attached file is stored with. Longer ones are cut or refused where they are read.
const ATTACHED: u64 = 16 * 1024 * 1024;
/// Stores nothing: the log has a limit of its own.
const UNSTORED: &str = "/log";

/// What a plugin has stored on one day (UTC).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Stored {
    day: u64,
    requests: u64,
    bytes: u64,
    /// The first refusal of the day is in the audit.
    is_reported: bool,
}

/// What a plugin may store on one day.
#[derive(Clone, Copy, Debug)]
struct Limits {
    requests: u64,
    megabytes: u64,
}

impl Limits {
    fn of(agent: &Agent) -> Self {
        let limits = &agent.config().settings.limits;
        Self {
            requests: limits.plugin_stored_requests,
            megabytes: limits.plugin_stored_mb,
        }
    }
}

/// Whether a request may be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Counted,
    /// The setting that refuses it, and whether it is the first refusal of the day.
    Refused(Setting, bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setting {
    Requests,
    Megabytes,
}

impl Setting {
    fn name(self) -> &'static str {
        match self {
            Self::Requests => "plugin_stored_requests",
            Self::Megabytes => "plugin_stored_mb",
        }
    }

    fn refusal(self, plugin: &str, limits: Limits) -> String {
        let (what, most) = match self {
            Self::Requests => ("requests", limits.requests),
            Self::Megabytes => ("MiB", limits.megabytes),
        };
        let name = self.name();
        format!(
            "the plugin {plugin} stores no more today: `{name} = {most}` under [limits] lets the client of a plugin store \
             {most} {what} a day (UTC) in a folder; raise it in your own outrigger.toml"
        )
    }
}

impl Stored {
    /// Counts a request of this size, or refuses it.
    fn add(&mut self, day: u64, bytes: u64, limits: Limits) -> Verdict {
        if self.day != day {
            *self = Self {
                day,
                ..Self::default()
            };
        }
        let (requests, bytes) = (self.requests + 1, self.bytes.saturating_add(bytes));
        let over = match (requests > limits.requests, bytes > limits.megabytes << 20) {
            (true, _) => Setting::Requests,
            (false, true) => Setting::Megabytes,
            (false, false) => {
                (self.requests, self.bytes) = (requests, bytes);
                return Verdict::Counted;
            }
        };
        Verdict::Refused(over, !std::mem::replace(&mut self.is_reported, true))
    }
}

/// The counts of the plugins of an agent.
#[derive(Debug, Default)]
pub(crate) struct PluginStorage {
    /// Plugins whose number of requests is used up, with the day: further ones cost the store nothing.
    spent: Mutex<HashMap<String, u64>>,
}

impl PluginStorage {
    /// Counts what a request stores.
    ///
    /// # Errors
    /// 403 if it would exceed a limit. The first refusal of a day is in the audit and the log; the caller records none.
    pub(crate) async fn count(&self, agent: &Agent, request: &SdkRequest) -> Result<(), ApiError> {
        let path = request.path.split(['?', '#']).next().unwrap_or_default();
        if !stores(&request.method, path) {
            return Ok(());
        }
        let plugin = request.plugin.as_deref().unwrap_or(UNKNOWN_PLUGIN);
        let limits = Limits::of(agent);
        let day = today();
        if lock(&self.spent).get(plugin) == Some(&day) {
            let refusal = Setting::Requests.refusal(plugin, limits);
            return Err(ApiError::forbidden(refusal));
        }
        let bytes = size(agent, path, request.body.as_deref().unwrap_or_default())?;
        let folder = agent.location().directory.display();
        let key = format!("{KEY}/{folder}/{plugin}");
        let verdict = Arc::new(OnceLock::new());
        let decided = Arc::clone(&verdict);
        let update = move |stored: Option<String>| {
            let mut stored: Stored = stored
                .and_then(|it| serde_json::from_str(&it).ok())
                .unwrap_or_default();
            let _ = decided.set(stored.add(day, bytes, limits));
            serde_json::to_string(&stored).ok()
        };
        agent.store().meta_update(&key, update).await?;
        let Some(Verdict::Refused(setting, is_first)) = verdict.get().copied() else {
            return Ok(());
        };
        if setting == Setting::Requests {
            lock(&self.spent).insert(plugin.to_owned(), day);
        }
        let refusal = setting.refusal(plugin, limits);
        if is_first {
            tracing::warn!("[plugins] {refusal}");
            report(agent, plugin, request, path, setting, &refusal);
        }
        Err(ApiError::forbidden(refusal))
    }
}

fn report(
    agent: &Agent,
    plugin: &str,
    request: &SdkRequest,
    path: &str,
    setting: Setting,
    refusal: &str,
) {
    let at = now_ms();
    let record = AuditRecord {
        plugin_id: Some(PluginId(plugin.to_owned())),
        plugin_id_claimed: true,
        subject: Some(format!("{} {path}", request.method)),
        errored: true,
        policy_check_result: format!("refused: limits.{}", setting.name()),
        detail: Some(format!(
            "{refusal}; further refusals of this day are not listed"
        )),
        ..AuditRecord::new(AuditKind::Client, at, "403")
    };
    agent.store().audit_lazily(at, vec![record]);
}

fn today() -> u64 {
    now_ms() / DAY
}

fn stores(method: &str, path: &str) -> bool {
    let reads = ["GET", "HEAD", "OPTIONS"].contains(&method);
    !reads && path != UNSTORED
}

/// Returns how many bytes a request stores, at most.
///
/// # Errors
/// 403 for a session that would itself be larger than the limit.
fn size(agent: &Agent, path: &str, body: &str) -> Result<u64, ApiError> {
    let mut parts = path.split('/').skip(1);
    let (root, session, action) = (parts.next(), parts.next(), parts.next());
    let mut bytes = length(body);
    if root != Some("session") {
        return Ok(bytes);
    }
    let session = session
        .filter(|it| !it.is_empty())
        .map(|id| SessionId(decoded(id)));
    let held = match &session {
        Some(session) => agent.store().session(session)?,
        None => None,
    };
    let held = held.map_or(0, |session| written(&session));
    if action.is_none() && bytes > 0 && held.saturating_add(bytes) > SESSION {
        return Err(ApiError::forbidden(format!(
            "a plugin gives a session at most {} KiB of title, metadata and rules together: keep larger data in a file",
            SESSION / 1024
        )));
    }
    bytes += held;
    if let (Some("fork"), Some(session)) = (action, &session) {
        bytes += written(&agent.store().messages(session)?);
    }
    let folder = agent.location().directory.as_path();
    Ok(bytes.saturating_add(attached(body, folder)))
}

/// Returns the bytes of the files that a prompt attaches, as they are stored: as base64, or as text.
fn attached(body: &str, folder: &Path) -> u64 {
    let Ok(Value::Object(body)) = serde_json::from_str(body) else {
        return 0;
    };
    let parts = body.get("parts").and_then(Value::as_array);
    let urls = parts
        .into_iter()
        .flatten()
        .filter_map(|part| part.get("url")?.as_str());
    urls.filter(|url| !url.starts_with("data:"))
        .map(|url| {
            let path = url
                .strip_prefix("file://")
                .unwrap_or(url)
                .split(['?', '#'])
                .next()
                .unwrap_or_default();
            let meta = std::fs::metadata(folder.join(decoded(path)));
            meta.map_or(0, |meta| meta.len().min(ATTACHED) * 4 / 3)
        })
        .sum()
}

/// Returns the bytes of something in the store.
fn written(value: &impl Serialize) -> u64 {
    let text = serde_json::to_string(value).unwrap_or_default();
    length(&text)
}

fn length(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        requests: 3,
        megabytes: 1,
    };

    #[test]
    fn a_day_has_its_number_of_requests_and_of_bytes() {
        let mut stored = Stored::default();
        let refused = |setting, is_first| Verdict::Refused(setting, is_first);
        for (day, bytes, want) in [
            (7, 1 << 20, Verdict::Counted),
            (7, 1, refused(Setting::Megabytes, true)),
            // What was refused is not counted.
            (7, 0, Verdict::Counted),
            (7, 0, Verdict::Counted),
            (7, 0, refused(Setting::Requests, false)),
            (8, u64::MAX, refused(Setting::Megabytes, true)),
            (8, 1 << 20, Verdict::Counted),
        ] {
            assert_eq!(stored.add(day, bytes, LIMITS), want, "{day} {bytes}");
        }
    }

    #[test]
    fn a_refusal_names_the_plugin_the_limit_and_the_setting() {
        let said = Setting::Megabytes.refusal("acme", LIMITS);
        for part in [
            "the plugin acme",
            "`plugin_stored_mb = 1` under [limits]",
            "1 MiB a day",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn what_stores_nothing_is_not_counted() {
        for (method, path, want) in [
            ("POST", "/session", true),
            ("DELETE", "/session/ses_1", true),
            ("PATCH", "/session/ses_1/message/m/part/p", true),
            ("PUT", "/auth/acme", true),
            ("GET", "/session", false),
            ("POST", "/tui/show-toast", true),
            ("POST", "/log", false),
        ] {
            assert_eq!(stores(method, path), want, "{method} {path}");
        }
    }

    #[test]
    fn attached_files_count_as_they_are_stored() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a b"), [0; 300]).unwrap();
        let at = folder.path().display();
        for (url, want) in [
            (format!("file://{at}/a%20b?start=1"), 400),
            ("a b".to_owned(), 400),
            (format!("file://{at}/missing"), 0),
            ("data:text/plain,abc".to_owned(), 0),
        ] {
            let body = serde_json::json!({ "parts": [{ "type": "file", "url": url }] });
            assert_eq!(attached(&body.to_string(), folder.path()), want, "{url}");
        }
        assert_eq!(attached("no JSON", folder.path()), 0);
    }
}

//! The user's keys of a provider that a plugin implements, or whose URL a plugin named, without the grant for it: they are not
//! added to requests that the plugin can read.

use outrigger_protocol::Object;
use serde_json::Value;

use crate::credentials::Stored;
use crate::secret::is_secret_name;

/// The plugin that implements a provider, or named the URL of its requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speaker {
    /// Its identifier.
    pub plugin: String,
    /// The NAME of `[plugins.NAME]` that identifies only this plugin. Credentials stored by its logins refer to it.
    pub name: Option<String>,
    /// The user grants it their keys.
    pub has_keys: bool,
    /// It comes from a project, not from the user.
    pub of_project: bool,
}

impl Speaker {
    /// Returns whether it may have a credential. This is the only decision about that: it may have one stored by a login of its
    /// own, or any with the user's grant. For a provider that exists only through the plugin (`is_own`), a plugin of the user
    /// needs no further grant; a project's does, since another project's may give its provider the same name.
    #[must_use]
    pub fn may_have(&self, stored: &Stored, is_own: bool) -> bool {
        let is_by_it = stored.by.is_some() && stored.by == self.name;
        let is_for_it = is_own && !self.of_project && stored.by.is_none();
        self.has_keys || is_by_it || is_for_it
    }
}

/// Removes from a `provider` entry the secrets that it shares with the user's entry. Headers may be secret under any name.
pub(crate) fn without_secrets_of(users: &Value, entry: &Value) -> Value {
    without(users, entry, false)
}

fn without(users: &Value, entry: &Value, are_headers: bool) -> Value {
    let (Value::Object(users), Value::Object(fields)) = (users, entry) else {
        return entry.clone();
    };
    let mut left = Object::new();
    for (key, value) in fields {
        let Some(known) = users.get(key) else {
            left.insert(key.clone(), value.clone());
            continue;
        };
        let may_be = are_headers || is_secret_name(key);
        if known != value || known.is_object() || !may_be {
            left.insert(key.clone(), without(known, value, key == "headers"));
        }
    }
    Value::Object(left)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_credential_is_for_the_plugin_whose_login_stored_it() {
        for (by, is_own, of_project, has_keys, want) in [
            (Some("p"), false, true, false, true),
            (Some("q"), false, false, false, false),
            (Some("q"), true, false, false, false),
            (Some("q"), true, true, true, true),
            (None, false, false, false, false),
            (None, false, false, true, true),
            (None, true, false, false, true),
            (None, true, true, false, false),
        ] {
            let stored = Stored {
                provider: "own".into(),
                credential: outrigger_protocol::auth::Credential::key("k"),
                origin: crate::credentials::Origin::Own,
                by: by.map(str::to_owned),
            };
            let speaker = Speaker {
                plugin: "plugin".into(),
                name: Some("p".into()),
                has_keys,
                of_project,
            };
            let may = speaker.may_have(&stored, is_own);
            assert_eq!(may, want, "{by:?} {is_own} {of_project} {has_keys}");
            // Without a unique name, it has stored nothing.
            let nameless = Speaker {
                name: None,
                ..speaker
            };
            assert!(has_keys || by.is_none() || !nameless.may_have(&stored, is_own));
        }
    }

    #[test]
    fn what_a_plugin_wrote_itself_stays() {
        let users = json!({
            "npm": "x", "options": { "apiKey": "k", "baseURL": "u", "headers": { "Authorization": "Bearer k", "x-app": "a" } },
            "models": { "m": { "headers": { "x-api-key": "k" }, "limit": { "output": 1 } } },
        });
        assert_eq!(
            without_secrets_of(&users, &users),
            json!({
                "npm": "x", "options": { "baseURL": "u", "headers": {} },
                "models": { "m": { "headers": {}, "limit": { "output": 1 } } },
            })
        );
        let own = json!({ "options": { "apiKey": "own", "token": "t" }, "models": {} });
        assert_eq!(without_secrets_of(&users, &own), own);
        assert_eq!(without_secrets_of(&json!(null), &own), own);
    }
}

//! Credentials of providers, and the login methods of plugins.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A credential, in the form of OpenCode's `auth.json` and of `PUT /auth/{id}`. Its `Debug` output contains no secrets.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Credential {
    /// Tokens of an OAuth login. Only the plugin that owns the provider's authentication can use them.
    Oauth {
        /// Token that gets new access tokens.
        refresh: String,
        /// Token for requests.
        access: String,
        /// When `access` expires, in milliseconds since the Unix epoch.
        expires: u64,
        /// The account, if a service has several.
        #[serde(default, rename = "accountId", skip_serializing_if = "Option::is_none")]
        account_id: Option<String>,
        /// URL of a company's own installation.
        #[serde(
            default,
            rename = "enterpriseUrl",
            skip_serializing_if = "Option::is_none"
        )]
        enterprise_url: Option<String>,
    },
    /// A key.
    Api {
        /// The key.
        key: String,
        /// The answers to the login's prompts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<BTreeMap<String, String>>,
    },
    /// A token from a company's own server, for an environment variable.
    Wellknown {
        /// The variable.
        key: String,
        /// Its value.
        token: String,
    },
}

impl Credential {
    /// Creates a plain key.
    #[must_use]
    pub fn key(key: impl Into<String>) -> Self {
        Self::Api {
            key: key.into(),
            metadata: None,
        }
    }

    /// Converts the result of a plugin's login, in OpenCode's form; `typed`: the key and the answers that the user gave.
    /// `None`: no credential.
    #[must_use]
    pub fn of_login(
        result: &Value,
        typed: Option<(&str, BTreeMap<String, String>)>,
    ) -> Option<Self> {
        let text = |key: &str| result.get(key).and_then(Value::as_str).map(str::to_owned);
        if text("type")? != "success" {
            return None;
        }
        if let Some(refresh) = text("refresh") {
            return Some(Self::Oauth {
                refresh,
                access: text("access").unwrap_or_default(),
                expires: whole(result.get("expires")),
                account_id: text("accountId"),
                enterprise_url: text("enterpriseUrl"),
            });
        }
        let (key, metadata) = typed.unzip();
        let mut metadata = metadata.unwrap_or_default();
        let more = result
            .get("metadata")
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        metadata.extend(more.filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned()))));
        Some(Self::Api {
            key: text("key").or(key.map(str::to_owned))?,
            metadata: Some(metadata).filter(|it| !it.is_empty()),
        })
    }

    /// Returns `oauth`, `api` or `wellknown`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Oauth { .. } => "oauth",
            Self::Api { .. } => "api",
            Self::Wellknown { .. } => "wellknown",
        }
    }

    /// Returns every text in it that must not be shown.
    #[must_use]
    pub fn secrets(&self) -> Vec<&str> {
        match self {
            Self::Oauth {
                refresh, access, ..
            } => vec![refresh, access],
            Self::Api { key, .. } => vec![key],
            Self::Wellknown { token, .. } => vec![token],
        }
    }
}

/// Converts a time from JavaScript, which may have a fraction.
fn whole(value: Option<&Value>) -> u64 {
    let value = value.and_then(Value::as_f64).unwrap_or(0.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a time in milliseconds, and saturating"
    )]
    let whole = value as u64;
    whole
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Credential").field(&self.kind()).finish()
    }
}

/// A login method of a provider (`GET /provider/auth`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthMethod {
    /// `oauth` or `api`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Display name.
    pub label: String,
    /// The questions before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<Vec<AuthPrompt>>,
}

/// The login methods of a provider.
#[derive(Clone, Debug)]
pub struct LoginMethods {
    /// The plugin that contributes them and gets the user's input; `None`: built in.
    pub plugin: Option<String>,
    /// The plugin comes from the project, so the user may not know it.
    pub of_project: bool,
    /// The methods with their owner's labels.
    pub methods: Vec<AuthMethod>,
}

impl LoginMethods {
    /// Returns each method's label in a list; for a project's plugin it names the plugin.
    #[must_use]
    pub fn labels(&self) -> Vec<String> {
        let of_project = self.plugin.as_ref().filter(|_| self.of_project);
        let label = |method: &AuthMethod| match of_project {
            Some(plugin) => format!(
                "{} (by {plugin}, a plugin of this project, which gets it)",
                method.label
            ),
            None => method.label.clone(),
        };
        self.methods.iter().map(label).collect()
    }

    /// Returns the methods with these labels.
    #[must_use]
    pub fn labelled(&self) -> Vec<AuthMethod> {
        self.methods
            .iter()
            .zip(self.labels())
            .map(|(method, label)| AuthMethod {
                label,
                ..method.clone()
            })
            .collect()
    }
}

/// A question before a login. Functions of the plugin (`validate`, `condition`) stay in its process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthPrompt {
    /// `text` or `select`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Name of the answer.
    pub key: String,
    /// The question.
    pub message: String,
    /// An example (`text`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<String>,
    /// The choices (`select`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<AuthOption>>,
    /// Asked only if an earlier answer matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<AuthRule>,
}

/// A choice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthOption {
    /// Display name.
    pub label: String,
    /// Its value.
    pub value: String,
    /// Further explanation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A condition on an earlier answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthRule {
    /// The name of the earlier answer.
    pub key: String,
    /// `eq` or `neq`.
    pub op: String,
    /// The value to compare with.
    pub value: String,
}

impl AuthRule {
    /// Returns whether the question is asked, as in OpenCode: never while the earlier one is unanswered.
    #[must_use]
    pub fn holds(&self, answers: &BTreeMap<String, String>) -> bool {
        answers
            .get(&self.key)
            .is_some_and(|answer| (*answer == self.value) == (self.op == "eq"))
    }
}

/// A login in progress (`POST /provider/{id}/oauth/authorize`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authorization {
    /// The URL for the user.
    pub url: String,
    /// `auto`: the plugin detects the end itself; `code`: the user enters a code.
    pub method: String,
    /// Instructions for the user.
    pub instructions: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_have_the_form_of_opencode_and_show_nothing() {
        for text in [
            r#"{"type":"api","key":"k-1"}"#,
            r#"{"type":"api","key":"k-1","metadata":{"region":"eu"}}"#,
            r#"{"type":"oauth","refresh":"k-1","access":"k-2","expires":1,"accountId":"a"}"#,
            r#"{"type":"wellknown","key":"NAME","token":"k-1"}"#,
        ] {
            let credential: Credential = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&credential).unwrap(), text);
            assert!(!format!("{credential:?}").contains("k-"));
            assert!(credential.secrets().iter().all(|s| s.starts_with("k-")));
        }
    }

    #[test]
    fn a_question_waits_for_the_one_it_depends_on() {
        let rule = |op: &str| AuthRule {
            key: "kind".into(),
            op: op.into(),
            value: "own".into(),
        };
        let answers = |value: &str| BTreeMap::from([("kind".to_owned(), value.to_owned())]);
        for (op, answers, want) in [
            ("eq", answers("own"), true),
            ("eq", answers("other"), false),
            ("neq", answers("other"), true),
            ("neq", answers("own"), false),
            ("neq", BTreeMap::new(), false),
        ] {
            assert_eq!(rule(op).holds(&answers), want, "{op} {answers:?}");
        }
    }
}

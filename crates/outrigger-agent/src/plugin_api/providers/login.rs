//! Logins at providers, by the methods that plugins bring: what `outrigger auth` and the routes under `/provider` do.

use std::collections::BTreeMap;
use std::sync::Arc;

use outrigger_models::CredentialError;
use outrigger_plugins::{AuthHook, Begun, Flow, PluginError};
use outrigger_protocol::auth::{AuthMethod, Authorization, Credential};
use outrigger_workspace::sync::lock;
use serde_json::{Value, json};

use crate::state::Agent;
use crate::state::logins::LoginAt;

/// Why a login failed.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// No plugin brings such a login.
    #[error("provider `{provider}` has no login method {method}")]
    NoMethod {
        /// Provider.
        provider: String,
        /// Index of the method.
        method: usize,
    },
    /// It was not begun.
    #[error("no login to provider `{0}` has been begun")]
    NotBegun(String),
    /// It ends with a code that the user brings, and none came.
    #[error("the login to provider `{0}` needs the code that its page shows")]
    NoCode(String),
    /// A question has another answer.
    #[error("{message}")]
    Answer {
        /// Name of the answer.
        field: String,
        /// What is wrong with it.
        message: String,
    },
    /// The plugin says that it came to nothing.
    #[error("the login to provider `{provider}` came to nothing{}", reason.as_ref().map(|r| format!(": {r}")).unwrap_or_default())]
    Failed {
        /// Provider.
        provider: String,
        /// What the plugin says of it.
        reason: Option<String>,
    },
    /// The plugin threw, hung or died.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// The credential cannot be stored.
    #[error(transparent)]
    Store(#[from] CredentialError),
}

impl LoginError {
    /// Stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoMethod { .. } => "auth.no_method",
            Self::NotBegun(_) => "auth.not_begun",
            Self::NoCode(_) => "auth.no_code",
            Self::Answer { .. } => "auth.answer",
            Self::Failed { .. } => "auth.failed",
            Self::Plugin(e) => e.code(),
            Self::Store(e) => e.code(),
        }
    }

    /// OpenCode's name for it, as routes answer it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::NotBegun(_) => "ProviderAuthOauthMissing",
            Self::NoCode(_) => "ProviderAuthOauthCodeMissing",
            Self::Failed { .. } | Self::Plugin(_) => "ProviderAuthOauthCallbackFailed",
            Self::Answer { .. } => "ProviderAuthValidationFailed",
            Self::NoMethod { .. } | Self::Store(_) => "BadRequest",
        }
    }
}

/// The ways to log in at a provider that a plugin brings.
#[derive(Clone, Debug)]
pub struct LoginMethods {
    /// The plugin, which gets what the user gives.
    pub plugin: String,
    /// A project brings it, so that the user may not know of it.
    pub of_project: bool,
    /// The ways, as the plugin calls them.
    pub methods: Vec<AuthMethod>,
}

impl LoginMethods {
    /// What each way is called in a list: that of a project's plugin with whose it is.
    #[must_use]
    pub fn labels(&self) -> Vec<String> {
        let label = |method: &AuthMethod| match self.of_project {
            true => format!(
                "{} (by {}, a plugin of this project, which gets it)",
                method.label, self.plugin
            ),
            false => method.label.clone(),
        };
        self.methods.iter().map(label).collect()
    }

    /// The ways with these labels.
    #[must_use]
    pub fn labelled(&self) -> Vec<AuthMethod> {
        let all = self.methods.iter().zip(self.labels());
        let all = all.map(|(method, label)| AuthMethod {
            label,
            ..method.clone()
        });
        all.collect()
    }
}

impl Agent {
    /// The ways to log in that plugins bring, by provider. Those of the user's own go before those of a project.
    #[must_use]
    pub fn auth_methods(&self) -> BTreeMap<String, LoginMethods> {
        let hooks = self.inner.plugins.auth_hooks().into_iter();
        let methods = |hook: AuthHook| {
            let methods = LoginMethods {
                plugin: hook.plugin,
                of_project: hook.of_project,
                methods: hook.methods,
            };
            (hook.provider, methods)
        };
        hooks.map(methods).collect()
    }

    fn hook(&self, provider: &str, method: usize) -> Result<(AuthHook, AuthMethod), LoginError> {
        let missing = || LoginError::NoMethod {
            provider: provider.to_owned(),
            method,
        };
        let hook = self.inner.auth_hook(provider).ok_or_else(missing)?;
        let found = hook.methods.get(method).cloned().ok_or_else(missing)?;
        Ok((hook, found))
    }

    /// Whether a question of a login is put after these answers.
    ///
    /// # Errors
    /// [`LoginError::NoMethod`], [`LoginError::Plugin`].
    pub async fn is_asked(
        &self,
        provider: &str,
        method: usize,
        prompt: usize,
        answers: &BTreeMap<String, String>,
    ) -> Result<bool, LoginError> {
        let (hook, found) = self.hook(provider, method)?;
        let prompts = found.prompts.unwrap_or_default();
        let rule = prompts.get(prompt).and_then(|p| p.when.as_ref());
        if rule.is_some_and(|rule| !rule.holds(answers)) {
            return Ok(false);
        }
        Ok(hook.prompt(method, prompt, answers, None).await?.asked)
    }

    /// What is wrong with an answer to a question of a login.
    ///
    /// # Errors
    /// [`LoginError::NoMethod`], [`LoginError::Plugin`].
    pub async fn check_answer(
        &self,
        provider: &str,
        method: usize,
        prompt: usize,
        value: &str,
    ) -> Result<Option<String>, LoginError> {
        let (hook, _) = self.hook(provider, method)?;
        let none = BTreeMap::new();
        Ok(hook
            .prompt(method, prompt, &none, Some(value))
            .await?
            .problem)
    }

    /// Begins a login. `None`: the method has nothing to begin with (it wants a key).
    ///
    /// # Errors
    /// [`LoginError`].
    pub async fn authorize(
        &self,
        provider: &str,
        method: usize,
        answers: Option<BTreeMap<String, String>>,
    ) -> Result<Option<Authorization>, LoginError> {
        let (hook, found) = self.hook(provider, method)?;
        if found.kind != "oauth" {
            return Ok(None);
        }
        for (at, prompt) in found.prompts.iter().flatten().enumerate() {
            let given = answers
                .as_ref()
                .and_then(|answers| answers.get(&prompt.key));
            let Some(value) = given.filter(|_| prompt.kind == "text") else {
                continue;
            };
            if let Some(message) = self.check_answer(provider, method, at, value).await? {
                return Err(LoginError::Answer {
                    field: prompt.key.clone(),
                    message,
                });
            }
        }
        match hook.authorize(method, answers).await? {
            Begun::Waits(flow) => {
                let begun = flow.begun.clone();
                lock(&self.inner.logins).insert(provider.to_owned(), Arc::new(flow));
                self.inner.waiting_logins.begin(LoginAt::Provider, provider);
                Ok(Some(begun))
            }
            Begun::Over(_) => Ok(None),
        }
    }

    /// Ends a login that [`Agent::authorize`] began, and stores its credential. For `auto` this waits for the user.
    ///
    /// # Errors
    /// [`LoginError`].
    pub async fn finish_login(
        &self,
        provider: &str,
        code: Option<String>,
    ) -> Result<(), LoginError> {
        let flow: Option<Arc<Flow>> = lock(&self.inner.logins).get(provider).cloned();
        let flow = flow.ok_or_else(|| LoginError::NotBegun(provider.to_owned()))?;
        let wants_code = flow.begun.method == "code";
        if wants_code && code.as_ref().is_none_or(String::is_empty) {
            return Err(LoginError::NoCode(provider.to_owned()));
        }
        let result = flow.finish(code.filter(|_| wants_code)).await?;
        self.store_login((provider, flow.plugin()), &result, None)
            .await
    }

    /// Logs in with a key, by a method of a plugin that may make another one of it.
    ///
    /// # Errors
    /// [`LoginError`].
    pub async fn login_with_key(
        &self,
        provider: &str,
        method: usize,
        answers: BTreeMap<String, String>,
        key: &str,
    ) -> Result<(), LoginError> {
        let (hook, _) = self.hook(provider, method)?;
        let result = match hook.authorize(method, Some(answers.clone())).await? {
            Begun::Over(Value::Null) | Begun::Waits(_) => json!({ "type": "success" }),
            Begun::Over(result) => result,
        };
        self.store_login((provider, &hook.plugin), &result, Some((key, answers)))
            .await
    }

    /// Stores what a login came to. A plugin may name another provider than its own, as in OpenCode, where nobody else
    /// has stored a credential.
    async fn store_login(
        &self,
        (provider, plugin): (&str, &str),
        result: &Value,
        typed: Option<(&str, BTreeMap<String, String>)>,
    ) -> Result<(), LoginError> {
        let text = |key: &str| result.get(key).and_then(Value::as_str);
        let failed = || LoginError::Failed {
            provider: provider.to_owned(),
            reason: text("error").map(str::to_owned),
        };
        if text("type") != Some("success") {
            return Err(failed());
        }
        let credential = if text("refresh").is_some() {
            Credential::Oauth {
                refresh: text("refresh").unwrap_or_default().to_owned(),
                access: text("access").unwrap_or_default().to_owned(),
                expires: whole(result.get("expires")),
                account_id: text("accountId").map(str::to_owned),
                enterprise_url: text("enterpriseUrl").map(str::to_owned),
            }
        } else {
            let (key, mut metadata) = typed.unzip();
            let more = result.get("metadata").and_then(Value::as_object);
            let more = more.into_iter().flatten();
            let more = more.filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())));
            metadata.get_or_insert_default().extend(more);
            Credential::Api {
                key: text("key").or(key).ok_or_else(failed)?.to_owned(),
                metadata: metadata.filter(|m| !m.is_empty()),
            }
        };
        let named = text("provider").unwrap_or(provider);
        if named != provider && !self.inner.may_replace_credential(plugin, named) {
            return Err(LoginError::Failed {
                provider: provider.to_owned(),
                reason: Some(format!(
                    "it wants to replace the credential of `{named}`, which another login stored; `outrigger auth logout` forgets that"
                )),
            });
        }
        self.set_credential(named, &credential, Some(plugin))
            .await?;
        lock(&self.inner.logins).remove(provider);
        self.inner.waiting_logins.end(LoginAt::Provider, provider);
        Ok(())
    }
}

/// A time that JavaScript made may have a fraction.
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

//! Logins at providers, by methods of plugins or built-in ones: the implementation of `outrigger auth` and the routes under
//! `/provider`.

use std::collections::BTreeMap;
use std::sync::Arc;

use outrigger_models::{CredentialError, login_methods, wrong_login_answer};
use outrigger_plugins::{AuthHook, Begun, PluginError};
use outrigger_protocol::auth::{AuthMethod, Authorization, Credential, LoginMethods};
use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::id::PluginId;
use outrigger_stdx::sync::lock;
use serde_json::{Value, json};

use crate::state::Agent;
use outrigger_session_state::logins::{LoginAt, PendingLogin};

/// Why a login failed.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The login method does not exist.
    #[error("provider `{provider}` has no login method {method}")]
    NoMethod {
        /// Id of the provider.
        provider: String,
        /// Index of the method.
        method: usize,
    },
    /// No login is in progress.
    #[error("no login to provider `{0}` is in progress")]
    NotBegun(String),
    /// The login needs a code from the user, and none was given.
    #[error("the login to provider `{0}` needs the code that its page shows")]
    NoCode(String),
    /// An answer is invalid.
    #[error("{message}")]
    Answer {
        /// Name of the field.
        field: String,
        /// What is wrong with it.
        message: String,
    },
    /// The login failed.
    #[error("the login to provider `{provider}` failed{}", reason.as_ref().map(|r| format!(": {r}")).unwrap_or_default())]
    Failed {
        /// Id of the provider.
        provider: String,
        /// Reason given by the plugin or the server.
        reason: Option<String>,
    },
    /// The plugin threw, hung or died.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// The credential cannot be stored.
    #[error(transparent)]
    Store(#[from] CredentialError),
}

impl Diagnose for LoginError {
    fn code(&self) -> &'static str {
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

    fn hint(&self) -> Option<String> {
        match self {
            Self::NotBegun(provider) => Some(format!(
                "start one with `outrigger auth login -p {provider}`"
            )),
            Self::Plugin(error) => error.hint(),
            _ => None,
        }
    }
}

impl LoginError {
    /// Returns OpenCode's name for the error, used by routes.
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

impl Agent {
    /// Returns the login methods by provider: methods of plugins, the user's before a project's, or the built-in ones.
    #[must_use]
    pub fn auth_methods(&self) -> BTreeMap<String, LoginMethods> {
        let built_in = login_methods().into_iter().map(|(provider, methods)| {
            let methods = LoginMethods {
                plugin: None,
                of_project: false,
                methods,
            };
            (provider, methods)
        });
        let mut all: BTreeMap<String, LoginMethods> = built_in.collect();
        for hook in self.state.plugins.host.auth_hooks() {
            let methods = LoginMethods {
                plugin: Some(hook.plugin),
                of_project: hook.of_project,
                methods: hook.methods,
            };
            // A plugin that only loads stored credentials provides no login method.
            if !methods.methods.is_empty() || !all.contains_key(&hook.provider) {
                all.insert(hook.provider, methods);
            }
        }
        for (provider, methods) in self.keys_of_plugins() {
            all.entry(provider).or_insert(methods);
        }
        all
    }

    /// Returns methods for providers whose plugin provides no login: the plugin gets the key that the user types.
    fn keys_of_plugins(&self) -> BTreeMap<String, LoginMethods> {
        let state = &self.state;
        let own = state.plugins.host.providers().into_iter();
        let own = own.filter(|own| state.speaks_for(&own.plugin, &own.declared.id));
        let methods = own.map(|own| {
            let key = AuthMethod {
                kind: "api".to_owned(),
                label: "API key".to_owned(),
                prompts: None,
            };
            let methods = LoginMethods {
                of_project: state.plugins.host.is_of_project(&own.plugin),
                plugin: Some(own.plugin),
                methods: vec![key],
            };
            (own.declared.id, methods)
        });
        methods.collect()
    }

    /// Returns a method and the hook of the plugin that provides it; `None`: it is built in or only needs a key.
    fn method(
        &self,
        provider: &str,
        method: usize,
    ) -> Result<(Option<AuthHook>, AuthMethod), LoginError> {
        let missing = || LoginError::NoMethod {
            provider: provider.to_owned(),
            method,
        };
        let found = self.auth_methods().remove(provider).ok_or_else(missing)?;
        // A plugin whose provider only needs a key has no hook.
        let hook = found
            .plugin
            .and_then(|_| self.state.plugins.auth_hook(provider))
            .filter(|hook| !hook.methods.is_empty());
        let methods = hook.as_ref().map_or(&found.methods, |hook| &hook.methods);
        let found = methods.get(method).cloned().ok_or_else(missing)?;
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
        let (hook, found) = self.method(provider, method)?;
        let prompts = found.prompts.unwrap_or_default();
        let rule = prompts.get(prompt).and_then(|p| p.when.as_ref());
        if rule.is_some_and(|rule| !rule.holds(answers)) {
            return Ok(false);
        }
        match hook {
            Some(hook) => Ok(hook.prompt(method, prompt, answers, None).await?.asked),
            None => Ok(true),
        }
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
        let (hook, found) = self.method(provider, method)?;
        let Some(hook) = hook else {
            let prompts = found.prompts.unwrap_or_default();
            let asked = prompts.get(prompt);
            return Ok(asked.and_then(|asked| wrong_login_answer(provider, &asked.key, value)));
        };
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
        let (hook, found) = self.method(provider, method)?;
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
        // An earlier login may hold the port that this one needs.
        lock(&self.state.logins.pending).remove(provider);
        let begun = match hook {
            Some(hook) => match hook.authorize(method, answers).await? {
                Begun::Waits(flow) => Some(PendingLogin::Plugin(flow)),
                Begun::Over(_) => None,
            },
            None => {
                let answers = answers.unwrap_or_default();
                let begun = self.state.models.begin_login(provider, method, &answers);
                let begun = begun.await.map_err(|reason| failed(provider, reason))?;
                begun.map(PendingLogin::BuiltIn)
            }
        };
        Ok(begun.map(|login| {
            let begun = login.begun().clone();
            lock(&self.state.logins.pending).insert(provider.to_owned(), Arc::new(login));
            self.state.logins.waiting.begin(LoginAt::Provider, provider);
            begun
        }))
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
        let login = lock(&self.state.logins.pending).get(provider).cloned();
        let login = login.ok_or_else(|| LoginError::NotBegun(provider.to_owned()))?;
        let wants_code = login.begun().method == "code";
        if wants_code && code.as_ref().is_none_or(String::is_empty) {
            return Err(LoginError::NoCode(provider.to_owned()));
        }
        match &*login {
            PendingLogin::Plugin(flow) => {
                let result = flow.finish(code.filter(|_| wants_code)).await?;
                self.store_login(provider, flow.plugin(), &result, None)
                    .await
            }
            PendingLogin::BuiltIn(waiting) => {
                let finished = waiting.finish().await;
                self.login_ended(provider);
                let credential = finished.map_err(|reason| failed(provider, reason))?;
                Ok(self.set_credential(provider, &credential, None).await?)
            }
        }
    }

    fn login_ended(&self, provider: &str) {
        lock(&self.state.logins.pending).remove(provider);
        self.state.logins.waiting.end(LoginAt::Provider, provider);
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
        let (hook, _) = self.method(provider, method)?;
        let Some(hook) = hook else {
            let key = Credential::key(key);
            let by = self.auth_methods().remove(provider);
            let by = by.and_then(|it| it.plugin);
            return Ok(self.set_credential(provider, &key, by.as_deref()).await?);
        };
        let result = match hook.authorize(method, Some(answers.clone())).await? {
            Begun::Over(Value::Null) | Begun::Waits(_) => json!({ "type": "success" }),
            Begun::Over(result) => result,
        };
        self.store_login(provider, &hook.plugin, &result, Some((key, answers)))
            .await
    }

    /// Stores the result of a login. As in OpenCode, a plugin with the `model` grant may store a credential for another provider
    /// than its own: without it, the plugin must not choose whose account pays.
    async fn store_login(
        &self,
        provider: &str,
        plugin: &str,
        result: &Value,
        typed: Option<(&str, BTreeMap<String, String>)>,
    ) -> Result<(), LoginError> {
        let text = |key: &str| result.get(key).and_then(Value::as_str);
        let credential = Credential::of_login(result, typed).ok_or_else(|| LoginError::Failed {
            provider: provider.to_owned(),
            reason: text("error").map(str::to_owned),
        })?;
        let named = text("provider").unwrap_or(provider);
        if named != provider && !self.state.plugins.may_have_keys(plugin) {
            let id = PluginId(plugin.to_owned());
            let name = self.state.plugins.host.grant_name(&id);
            let name = name.as_deref().unwrap_or(plugin);
            return Err(LoginError::Failed {
                provider: provider.to_owned(),
                reason: Some(format!(
                    "plugin {plugin} tried to store a credential for `{named}` during a login to `{provider}`; allow it with `outrigger plugin grant {name} model`"
                )),
            });
        }
        self.set_credential(named, &credential, Some(plugin))
            .await?;
        self.login_ended(provider);
        Ok(())
    }
}

fn failed(provider: &str, reason: String) -> LoginError {
    LoginError::Failed {
        provider: provider.to_owned(),
        reason: Some(reason),
    }
}

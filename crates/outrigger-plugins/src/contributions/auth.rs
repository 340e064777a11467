//! Authentication and models of plugins: logins, loaders, and the `fetch` that sends a provider's requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, StreamExt as _, unfold};
use outrigger_js::{FetchBody, JsError};
use outrigger_protocol::Object;
use outrigger_protocol::auth::{AuthMethod, Credential};
use outrigger_protocol::login::{
    AuthAsk, AuthAsked, AuthBegin, AuthBegun, AuthFetch, AuthFinish, AuthFinished, AuthHead,
    AuthLoad, AuthLoaded, ModelsAnswer, ProviderAsk,
};
use outrigger_protocol::rpc::{HandlerRef, host};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Mutex;

use crate::plugin_host::PluginHost;
use crate::plugins::Plugins;
use outrigger_plugin_registry::error::PluginError;
use outrigger_plugin_supervisor::group::{Counts, Fault, Group, Live};

/// Time that a login may wait for its user. OpenCode waits forever.
const USER: Duration = Duration::from_secs(15 * 60);
/// Error code of a restarted process that does not know a `fetch`.
const ANOTHER_PROCESS: i64 = -32002;

/// Chunks of a body; the error is a text.
pub type FetchStream = BoxStream<'static, Result<bytes::Bytes, String>>;

/// The `auth` object of a plugin. Remains valid when the plugin's process restarts.
#[derive(Clone)]
pub struct AuthHook {
    pub(crate) inner: Arc<PluginHost>,
    pub(crate) index: usize,
    /// Id of the plugin.
    pub plugin: String,
    /// Id of the provider.
    pub provider: String,
    /// The plugin is from a project.
    pub of_project: bool,
    /// It has a `loader`.
    pub has_loader: bool,
    /// Ways to log in.
    pub methods: Vec<AuthMethod>,
}

/// The `provider` object of a plugin.
#[derive(Clone)]
pub struct ProviderHook {
    pub(crate) inner: Arc<PluginHost>,
    pub(crate) index: usize,
    /// Id of the plugin.
    pub plugin: String,
    /// Id of the provider.
    pub provider: String,
}

impl std::fmt::Debug for AuthHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthHook")
            .field("plugin", &self.plugin)
            .field("provider", &self.provider)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ProviderHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProviderHook")
            .field("plugin", &self.plugin)
            .field("provider", &self.provider)
            .finish_non_exhaustive()
    }
}

/// Result of a loader.
pub struct LoadedAuth {
    /// Options for the provider.
    pub options: Option<Object>,
    /// Its `fetch`.
    pub fetch: Option<PluginFetch>,
}

/// A login that waits for its user.
pub struct Flow {
    hook: AuthHook,
    live: Arc<Live>,
    group: Arc<Group>,
    number: u64,
    /// URL for the user, with instructions.
    pub begun: outrigger_protocol::auth::Authorization,
}

impl Flow {
    /// Returns the plugin of the login.
    #[must_use]
    pub fn plugin(&self) -> &str {
        &self.hook.plugin
    }
}

/// Result of `authorize`.
pub enum Begun {
    /// The user must act.
    Waits(Flow),
    /// `{type: "success", key, …}` or `{type: "failed"}`; null if the method has no `authorize`.
    Over(Value),
}

impl Plugins {
    /// Returns the `auth` objects: those of project plugins before the user's, each in load order. If two handle one
    /// provider, the later one is used, as in OpenCode, so no project can replace a user plugin.
    #[must_use]
    pub fn auth_hooks(&self) -> Vec<AuthHook> {
        let hook = |(index, plugin, auth): (usize, String, outrigger_protocol::login::AuthHook)| {
            AuthHook {
                inner: Arc::clone(&self.0),
                index,
                of_project: self.0.registry.with(index, |plugin| plugin.local) == Some(true),
                plugin,
                provider: auth.provider,
                has_loader: auth.loader,
                methods: auth.methods,
            }
        };
        let all = self.0.registry.instances(|i| i.auth.clone());
        let mut all: Vec<AuthHook> = all.into_iter().map(hook).collect();
        // A project's plugin cannot take over a login of a user plugin.
        all.sort_by_key(|hook| !hook.of_project);
        all
    }

    /// Returns the `provider` objects, in the order of [`Plugins::auth_hooks`].
    #[must_use]
    pub fn provider_hooks(&self) -> Vec<ProviderHook> {
        let hook = |(index, plugin, provider)| ProviderHook {
            inner: Arc::clone(&self.0),
            index,
            plugin,
            provider,
        };
        let all = self.0.registry.instances(|i| i.provider.clone());
        let mut all: Vec<ProviderHook> = all.into_iter().map(hook).collect();
        all.sort_by_key(|hook| !self.is_of_project(&hook.plugin));
        all
    }
}

/// A plugin's process and its hooks object there.
pub(crate) struct PluginHandle {
    pub(crate) group: Arc<Group>,
    pub(crate) live: Arc<Live>,
    pub(crate) handler: HandlerRef,
}

fn failed(plugin: &str, what: &str, code: &'static str, message: impl ToString) -> PluginError {
    PluginError::Auth {
        plugin: plugin.to_owned(),
        what: what.to_owned(),
        code,
        message: message.to_string(),
    }
}

pub(crate) async fn place(
    inner: &Arc<PluginHost>,
    index: usize,
    plugin: &str,
    what: &str,
    is: impl Fn(&outrigger_protocol::rpc::Instance) -> bool,
) -> Result<PluginHandle, PluginError> {
    let lost = |why: String| failed(plugin, what, "plugin.auth_lost", why);
    let (group, live) = inner.live(index).await.map_err(lost)?;
    let handler = inner
        .registry
        .handler(index, is)
        .ok_or_else(|| lost("it no longer brings this".to_owned()))?;
    Ok(PluginHandle {
        group,
        live,
        handler,
    })
}

/// Sends a request. If the plugin does not answer, its process is killed: nothing else would end the call.
async fn ask<T: DeserializeOwned>(
    group: &Arc<Group>,
    live: &Live,
    plugin: &str,
    method: &'static str,
    params: &(impl Serialize + Sync),
    deadline: Duration,
) -> Result<T, PluginError> {
    match live
        .until_gone(live.process.ask(method, params, deadline))
        .await
    {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error @ JsError::CallTimeout { .. })) => {
            if group.is_unusable_after(&error) {
                give_up(group, live, format!("{method} of {plugin}: {error}"));
            }
            let seconds = deadline.as_secs_f64();
            Err(failed(
                plugin,
                method,
                "plugin.auth_timeout",
                format!("no answer within {seconds} s"),
            ))
        }
        Ok(Err(error)) => {
            if error.is_fatal() {
                give_up(group, live, format!("{method} of {plugin}: {error}"));
            }
            Err(failed(plugin, method, "plugin.auth", error))
        }
        Err(fault) => Err(failed(plugin, method, "plugin.auth_lost", fault.cause)),
    }
}

// There is no breaker for these calls, so each failure counts towards the restart limit.
fn give_up(group: &Arc<Group>, live: &Live, cause: String) {
    let fault = Fault {
        cause,
        culprit: group.sole_suspect(&live.process.suspects()),
        counts: Counts::Crash,
    };
    group.give_up(live.generation, fault);
}

impl AuthHook {
    async fn place(&self, what: &str) -> Result<PluginHandle, PluginError> {
        let is = |i: &outrigger_protocol::rpc::Instance| {
            i.auth.as_ref().is_some_and(|a| a.provider == self.provider)
        };
        place(&self.inner, self.index, &self.plugin, what, is).await
    }

    fn slow(&self) -> Duration {
        self.inner.settings.deadlines.slow
    }

    /// Calls the loader.
    ///
    /// # Errors
    /// [`PluginError::Auth`] when it throws, hangs or dies.
    pub async fn load(&self, provider: Value) -> Result<LoadedAuth, PluginError> {
        let (loaded, generation) = self.load_now(&provider).await?;
        let fetch = loaded.fetch.map(|handle| PluginFetch {
            hook: self.clone(),
            provider: Arc::new(provider),
            now: Arc::new(Mutex::new((generation, handle))),
        });
        Ok(LoadedAuth {
            options: loaded.options,
            fetch,
        })
    }

    async fn load_now(&self, provider: &Value) -> Result<(AuthLoaded, u64), PluginError> {
        let PluginHandle {
            group,
            live,
            handler,
        } = self.place(host::AUTH_LOAD).await?;
        let params = AuthLoad {
            handler,
            provider: provider.clone(),
        };
        let (plugin, slow) = (&self.plugin, self.slow());
        let loaded = ask(&group, &live, plugin, host::AUTH_LOAD, &params, slow).await?;
        Ok((loaded, live.generation))
    }

    /// Whether a question is put after these answers (`value` is `None`), or what is wrong with an answer.
    ///
    /// # Errors
    /// [`PluginError::Auth`].
    pub async fn prompt(
        &self,
        method: usize,
        prompt: usize,
        answers: &BTreeMap<String, String>,
        value: Option<&str>,
    ) -> Result<AuthAsked, PluginError> {
        let PluginHandle {
            group,
            live,
            handler,
        } = self.place(host::AUTH_PROMPT).await?;
        let params = AuthAsk {
            handler,
            method,
            prompt,
            answers: answers.clone(),
            value: value.map(str::to_owned),
        };
        let normal = self.inner.settings.deadlines.normal;
        ask(
            &group,
            &live,
            &self.plugin,
            host::AUTH_PROMPT,
            &params,
            normal,
        )
        .await
    }

    /// Begins a login. Without answers `authorize` of the plugin is called without an argument, as in OpenCode.
    ///
    /// # Errors
    /// [`PluginError::Auth`].
    pub async fn authorize(
        &self,
        method: usize,
        answers: Option<BTreeMap<String, String>>,
    ) -> Result<Begun, PluginError> {
        let PluginHandle {
            group,
            live,
            handler,
        } = self.place(host::AUTH_AUTHORIZE).await?;
        let params = AuthBegin {
            handler,
            method,
            answers,
        };
        let (plugin, slow) = (&self.plugin, self.slow());
        let begun: AuthBegun =
            ask(&group, &live, plugin, host::AUTH_AUTHORIZE, &params, slow).await?;
        let Some(number) = begun.flow else {
            return Ok(Begun::Over(begun.result.unwrap_or_default()));
        };
        Ok(Begun::Waits(Flow {
            hook: self.clone(),
            live,
            group,
            number,
            begun: outrigger_protocol::auth::Authorization {
                url: begun.url,
                method: begun.method,
                instructions: begun.instructions,
            },
        }))
    }
}

impl Flow {
    /// Waits for the end of the login: for `auto` until the user is through, for `code` until the code is exchanged.
    ///
    /// # Errors
    /// [`PluginError::Auth`].
    pub async fn finish(&self, code: Option<String>) -> Result<Value, PluginError> {
        let deadline = if code.is_some() {
            self.hook.slow()
        } else {
            USER
        };
        let params = AuthFinish {
            flow: self.number,
            code,
        };
        let done: AuthFinished = ask(
            &self.group,
            &self.live,
            &self.hook.plugin,
            host::AUTH_CALLBACK,
            &params,
            deadline,
        )
        .await?;
        Ok(done.result)
    }

    /// Returns the provider that it logs in to.
    #[must_use]
    pub fn provider(&self) -> &str {
        &self.hook.provider
    }
}

impl ProviderHook {
    /// The models that it answers instead of those of the catalog; `None` when it answers with none.
    ///
    /// # Errors
    /// [`PluginError::Auth`].
    pub async fn models(
        &self,
        provider: Value,
        auth: Option<Credential>,
    ) -> Result<Option<Object>, PluginError> {
        let is = |i: &outrigger_protocol::rpc::Instance| {
            i.provider.as_deref() == Some(self.provider.as_str())
        };
        let what = host::PROVIDER_MODELS;
        let PluginHandle {
            group,
            live,
            handler,
        } = place(&self.inner, self.index, &self.plugin, what, is).await?;
        let params = ProviderAsk {
            handler,
            provider,
            auth,
        };
        let slow = self.inner.settings.deadlines.slow;
        let answer: ModelsAnswer = ask(&group, &live, &self.plugin, what, &params, slow).await?;
        Ok(answer.models)
    }
}

/// The `fetch` of a loader. After a restart of the plugin's process, the loader is called again for a new one.
#[derive(Clone)]
pub struct PluginFetch {
    hook: AuthHook,
    provider: Arc<Value>,
    /// Generation of the process, and number of the `fetch` in it.
    now: Arc<Mutex<(u64, u64)>>,
}

impl PluginFetch {
    /// Returns the plugin's id.
    #[must_use]
    pub fn plugin(&self) -> &str {
        &self.hook.plugin
    }

    /// Sends a request; the body is read on demand. Dropping the future or the body cancels the request. There is no
    /// deadline here.
    pub fn send(
        &self,
        request: AuthFetch,
    ) -> BoxFuture<'static, Result<(AuthHead, FetchStream), String>> {
        let fetch = self.clone();
        Box::pin(async move {
            match fetch.send_once(request.clone()).await {
                Err(JsError::Plugin { code, .. }) if code == ANOTHER_PROCESS => {
                    *fetch.now.lock().await = (0, 0);
                    fetch.send_once(request).await.map_err(|e| e.to_string())
                }
                other => other.map_err(|e| e.to_string()),
            }
        })
    }

    async fn send_once(&self, mut request: AuthFetch) -> Result<(AuthHead, FetchStream), JsError> {
        let other = |message: String| JsError::Plugin {
            code: -32000,
            message,
        };
        let place = self.hook.place(host::AUTH_FETCH).await;
        let PluginHandle { live, .. } = place.map_err(|e| other(e.to_string()))?;
        {
            let mut now = self.now.lock().await;
            if now.0 != live.generation {
                let loaded = self.hook.load_now(&self.provider).await;
                let (loaded, generation) = loaded.map_err(|e| other(e.to_string()))?;
                let handle = loaded
                    .fetch
                    .ok_or_else(|| other("its loader no longer answers with a fetch".to_owned()))?;
                *now = (generation, handle);
            }
            request.handle = now.1;
        }
        let sent = live.until_gone(live.process.fetch(&request)).await;
        let (head, body) = sent.map_err(|fault| other(fault.cause))??;
        Ok((head, pieces(live, body)))
    }
}

/// Returns the body as a stream, which ends with an error when the process is killed.
fn pieces(live: Arc<Live>, body: FetchBody) -> FetchStream {
    unfold(Some((live, body)), |state| async move {
        let (live, mut body) = state?;
        match live.until_gone(body.next()).await {
            Ok(Some(Ok(bytes))) => Some((Ok(bytes), Some((live, body)))),
            Ok(Some(Err(error))) => Some((Err(error), None)),
            Ok(None) => None,
            Err(fault) => Some((Err(format!("its process was ended: {}", fault.cause)), None)),
        }
    })
    // A reader may poll once more after the end.
    .fuse()
    .boxed()
}

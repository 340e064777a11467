//! RPC messages for `auth` and `provider` objects of plugins: logins, loaders, requests through a plugin's
//! `fetch`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Object;
use crate::plugin::auth::{AuthMethod, Credential};
use crate::plugin::rpc::handler::HandlerRef;

/// The `auth` object of a hooks object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthHook {
    /// The provider.
    pub provider: String,
    /// It has a `loader`.
    #[serde(default)]
    pub loader: bool,
    /// Ways to log in.
    #[serde(default)]
    pub methods: Vec<AuthMethod>,
}

/// Calls `auth.loader`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuthLoad {
    /// The handler.
    pub handler: HandlerRef,
    /// The current provider, without keys.
    pub provider: Value,
}

/// The loader's result.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AuthLoaded {
    /// Options for the provider, without `fetch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Object>,
    /// Number of its `fetch` in this process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetch: Option<u64>,
}

/// Queries a login's question: whether it is asked after these answers, or what is wrong with this value.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthAsk {
    /// The handler.
    pub handler: HandlerRef,
    /// Index of the method.
    pub method: usize,
    /// Index of the question.
    pub prompt: usize,
    /// Answers so far.
    pub answers: BTreeMap<String, String>,
    /// The value to check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// The response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthAsked {
    /// The question is asked.
    pub asked: bool,
    /// What is wrong with the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Starts a login.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthBegin {
    /// The handler.
    pub handler: HandlerRef,
    /// Index of the method.
    pub method: usize,
    /// Answers to its questions; absent if the caller gave none, which some plugins distinguish from an empty
    /// object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<BTreeMap<String, String>>,
}

/// A login was started (`oauth`), or has completed (`api`).
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AuthBegun {
    /// Number of the login in this process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<u64>,
    /// The URL for the user.
    #[serde(default)]
    pub url: String,
    /// `auto` or `code`.
    #[serde(default)]
    pub method: String,
    /// Instructions for the user.
    #[serde(default)]
    pub instructions: String,
    /// The result of `authorize` for an `api` method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

/// Completes a login.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthFinish {
    /// Number of the login.
    pub flow: u64,
    /// The code that the user entered (`code`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// The result of its callback.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct AuthFinished {
    /// `{type: "success", …}` or `{type: "failed"}`.
    pub result: Value,
}

/// Sends a request through the `fetch` of a loader.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthFetch {
    /// Number of the `fetch`.
    pub handle: u64,
    /// HTTP method.
    pub method: String,
    /// Address.
    pub url: String,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: String,
}

/// The head of the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthHead {
    /// HTTP status.
    pub status: u16,
    /// Headers.
    pub headers: Vec<(String, String)>,
}

/// A piece of the body, or its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthChunk {
    /// Id of the `auth.fetch` request.
    pub call: u64,
    /// Bytes in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Nothing follows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub end: bool,
    /// Why it was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Allows this many more bytes to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthCredit {
    /// Id of the `auth.fetch` request.
    pub call: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A plugin requests the credential of the provider whose authentication it contributes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthGet {
    /// Plugin.
    pub plugin: String,
    /// Provider.
    pub provider: String,
}

/// Asks a `provider` object for its models.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderAsk {
    /// The handler.
    pub handler: HandlerRef,
    /// The current provider, without keys.
    pub provider: Value,
    /// The provider's credential, if the plugin owns its authentication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Credential>,
}

/// Its models by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelsAnswer {
    /// Absent if it returned none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub models: Option<Object>,
}

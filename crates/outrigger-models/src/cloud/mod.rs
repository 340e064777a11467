//! Models at a cloud provider: Azure, Amazon Bedrock, Google Vertex. The adapters implement the protocols; this module
//! determines URLs and authorization.

pub(crate) mod aws;
pub(crate) mod google;
mod place;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use outrigger_protocol::Object;
use serde_json::Value;

use crate::logins::LoginTokens;

pub(crate) use place::{fill, url};

/// The variables for URLs and authorization of a cloud.
const VARIABLES: [&str; 19] = [
    "HOME",
    "AZURE_RESOURCE_NAME",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_PROFILE",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_CONFIG_FILE",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_VERTEX_PROJECT",
    "GOOGLE_CLOUD_PROJECT",
    "GCP_PROJECT",
    "GCLOUD_PROJECT",
    "GOOGLE_VERTEX_LOCATION",
    "GOOGLE_CLOUD_LOCATION",
    "VERTEX_LOCATION",
    "CLOUDSDK_CONFIG",
];

/// A cloud provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cloud {
    Azure,
    Bedrock,
    Vertex,
}

impl Cloud {
    /// Returns the cloud of this package's, or this provider's, models.
    pub(crate) fn of(provider: &str, npm: &str) -> Option<Self> {
        let is = |id: &str, package: &str| provider == id || npm.starts_with(package);
        if is("azure", "@ai-sdk/azure") {
            Some(Self::Azure)
        } else if is("amazon-bedrock", "@ai-sdk/amazon-bedrock") {
            Some(Self::Bedrock)
        } else if is("google-vertex", "@ai-sdk/google-vertex") {
            Some(Self::Vertex)
        } else {
            None
        }
    }

    /// Returns whether a variable may contain a key, of those that the catalog names.
    pub(crate) fn is_key(self, name: &str) -> bool {
        match self {
            Self::Azure => name.ends_with("_API_KEY"),
            Self::Bedrock => name == "AWS_BEARER_TOKEN_BEDROCK",
            Self::Vertex => false,
        }
    }

    /// Returns whether there are credentials other than a key.
    pub(crate) fn is_ready(self, settings: &Settings) -> bool {
        match self {
            Self::Azure => false,
            Self::Bedrock => {
                let named = settings.variable(&["AWS_ACCESS_KEY_ID", "AWS_PROFILE"]);
                named.or_else(|| settings.option("profile")).is_some()
            }
            Self::Vertex => settings.project().is_some(),
        }
    }
}

/// A cloud's settings from the configuration and the environment. Deliberately without `Debug`: they contain keys.
#[derive(Clone, Default)]
pub(crate) struct Settings {
    options: Object,
    variables: BTreeMap<String, String>,
}

impl Settings {
    pub(crate) fn new(options: &Object, env: &BTreeMap<String, String>) -> Self {
        let known = VARIABLES.iter().filter_map(|name| {
            let value = env.get(*name)?.trim();
            (!value.is_empty()).then(|| ((*name).to_owned(), value.to_owned()))
        });
        Self {
            options: options.clone(),
            variables: known.collect(),
        }
    }

    /// Returns a text option of the provider.
    fn option(&self, name: &str) -> Option<&str> {
        let value = self.options.get(name).and_then(Value::as_str)?.trim();
        (!value.is_empty()).then_some(value)
    }

    /// Returns a file in the home folder; `None` without one: a relative name would be a file of the working directory.
    fn home_file(&self, name: &str) -> Option<PathBuf> {
        let home = Path::new(self.variable(&["HOME"])?);
        home.is_absolute().then(|| home.join(name))
    }

    /// Returns the first of these variables that is set.
    fn variable(&self, names: &[&str]) -> Option<&str> {
        names
            .iter()
            .find_map(|name| self.variables.get(*name))
            .map(String::as_str)
    }

    fn resource(&self) -> Option<&str> {
        let variable = || self.variable(&["AZURE_RESOURCE_NAME"]);
        self.option("resourceName").or_else(variable)
    }

    /// Returns the AWS region; default: OpenCode's.
    fn region(&self) -> &str {
        let variable = || self.variable(&["AWS_REGION", "AWS_DEFAULT_REGION"]);
        self.option("region")
            .or_else(variable)
            .unwrap_or("us-east-1")
    }

    fn project(&self) -> Option<&str> {
        let names = [
            "GOOGLE_VERTEX_PROJECT",
            "GOOGLE_CLOUD_PROJECT",
            "GCP_PROJECT",
            "GCLOUD_PROJECT",
        ];
        self.option("project").or_else(|| self.variable(&names))
    }

    fn location(&self, default: &'static str) -> &str {
        let names = [
            "GOOGLE_VERTEX_LOCATION",
            "GOOGLE_CLOUD_LOCATION",
            "VERTEX_LOCATION",
        ];
        let variable = || self.variable(&names);
        self.option("location").or_else(variable).unwrap_or(default)
    }
}

/// The URL and authorization of a provider's models in a cloud. Empty for other providers.
#[derive(Default)]
pub(crate) struct Access {
    pub(crate) settings: Settings,
    /// The authorization of a request without a key.
    pub(crate) authority: Authority,
    /// Whether it is available.
    pub(crate) is_ready: bool,
}

impl Access {
    /// A key takes precedence over everything else. A built-in login has its own service, which is not a cloud.
    pub(crate) fn of(
        cloud: Option<Cloud>,
        login: Option<&Arc<LoginTokens>>,
        options: &Object,
        env: &BTreeMap<String, String>,
        has_key: bool,
    ) -> Self {
        if let Some(login) = login {
            return Self {
                authority: Authority::Login(Arc::clone(login)),
                is_ready: true,
                ..Self::default()
            };
        }
        let Some(cloud) = cloud else {
            return Self::default();
        };
        let settings = Settings::new(options, env);
        let authority = match cloud {
            _ if has_key => Authority::Headers,
            Cloud::Azure => Authority::Headers,
            Cloud::Bedrock => Authority::Aws(Arc::new(aws::Signer::new(settings.clone()))),
            Cloud::Vertex => Authority::Google(Arc::new(google::Tokens::new(settings.clone()))),
        };
        Self {
            is_ready: cloud.is_ready(&settings),
            authority,
            settings,
        }
    }
}

/// The authorization that is added directly before each attempt of a request.
#[derive(Clone, Default)]
pub(crate) enum Authority {
    /// The existing headers.
    #[default]
    Headers,
    /// A signature with AWS keys.
    Aws(Arc<aws::Signer>),
    /// A Google token.
    Google(Arc<google::Tokens>),
    /// The token of a built-in login.
    Login(Arc<LoginTokens>),
}

/// Why a request cannot be authorized.
#[derive(Debug)]
pub(crate) enum Unsigned {
    /// The configuration is invalid.
    Config(String),
    /// The user must log in, or configure what the login is for.
    Login(String),
    /// A server is temporarily unavailable.
    Passing(String),
}

impl Authority {
    /// Adds the authorization to this request.
    ///
    /// # Errors
    /// The reason, without secrets.
    pub(crate) async fn sign(
        &self,
        url: &str,
        headers: &mut HeaderMap,
        body: &Bytes,
    ) -> Result<(), Unsigned> {
        match self {
            Self::Headers => Ok(()),
            Self::Aws(signer) => signer.sign(url, headers, body).map_err(Unsigned::Config),
            Self::Google(tokens) => tokens.put(url, headers).await.map_err(Unsigned::Config),
            Self::Login(tokens) => tokens.put(url, headers).await,
        }
    }

    /// Removes the authorization from a text of the recipient.
    pub(crate) fn scrub(&self, text: &str) -> String {
        match self {
            Self::Login(tokens) => tokens.scrub(text),
            _ => text.to_owned(),
        }
    }
}

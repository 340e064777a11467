//! Credentials of providers: what `outrigger auth` and the routes under `/auth` and `/provider` do.

use outrigger_models::{CredentialError, Credentials, Models};
use outrigger_protocol::auth::Credential;

use crate::boot::Boot;
use crate::error::AgentError;
use crate::inner::Agent;
use crate::project::Place;

impl Boot {
    /// The credentials of this user: ours, and those that OpenCode has stored, which are only read.
    #[must_use]
    pub fn credentials(&self) -> Credentials {
        let data = &self.folders.data;
        Credentials::new(
            data.join("auth.json"),
            data.parent().map(|data| data.join("opencode/auth.json")),
            self.env.get("OPENCODE_AUTH_CONTENT").map(String::as_str),
        )
    }

    /// Models and providers as the configuration has them, without plugins.
    ///
    /// # Errors
    /// Those of the configuration.
    pub fn models(&self) -> Result<Models, AgentError> {
        let config = self.load(&Place::find(&self.directory))?;
        Ok(Models::new(crate::boot::model_options(self, &config)))
    }
}

impl Agent {
    /// Stores a credential; the provider is put together anew with it.
    ///
    /// # Errors
    /// Those of the file.
    pub fn set_credential(
        &self,
        provider: &str,
        credential: &Credential,
    ) -> Result<(), CredentialError> {
        let models = &self.inner.models;
        models.credentials().set(provider, credential)?;
        models.forget(provider);
        Ok(())
    }

    /// Forgets a credential.
    ///
    /// # Errors
    /// Those of the file.
    pub fn remove_credential(&self, provider: &str) -> Result<(), CredentialError> {
        let models = &self.inner.models;
        models.credentials().remove(provider)?;
        models.forget(provider);
        Ok(())
    }
}

//! The capability registry (C11): routing rules bind contracts to providers. The local machine is a provider like any other, and
//! the default if no rule matches.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
pub use outrigger_kernel::routing::{CDP, LOCAL, Route};
use outrigger_kernel::routing::{Call, bound as kernel_bound, elsewhere};
use outrigger_protocol::canonical::CanonicalCall;
use outrigger_protocol::descriptor::{Contract, ToolDescriptor};
use outrigger_protocol::tool::ToolOutput;
use serde_json::Value;

use crate::error::ToolError;
use crate::host::ToolContext;

/// A request to a provider. All decisions have been made.
#[derive(Clone, Copy, Debug)]
pub struct Invocation<'a> {
    /// The contract to fulfil.
    pub contract: Contract,
    /// The tool that was called.
    pub tool: &'a ToolDescriptor,
    /// Its arguments, after hooks and checks.
    pub input: &'a Value,
    /// The normalised call.
    pub canonical: &'a CanonicalCall,
}

/// Fulfils contracts somewhere.
pub trait Provider: Send + Sync {
    /// Executes the call. Dropped when the deadline passes or the turn is cancelled: whatever it started must end with it.
    ///
    /// # Errors
    /// [`ToolError::Unavailable`] if it cannot be reached, otherwise what went wrong.
    fn invoke<'a>(
        &'a self,
        call: Invocation<'a>,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// Providers and the rules that choose among them; the first matching rule wins.
#[derive(Clone, Default)]
pub struct Routes {
    providers: BTreeMap<String, Arc<dyn Provider>>,
    rules: Vec<Route>,
}

/// The provider to which a call is bound.
pub(crate) struct Bound {
    pub(crate) contract: Option<Contract>,
    pub(crate) provider: Option<(String, Arc<dyn Provider>)>,
    /// The number of the rule, from 1.
    pub(crate) rule: Option<usize>,
}

impl Bound {
    pub(crate) fn name(&self) -> &str {
        let here = match self.contract {
            Some(contract) if contract.is_of_browser() => CDP,
            _ => LOCAL,
        };
        self.provider.as_ref().map_or(here, |(name, _)| name)
    }
    /// Returns the provider, if it is not this machine.
    pub(crate) fn remote(&self) -> Option<(&Arc<dyn Provider>, Contract)> {
        let (_, provider) = self.provider.as_ref()?;
        Some((provider, self.contract?))
    }
}

impl Routes {
    /// Creates routes from providers by name, and rules.
    ///
    /// # Errors
    /// The provider name of a rule that does not exist.
    pub fn new(
        providers: BTreeMap<String, Arc<dyn Provider>>,
        rules: Vec<Route>,
    ) -> Result<Self, String> {
        let there = |name: &String| name == LOCAL || name == CDP || providers.contains_key(name);
        if let Some(rule) = rules.iter().find(|rule| !there(&rule.provider)) {
            return Err(rule.provider.clone());
        }
        Ok(Self { providers, rules })
    }

    /// Returns the provider for this call of a tool with that contract.
    pub(crate) fn bind(
        &self,
        contract: Option<Contract>,
        input: &Value,
        ctx: &ToolContext,
    ) -> Bound {
        let mut bound = Bound {
            contract,
            provider: None,
            rule: None,
        };
        let Some(contract) = contract else {
            return bound;
        };
        let found = with_call(ctx, |call| {
            kernel_bound(&self.rules, contract, place(contract, input), call)
        });
        let Some(rule) = found.and_then(|at| self.rules.get(at)) else {
            return bound;
        };
        bound.rule = found.map(|at| at + 1);
        bound.provider = self
            .providers
            .get(&rule.provider)
            .map(|provider| (rule.provider.clone(), Arc::clone(provider)));
        bound
    }
}

impl Routes {
    /// Checks tools without a contract, which always run locally. If such a tool needs what a contract covers, and a rule routes
    /// that contract elsewhere, it would bypass the provider: a search would find other files than those that are read. A tool
    /// that does not declare its needs may do anything. `place` is the one file or folder that it accesses, if there is one.
    ///
    /// # Errors
    /// [`ToolError::Elsewhere`].
    pub(crate) fn passed_by(
        &self,
        tool: &ToolDescriptor,
        undeclared: bool,
        place: Option<&str>,
        ctx: &ToolContext,
    ) -> Result<(), ToolError> {
        let declared = &tool.declared;
        if declared.contract.is_some() || self.rules.is_empty() {
            return Ok(());
        }
        let does = |contract: &Contract| {
            let mut needs = contract.needs().iter();
            undeclared || needs.all(|need| declared.capabilities.contains(need))
        };
        for contract in Contract::ALL.into_iter().filter(does) {
            let provider = with_call(ctx, |call| elsewhere(&self.rules, contract, place, call));
            if let Some(provider) = provider {
                return Err(ToolError::Elsewhere {
                    tool: tool.spec.name.clone(),
                    contract: contract.name(),
                    provider: provider.to_owned(),
                });
            }
        }
        Ok(())
    }
}

/// Matches rules against a call. Paths are compared by their text, so a folder whose name is not text is equal to one that looks
/// like it.
fn with_call<T>(ctx: &ToolContext, ask: impl FnOnce(&Call<'_>) -> T) -> T {
    ask(&Call {
        tool: &ctx.call.tool,
        agent: &ctx.call.agent,
        callers: &ctx.callers,
        directory: &ctx.directory.to_string_lossy(),
    })
}

/// Returns the subject of the call: the file, or the folder in which a command runs.
fn place(contract: Contract, input: &Value) -> Option<&str> {
    let key = match contract {
        Contract::Exec => "workdir",
        _ => "filePath",
    };
    input.get(key).and_then(Value::as_str)
}

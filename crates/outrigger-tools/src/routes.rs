//! The capability registry (C11): contracts bound to what fulfils them, by routing rules. The local machine is a
//! provider as any other, and the one that is taken where no rule fits.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use outrigger_protocol::canonical::CanonicalCall;
use outrigger_protocol::descriptor::{Contract, ToolDescriptor};
use outrigger_protocol::tool::ToolOutput;
use outrigger_sandbox::paths::resolve;
use serde_json::Value;

use crate::error::ToolError;
use crate::host::ToolContext;

/// Name of the provider that is this machine.
pub const LOCAL: &str = "local";
/// Name of the provider of the contracts `browser.read` and `browser.write` that is this machine: a Chromium over the DevTools protocol.
pub const CDP: &str = "cdp";

/// What a provider is asked to do. All decisions have been made.
#[derive(Clone, Copy, Debug)]
pub struct Invocation<'a> {
    /// What is to be done.
    pub contract: Contract,
    /// The tool that was called.
    pub tool: &'a ToolDescriptor,
    /// Its arguments, after hooks and checks.
    pub input: &'a Value,
    /// The same, normalised.
    pub canonical: &'a CanonicalCall,
}

/// Fulfils contracts somewhere.
pub trait Provider: Send + Sync {
    /// Does it. Dropped when the deadline passes or the turn is cancelled: whatever it started must end with it.
    ///
    /// # Errors
    /// [`ToolError::Unavailable`] where it cannot be reached, what went wrong otherwise.
    fn invoke<'a>(
        &'a self,
        call: Invocation<'a>,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// A routing rule. What it does not name it does not ask about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// For this contract.
    pub contract: Option<Contract>,
    /// For the tool of this name, or with a `*` after it for those whose names begin so.
    pub tool: Option<String>,
    /// For this agent and its subagents.
    pub agent: Option<String>,
    /// For paths at or below this one (the working folder of commands), absolute or from the session's folder.
    pub path: Option<PathBuf>,
    /// Who does it.
    pub provider: String,
}

/// Providers and the rules that choose among them; the first one that fits counts.
#[derive(Clone, Default)]
pub struct Routes {
    providers: BTreeMap<String, Arc<dyn Provider>>,
    rules: Vec<Route>,
}

/// Whom a call is bound to.
pub(crate) struct Bound {
    pub(crate) contract: Option<Contract>,
    pub(crate) provider: Option<(String, Arc<dyn Provider>)>,
    /// From 1 on.
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
    /// The provider, if it is not this machine.
    pub(crate) fn remote(&self) -> Option<(&Arc<dyn Provider>, Contract)> {
        let (_, provider) = self.provider.as_ref()?;
        Some((provider, self.contract?))
    }
}

impl Routes {
    /// Providers by name, and rules.
    ///
    /// # Errors
    /// The name that a rule gives and nobody has.
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

    /// Whom this call of a tool with that contract is bound to.
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
        let found = self
            .rules
            .iter()
            .position(|rule| fits(rule, contract, input, ctx));
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
    /// A tool without a contract does what it does here. Where that is, by what it needs, what a contract is about, and a rule has
    /// the contract done elsewhere, it would go past the provider: a search would find other files than those that are read.
    /// One that does not say what it needs may do all of it. `place` is the one file or folder that it looks at, if there is one.
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
        let place = place.map(|place| resolve(&ctx.directory, Path::new(place)));
        let does = |contract: &Contract| {
            let mut needs = contract.needs().iter();
            undeclared || needs.all(|need| declared.capabilities.contains(need))
        };
        for contract in Contract::ALL.into_iter().filter(does) {
            if let Some(provider) = self.elsewhere(contract, place.as_deref(), ctx) {
                return Err(ToolError::Elsewhere {
                    tool: tool.spec.name.clone(),
                    contract: contract.name(),
                    provider: provider.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Who else than this machine does some of a contract at or below a place, or anywhere.
    fn elsewhere(
        &self,
        contract: Contract,
        place: Option<&Path>,
        ctx: &ToolContext,
    ) -> Option<&str> {
        for rule in &self.rules {
            if !is_for(rule, contract, ctx) {
                continue;
            }
            let root = rule.path.as_ref().map(|path| resolve(&ctx.directory, path));
            let (all, some) = match (&root, place) {
                (None, _) => (true, true),
                (Some(_), None) => (false, true),
                (Some(root), Some(place)) => {
                    let all = place.starts_with(root);
                    (all, all || root.starts_with(place))
                }
            };
            if some && rule.provider != LOCAL && rule.provider != CDP {
                return Some(&rule.provider);
            }
            if all {
                return None;
            }
        }
        None
    }
}

fn names(pattern: &str, tool: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => tool.starts_with(start),
        None => pattern == tool,
    }
}

/// Whether a rule is for this contract, tool and agent.
fn is_for(rule: &Route, contract: Contract, ctx: &ToolContext) -> bool {
    let (tool, agent) = (rule.tool.as_ref(), rule.agent.as_ref());
    rule.contract.is_none_or(|it| it == contract)
        && tool.is_none_or(|tool| names(tool, &ctx.call.tool))
        // What an agent has done elsewhere, its subagents do not do here.
        && agent.is_none_or(|agent| *agent == ctx.call.agent || ctx.callers.contains(agent))
}

fn fits(rule: &Route, contract: Contract, input: &Value, ctx: &ToolContext) -> bool {
    is_for(rule, contract, ctx)
        && rule.path.as_ref().is_none_or(|root| {
            let root = resolve(&ctx.directory, root);
            place(contract, input, &ctx.directory).starts_with(root)
        })
}

/// What the call is about: the file, or the folder that a command runs in. By its text alone: a path on another machine
/// has no links here.
fn place(contract: Contract, input: &Value, directory: &Path) -> PathBuf {
    let key = match contract {
        Contract::Exec => "workdir",
        _ => "filePath",
    };
    let path = input.get(key).and_then(Value::as_str).unwrap_or(".");
    resolve(directory, Path::new(path))
}

//! The tools: `browser_open`, `browser_snapshot`, `browser_action`, `browser_verify`, `browser_screenshot`, `browser_console`,
//! `browser_network`, `browser_eval`.

mod act;
mod look;
mod points;
mod specs;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_browser_core::action::{Action, Kind};
use outrigger_protocol::descriptor::{Capability, Contract, Declared};
use outrigger_protocol::tool::{ToolOutput, ToolSpec};
use outrigger_tools::handed::HandedFile;
use outrigger_tools::{PermissionAsk, Tool, ToolContext, ToolError, ToolRuntime};
use serde_json::{Value, json};
use url::Url;

use crate::desk::Browser;
use crate::error::BrowserError;

/// Permission whose patterns are addresses of pages.
pub const PERMISSION: &str = "browser";
/// Permission for JavaScript in pages.
const EVAL: &str = "browser_eval";
/// Source of the tools.
pub const SOURCE: &str = "browser";
/// Maximum duration of a call: expectations, queue and loading together.
const DEADLINE: Duration = Duration::from_secs(150);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Open,
    Snapshot,
    Action,
    Verify,
    Screenshot,
    Console,
    Network,
    Eval,
}

impl Use {
    const ALL: [Self; 8] = [
        Self::Open,
        Self::Snapshot,
        Self::Action,
        Self::Verify,
        Self::Screenshot,
        Self::Console,
        Self::Network,
        Self::Eval,
    ];

    fn is_write(self) -> bool {
        matches!(self, Self::Open | Self::Action | Self::Eval)
    }
}

struct BrowserTool {
    does: Use,
    spec: ToolSpec,
    browser: Arc<Browser>,
}

/// Registers the tools of a browser.
///
/// # Errors
/// The description of a tool is invalid.
pub fn register(runtime: &ToolRuntime, browser: &Arc<Browser>) -> Result<(), ToolError> {
    for does in Use::ALL {
        if does != Use::Eval || browser.options.eval {
            let tool = BrowserTool {
                does,
                spec: specs::of(does),
                browser: Arc::clone(browser),
            };
            runtime.register(Arc::new(tool))?;
        }
    }
    Ok(())
}

impl From<BrowserError> for ToolError {
    fn from(error: BrowserError) -> Self {
        let hint = error
            .hint()
            .map(|it| format!(" ({it})"))
            .unwrap_or_default();
        match error {
            BrowserError::Site { .. } | BrowserError::Field { .. } | BrowserError::Secret(_) => {
                Self::Denied(format!("{error}{hint}"))
            }
            other => Self::failed(format!("{other}{hint}")),
        }
    }
}

fn text<'a>(input: &'a Value, key: &str) -> Option<&'a str> {
    input.get(key).and_then(Value::as_str)
}

fn action(input: &Value) -> Result<Action, ToolError> {
    serde_json::from_value(input.clone())
        .map_err(|error| ToolError::failed(format!("browser_action: {error}")))
}

/// Returns whether a rule of an agent denies a page.
fn denies(ctx: &ToolContext) -> impl Fn(&str) -> bool + Send + Sync {
    |url| ctx.host.denies_page(url)
}

/// Parses the address of a call.
fn address(url: &str) -> Result<Url, ToolError> {
    let parsed = Url::parse(url)
        .ok()
        .filter(|it| matches!(it.scheme(), "http" | "https") && it.has_host());
    let url = parsed.ok_or_else(|| {
        ToolError::Denied(format!(
            "{url} is not opened: addresses begin with http:// or https://"
        ))
    })?;
    outrigger_net::check(&url).map_err(|refused| ToolError::Denied(refused.to_string()))?;
    Ok(url)
}

/// Returns the permission question about a page.
fn ask(permission: &str, url: &str, metadata: Value) -> PermissionAsk {
    let always = Url::parse(url).ok().filter(Url::has_host);
    PermissionAsk {
        permission: permission.to_owned(),
        patterns: vec![url.to_owned()],
        always: always
            .map(|it| format!("{}/*", it.origin().ascii_serialization()))
            .into_iter()
            .collect(),
        metadata,
        ..PermissionAsk::default()
    }
}

/// Returns the permission questions about opening an address: rules about hosts and about the browser apply.
fn ask_address(url: &str, ctx: &ToolContext) -> Result<Vec<PermissionAsk>, ToolError> {
    let asked = address(url)?.to_string();
    if ctx.host.denies_address(&asked) {
        return Err(ToolError::Denied(format!("A rule denies {asked}")));
    }
    Ok(vec![
        ask("webfetch", &asked, json!({ "url": asked })),
        ask(PERMISSION, &asked, json!({ "url": asked })),
    ])
}

impl BrowserTool {
    fn ask_page(
        &self,
        permission: &str,
        tab: Option<&str>,
        input: &Value,
        ctx: &ToolContext,
    ) -> Result<Option<PermissionAsk>, ToolError> {
        let Some(url) = self.browser.address(ctx.call.session_id.as_str(), tab) else {
            return Ok(None);
        };
        if ctx.host.denies_address(&url) {
            return Err(ToolError::Denied(format!(
                "A rule denies {url}, which the tab shows"
            )));
        }
        Ok(Some(ask(
            permission,
            &url,
            json!({ "url": url, "input": input }),
        )))
    }
}

impl Tool for BrowserTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn declares(&self) -> Declared {
        let (contract, capability) = if self.does.is_write() {
            (Contract::BrowserWrite, Capability::BrowserWrite)
        } else {
            (Contract::BrowserRead, Capability::BrowserRead)
        };
        Declared {
            version: "1.0.0".to_owned(),
            contract: Some(contract),
            capabilities: vec![capability],
            ..Declared::default()
        }
    }

    fn precheck(&self, input: &Value) -> Result<(), ToolError> {
        if self.does == Use::Action {
            action(input)?.check().map_err(ToolError::failed)?;
        }
        Ok(())
    }

    fn permissions(
        &self,
        input: &Value,
        ctx: &ToolContext,
    ) -> Result<Vec<PermissionAsk>, ToolError> {
        let tab = text(input, "tab");
        match self.does {
            Use::Open => ask_address(text(input, "url").unwrap_or_default(), ctx),
            Use::Eval => Ok(self.ask_page(EVAL, tab, input, ctx)?.into_iter().collect()),
            Use::Action => {
                let action = action(input)?;
                if let Some(url) = action
                    .url
                    .as_deref()
                    .filter(|_| matches!(action.action, Kind::Navigate | Kind::TabNew))
                {
                    return ask_address(url, ctx);
                }
                let mut asks: Vec<PermissionAsk> = self
                    .ask_page(PERMISSION, tab, input, ctx)?
                    .into_iter()
                    .collect();
                match (action.action, &action.path) {
                    (Kind::Upload, Some(path)) => {
                        asks.extend(HandedFile::of(ctx, path)?.ask_read(ctx))
                    }
                    (Kind::Download, Some(path)) => {
                        asks.extend(HandedFile::of(ctx, path)?.ask_write(ctx))
                    }
                    _ => {}
                }
                Ok(asks)
            }
            _ => Ok(self
                .ask_page(PERMISSION, tab, input, ctx)?
                .into_iter()
                .collect()),
        }
    }

    fn deadline(&self, _input: &Value) -> Option<Duration> {
        Some(DEADLINE)
    }

    fn run<'a>(
        &'a self,
        input: Value,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let answer = match self.does {
                Use::Open => act::open(&self.browser, &input, ctx).await,
                Use::Action => act::run(&self.browser, action(&input)?, ctx).await,
                Use::Eval => act::eval(&self.browser, &input, ctx).await,
                Use::Snapshot => look::snapshot(&self.browser, &input, ctx).await,
                Use::Verify => look::verify(&self.browser, &input, ctx).await,
                Use::Screenshot => look::screenshot(&self.browser, &input, ctx).await,
                Use::Console => look::console(&self.browser, &input, ctx),
                Use::Network => look::network(&self.browser, &input, ctx).await,
            };
            answer.map(|mut answer| {
                let secrets = &self.browser.options.secrets;
                secrets.hide(&mut answer.title);
                secrets.hide(&mut answer.output);
                secrets.hide_in(&mut answer.metadata);
                answer
            })
        })
    }
}

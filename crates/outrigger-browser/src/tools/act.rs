//! Tools that change something.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::time::Duration;

use outrigger_browser_core::action::{Action, Kind};
use outrigger_browser_core::expect;
use outrigger_browser_core::frame::others;
use outrigger_browser_core::lease::Grant;
use outrigger_browser_core::site::{is_listed, looks_like_another};
use outrigger_browser_core::snapshot::{Snapshot, changes};
use outrigger_browser_core::untrusted::mark;
use outrigger_protocol::question::{Choice, Question};
use outrigger_protocol::tool::ToolOutput;
use outrigger_tools::handed::HandedFile;
use outrigger_tools::{ToolContext, ToolError};
use serde_json::{Value, json};
use url::Url;

use super::look::{BUDGET, output, shown, tab};
use super::points::Points;
use super::{PERMISSION, address, ask, denies, text};
use crate::address::host_of;
use crate::desk::Browser;
use crate::error::BrowserError;
use crate::perform::{Outcome, Planned};
use crate::provider::{FrameSite, Mark, Provider, Step};

/// Timeout for a page to load.
const LOAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of a download.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(100);
/// Token budget for changes after an action.
const CHANGES: usize = 1_000;
/// The answer with which the user lets an agent continue.
const YES: &str = "Go on";

fn refused(error: BrowserError, url: &str) -> ToolError {
    match error {
        BrowserError::NotDone { action, why }
            if why.contains("no rule allows") || why.contains("own server") =>
        {
            ToolError::Denied(format!("{action}: {why} ({url})"))
        }
        other => other.into(),
    }
}

pub(super) async fn open(
    browser: &Browser,
    input: &Value,
    ctx: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let url = address(text(input, "url").unwrap_or_default())?;
    lead_to(browser, &url).await?;
    let points = Points::plain("open", "navigate", "", "", Some(url.as_str()), ctx);
    points.before().await?;
    let provider = browser.started().await?;
    let session = ctx.call.session_id.as_str();
    let owner = browser.owner(session, &ctx.call.agent);
    let opened = provider
        .open(&owner, Some(url.as_str()), LOAD_TIMEOUT)
        .await;
    let tab = match opened {
        Ok(tab) => tab,
        Err(error) => {
            let error = error.withheld(&denies(ctx));
            return Err(points.failed(refused(error, url.as_str())).await);
        }
    };
    let added = points.after().await;
    browser.uses(session, &tab);
    let seen = browser
        .observe(&*provider, &tab, Mark::default(), &denies(ctx))
        .await?;
    stays_allowed(
        browser,
        &*provider,
        &tab,
        url.as_str(),
        &seen.snapshot.url,
        ctx,
    )
    .await?;
    let budget = input["budget"]
        .as_u64()
        .and_then(|it| usize::try_from(it).ok());
    let said = arrived(&*provider, &tab, &seen.snapshot, budget.unwrap_or(BUDGET)) + &added;
    let url = seen.snapshot.url.clone();
    browser.shows(&tab, seen.snapshot);
    Ok(output(url.clone(), said, json!({ "tab": tab, "url": url })))
}

/// Returns the model's text for an opened page.
fn arrived(provider: &dyn Provider, tab: &str, snapshot: &Snapshot, budget: usize) -> String {
    let mut said = format!("{tab}\n");
    let host = host_of(&snapshot.url);
    if let Some(why) = looks_like_another(&host) {
        let _ = writeln!(said, "Warning: this site may imitate another one: {why}.");
    }
    let requests = provider.recorded(tab, Mark::default()).requests;
    let status = requests.iter().find(|it| it.kind == "document");
    let status = status.and_then(|it| it.request.status);
    if let Some(status) = status.filter(|it| *it >= 400) {
        let _ = writeln!(said, "The site answered with the status {status}.");
    }
    said + &shown(snapshot, &snapshot.lines, budget, 1)
}

/// After the user or a rule that names it has allowed a local address, its origin may be shown.
async fn lead_to(browser: &Browser, url: &Url) -> Result<(), BrowserError> {
    if outrigger_net::is_local(url) {
        browser.options.sites.allow(url);
    }
    let judged = browser.options.sites.judge(url.as_str()).await;
    judged.map_err(|refused| BrowserError::Site {
        url: url.to_string(),
        refused,
    })
}

/// After a page navigated the tab elsewhere, checks whether rules allow showing it.
async fn stays_allowed(
    browser: &Browser,
    provider: &dyn Provider,
    tab: &str,
    before: &str,
    now: &str,
    ctx: &ToolContext,
) -> Result<(), ToolError> {
    let origin = |url: &str| Url::parse(url).ok().map(|it| it.origin());
    if now == "about:blank" || origin(before) == origin(now) {
        return Ok(());
    }
    let asked = if ctx.host.denies_address(now) {
        Err(ToolError::Denied(format!(
            "The page led to {now}, which a rule denies; the tab is empty now"
        )))
    } else {
        ctx.ask(ask(PERMISSION, now, json!({ "url": now, "from": before })))
            .await
    };
    if asked.is_err() {
        let owner = browser.owner(ctx.call.session_id.as_str(), &ctx.call.agent);
        if let Ok(grant) = provider.acquire(tab, &owner) {
            // It is not shown in either case.
            let _ = provider
                .act(&grant, &Step::navigate("about:blank", LOAD_TIMEOUT))
                .await;
        }
    }
    asked
}

/// Asks the user; if nobody can be asked, the answer is no.
async fn person_agrees(ctx: &ToolContext, header: &str, question: String) -> bool {
    let choice = |label: &str| Choice {
        label: label.to_owned(),
        ..Choice::default()
    };
    let asked = Question {
        question,
        header: header.to_owned(),
        options: vec![choice(YES), choice("Stop")],
        custom: Some(false),
        ..Question::default()
    };
    let answers = ctx.host.question(vec![asked]).await;
    answers.is_some_and(|it| it.first().is_some_and(|it| it.iter().any(|it| it == YES)))
}

pub(super) async fn run(
    browser: &Browser,
    action: Action,
    ctx: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let session = ctx.call.session_id.as_str();
    match (action.action, action.url.as_deref()) {
        (Kind::TabNew, Some(url)) => return open(browser, &json!({ "url": url }), ctx).await,
        (Kind::TabNew, None) => return open_empty(browser, ctx).await,
        (Kind::Navigate, Some(url)) => lead_to(browser, &address(url)?).await?,
        _ => {}
    }
    let provider = browser.current()?;
    let mut planned = browser
        .plan(&*provider, &action, session)
        .await
        .map_err(|error| error.withheld(&denies(ctx)))?;
    if action.action == Kind::Upload {
        planned.step.file = Some(staged(browser, &action, ctx)?);
    }
    frames_allowed(&planned, ctx).await?;
    let grant = leased(browser, &*provider, &action, &planned, ctx).await?;
    let points = Points::of(&planned, ctx);
    points.before().await?;
    let (tab, url) = (&planned.tab.tab, &planned.tab.url);
    let mark = provider.mark(tab);
    let carried_out = browser
        .carry_out(&*provider, &grant, &planned, &action, &denies(ctx))
        .await;
    let outcome = match carried_out {
        Ok(outcome) => outcome,
        Err(error) => return Err(points.failed(refused(error, url)).await),
    };
    browser.uses(session, tab);
    if let Some(seen) = &outcome.seen {
        stays_allowed(browser, &*provider, tab, url, &seen.snapshot.url, ctx).await?;
    }
    let mut notes = outcome.done.notes.clone();
    if action.action == Kind::Download {
        notes.push(taken_in(&*provider, tab, mark, &action, ctx).await?);
    }
    let mut added = points.after().await;
    let unmet = match outcome.unmet.as_slice() {
        [] => String::new(),
        unmet => expect::sentence(unmet),
    };
    added.push_str(&points.verified(outcome.status, &unmet).await);
    let mut answer = answer(browser, &action, &planned, outcome, &notes);
    answer.output.push_str(&added);
    Ok(answer)
}

/// Opens an empty tab.
async fn open_empty(browser: &Browser, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
    let provider = browser.started().await?;
    let session = ctx.call.session_id.as_str();
    let owner = browser.owner(session, &ctx.call.agent);
    let tab = provider.open(&owner, None, LOAD_TIMEOUT).await?;
    browser.uses(session, &tab);
    let metadata = json!({ "tab": tab });
    Ok(output(
        tab.clone(),
        format!("{tab} is open and empty."),
        metadata,
    ))
}

/// Acquires the lease for an action, with the user's approval if needed: after the user took the tab, and at sites that require it.
async fn leased(
    browser: &Browser,
    provider: &dyn Provider,
    action: &Action,
    planned: &Planned,
    ctx: &ToolContext,
) -> Result<Grant, ToolError> {
    let (tab, url) = (&planned.tab.tab, &planned.tab.url);
    let owner = browser.owner(ctx.call.session_id.as_str(), &ctx.call.agent);
    let what = words(action, planned);
    let grant = match browser.lease(provider, tab, &owner).await {
        Err(BrowserError::Lease(refusal)) if refusal.code() == "lease.person" => {
            let question = format!(
                "You have clicked or typed in the tab {tab} ({url}). May the agent continue in it with: {what}?"
            );
            if !person_agrees(ctx, "Browser", question).await {
                return Err(BrowserError::Lease(refusal).into());
            }
            provider.hand_back(tab);
            browser.lease(provider, tab, &owner).await?
        }
        other => other?,
    };
    let mut urls = vec![url.clone()];
    urls.extend(planned.frames.iter().map(FrameSite::address));
    let mut asked = HashSet::new();
    for url in urls.into_iter().filter(|it| asked.insert(it.clone())) {
        if !is_listed(&browser.options.ask, &host_of(&url), &url) {
            continue;
        }
        let question = format!("May the agent do this at {url}: {what}?");
        if !person_agrees(ctx, "Browser", question).await {
            return Err(ToolError::Denied(format!(
                "{url} is a site where each change needs the user's approval, which was not given"
            )));
        }
    }
    Ok(grant)
}

/// Checks rules for the frames that an action can reach. The tab's address has been checked before.
async fn frames_allowed(planned: &Planned, ctx: &ToolContext) -> Result<(), ToolError> {
    let urls = others(&planned.tab.url, &planned.frames);
    if let Some(denied) = urls.iter().find(|it| ctx.host.denies_address(it)) {
        return Err(ToolError::Denied(format!(
            "A rule denies {denied}, a frame of which the page shows"
        )));
    }
    for url in urls {
        let metadata = json!({ "url": url, "frame_in": planned.tab.url });
        ctx.ask(ask(PERMISSION, &url, metadata)).await?;
    }
    Ok(())
}

/// Describes an action, without the typed text.
fn words(action: &Action, planned: &Planned) -> String {
    format!(
        "{} {}",
        action.action.name().replace('_', " "),
        planned.target
    )
    .trim()
    .to_owned()
}

/// Returns the model's text for an action.
fn answer(
    browser: &Browser,
    action: &Action,
    planned: &Planned,
    outcome: Outcome,
    notes: &[String],
) -> ToolOutput {
    let tab = &planned.tab.tab;
    let mut said = format!("{} {tab}: {}", action.action.name(), outcome.status);
    if outcome.status == expect::UNCHANGED {
        said.push_str("\nIt was sent, but nothing that can be observed on the page changed.");
    }
    for note in notes {
        let _ = write!(said, "\n{note}");
    }
    for opened in &outcome.done.opened {
        let _ = write!(said, "\nIt opened the tab {opened}.");
    }
    let mut content = String::new();
    if !outcome.unmet.is_empty() {
        let mut sentence = expect::sentence(&outcome.unmet);
        browser.options.secrets.hide(&mut sentence);
        content.push_str(&sentence);
        content.push('\n');
    }
    if let Some(dialog) = &outcome.dialog {
        let _ = writeln!(
            content,
            "a dialog is open ({}): {:?}; answer it with the action `dialog`",
            dialog.kind, dialog.message
        );
    }
    let url = outcome
        .seen
        .as_ref()
        .map_or(planned.tab.url.clone(), |it| it.snapshot.url.clone());
    if let Some(seen) = outcome.seen {
        let before = browser.shows(tab, seen.snapshot.clone());
        content.push_str(&changed(before.as_ref(), &seen.snapshot));
    }
    if !content.trim().is_empty() {
        let _ = write!(said, "\n{}", mark(&url, &content));
    }
    let title = format!("{} {}", action.action.name(), planned.target);
    output(
        title,
        said,
        json!({ "tab": tab, "url": url, "status": outcome.status, "verify": outcome.status, "unmet": outcome.unmet, "opened": outcome.done.opened }),
    )
}

fn changed(before: Option<&Snapshot>, now: &Snapshot) -> String {
    let changed = before.and_then(|before| changes(before, now));
    match changed {
        Some(changed) if changed.is_empty() => String::new(),
        Some(changed) if changed.len() <= CHANGES * 4 => format!("changed:\n{changed}"),
        _ => {
            let page = outrigger_browser_core::snapshot::page(&now.lines, CHANGES, 1);
            let more = if page.of > 1 {
                "(browser_snapshot shows the rest)"
            } else {
                ""
            };
            format!("the page now, title {:?}:\n{}{more}", now.title, page.text)
        }
    }
}

/// Copies the file to upload, so that exactly what was approved is sent.
fn staged(
    browser: &Browser,
    action: &Action,
    ctx: &ToolContext,
) -> Result<std::path::PathBuf, ToolError> {
    let path = action.path.as_deref().unwrap_or_default();
    let file = HandedFile::of(ctx, path)?;
    let bytes = file.read(64 * 1024 * 1024)?;
    let folder = browser
        .options
        .folder
        .join("uploads")
        .join(ctx.call.call_id.as_str().replace(['/', '.'], "_"));
    let staged = folder.join(file.name());
    let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&staged, bytes));
    written.map_err(|error| ToolError::io("copy", &staged, &error))?;
    Ok(staged)
}

/// Moves a download to its destination.
async fn taken_in(
    provider: &dyn Provider,
    tab: &str,
    since: Mark,
    action: &Action,
    ctx: &ToolContext,
) -> Result<String, ToolError> {
    let begun = outrigger_sandbox::process_time::Instant::now();
    let (name, from) = loop {
        if let Some(found) = provider.downloaded(tab, since) {
            break found;
        }
        let has_begun = !provider.recorded(tab, since).downloads.is_empty();
        let wait = if has_begun {
            DOWNLOAD_TIMEOUT
        } else {
            Duration::from_secs(10)
        };
        if begun.elapsed() >= wait {
            return Err(ToolError::failed(if has_begun {
                "failed_verify: the download did not complete in time"
            } else {
                "failed_verify: nothing was downloaded"
            }));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let bytes = outrigger_files::read(&from, 512 * 1024 * 1024)
        .map_err(|error| ToolError::failed(error.to_string()))?;
    let file = HandedFile::of(ctx, action.path.as_deref().unwrap_or_default())?;
    file.write(&bytes)?;
    Ok(format!(
        "The download {name:?} ({} bytes) is at {}.",
        bytes.len(),
        file.shown().display()
    ))
}

pub(super) async fn eval(
    browser: &Browser,
    input: &Value,
    ctx: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let (provider, tab) = (browser.current()?, tab(browser, input, ctx)?);
    let owner = browser.owner(ctx.call.session_id.as_str(), &ctx.call.agent);
    let grant = browser.lease(&*provider, &tab.tab, &owner).await?;
    let points = Points::plain("eval", "submit", &tab.tab, &tab.url, None, ctx);
    points.before().await?;
    let mut answer = provider
        .eval(&grant, text(input, "code").unwrap_or_default())
        .await
        .map_err(|error| error.withheld(&denies(ctx)))?;
    browser.options.secrets.hide(&mut answer);
    Ok(output(
        tab.url.clone(),
        mark(&tab.url, &answer),
        json!({ "tab": tab.tab, "url": tab.url }),
    ))
}

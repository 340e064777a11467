//! Performs an action: resolves references, checks fields and the lease, acts, observes, and verifies expectations.

use std::time::Duration;

use outrigger_browser_core::action::{Action, Kind, Risk, is_grave};
use outrigger_browser_core::expect::{self, Expectation, Unmet};
use outrigger_browser_core::field::FieldKind;
use outrigger_browser_core::lease::{Grant, LeaseError, Owner};
use outrigger_browser_core::snapshot::Snapshot;
use outrigger_browser_core::verdict::{self, Attempt};
use outrigger_protocol::audit::{AuditKind, AuditRecord};
use outrigger_protocol::id::SessionId;
use outrigger_sandbox::process_time::Instant;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::address::without_query;
use crate::desk::{Browser, Seen};
use crate::dialog::{Denies, Dialog};
use crate::error::BrowserError;
use crate::frames::frames;
use crate::provider::{ActionTarget, Done, FrameSite, Mark, Provider, Step, TabInfo};
use outrigger_stdx::clock::now_ms;

/// Timeout for a page to load after an action.
const LOAD_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a field must keep its new value.
const VALUE_TIMEOUT: Duration = Duration::from_millis(100);
/// Pause between two checks.
const POLL_PAUSE: Duration = Duration::from_millis(100);

/// A fully resolved action.
pub(crate) struct Planned {
    pub(crate) tab: TabInfo,
    pub(crate) step: Step,
    pub(crate) risk: Risk,
    /// Description of the target: `e3 button "Pay"`.
    pub(crate) target: String,
    /// The kind of protected field of the target.
    pub(crate) field: Option<&'static str>,
    /// The frames that it can reach: those of its elements, or all of the page if it has none.
    pub(crate) frames: Vec<FrameSite>,
}

/// The target of an action.
#[derive(Default)]
struct Aim {
    words: String,
    field: Option<FieldKind>,
    submits: bool,
}

/// The result of an action.
pub(crate) struct Outcome {
    pub(crate) status: &'static str,
    pub(crate) unmet: Vec<Unmet>,
    pub(crate) done: Done,
    pub(crate) seen: Option<Seen>,
    pub(crate) dialog: Option<Dialog>,
}

impl Outcome {
    /// While a dialog is open, expectations cannot be checked.
    fn behind(mut self, dialog: Dialog, action: &Action, usual: Option<Unmet>) -> Self {
        let expected = action.expect.iter().map(|it| json!(it).to_string());
        let unmet = verdict::unmet_behind(&dialog.kind, &dialog.message, expected);
        self.unmet = unmet.chain(usual).collect();
        if !self.unmet.is_empty() {
            self.status = expect::FAILED;
        }
        self.dialog = Some(dialog);
        self
    }
}

/// The state before an action, for comparison.
#[derive(Clone, Copy)]
struct Earlier<'a> {
    seen: Option<&'a Seen>,
    /// Number of tabs.
    tabs: usize,
    /// Records after this mark belong to the action.
    mark: Mark,
    denies: Denies<'a>,
}

impl Browser {
    /// Resolves an action.
    pub(crate) async fn plan(
        &self,
        provider: &dyn Provider,
        action: &Action,
        session: &str,
    ) -> Result<Planned, BrowserError> {
        action
            .check()
            .map_err(|what| BrowserError::Input(what.to_owned()))?;
        let tab = self.tab(session, action.tab.as_deref())?;
        self.may_begin(provider, &tab.tab, action.action)?;
        let place =
            |reference: &Option<String>, at| -> Result<Option<ActionTarget>, BrowserError> {
                match (reference, at) {
                    (Some(reference), _) => {
                        let key = self.key(&tab.tab, reference)?;
                        Ok(Some(ActionTarget::Element(key)))
                    }
                    (None, at) => Ok(Option::map(at, ActionTarget::Point)),
                }
            };
        let (at, to) = (
            place(&action.target, action.at)?,
            place(&action.to, action.to_at)?,
        );
        let frames = frames(provider, &tab, action.action, [at.as_ref(), to.as_ref()]).await?;
        let aim = self.aim(provider, &tab.tab, action, at.as_ref()).await?;
        let is_typed = matches!(action.action, Kind::Type | Kind::Fill);
        let is_plain = is_typed && action.secret.is_none();
        let kept = aim
            .field
            .filter(|it| is_plain && !self.options.fields.contains(it));
        if let Some(kind) = kept {
            return Err(BrowserError::Field { field: kind.name() });
        }
        let text = match &action.secret {
            Some(name) => Some(self.options.secrets.get(name, &frames)?.to_owned()),
            None => action.text.clone(),
        };
        let mut step = step_of(action, at, to, text);
        step.is_secret = action.secret.is_some();
        step.granted.clone_from(&self.options.fields);
        let submits = aim.submits || action.submit || step.text.as_deref() == Some("Enter");
        Ok(Planned {
            tab,
            step,
            risk: action.action.risk(submits),
            target: aim.words,
            field: aim.field.map(|it| it.name()),
            frames,
        })
    }

    /// Performs a resolved action. A plugin or the user may have been asked meanwhile, so the site of a secret's field is checked again.
    async fn send(
        &self,
        provider: &dyn Provider,
        grant: &Grant,
        planned: &Planned,
        action: &Action,
    ) -> Result<Done, BrowserError> {
        if let (Some(name), Some(ActionTarget::Element(key))) =
            (&action.secret, &planned.step.place)
        {
            let frames = provider.frames(&planned.tab.tab, Some(key)).await?;
            self.options.secrets.get(name, &frames)?;
        }
        provider.act(grant, &planned.step).await
    }

    /// Returns whether a tab is in a state in which an action may start.
    fn may_begin(
        &self,
        provider: &dyn Provider,
        tab: &str,
        kind: Kind,
    ) -> Result<(), BrowserError> {
        let starts_anew = matches!(kind, Kind::Navigate | Kind::Reload | Kind::TabClose);
        if self.is_unknown(tab) && kind.is_write() && !starts_anew {
            return Err(BrowserError::Unknown);
        }
        match provider.dialog(tab) {
            Some(it) if !matches!(kind, Kind::Dialog | Kind::TabClose) => {
                Err(BrowserError::Dialog(it))
            }
            _ => Ok(()),
        }
    }

    /// Resolves the target of an action.
    async fn aim(
        &self,
        provider: &dyn Provider,
        tab: &str,
        action: &Action,
        at: Option<&ActionTarget>,
    ) -> Result<Aim, BrowserError> {
        let mut aim = Aim {
            words: action.target.clone().unwrap_or_default(),
            ..Aim::default()
        };
        if let Some(ActionTarget::Element(key)) = at {
            let found = provider
                .target(tab, key)
                .await
                .map_err(|error| named(error, &aim.words))?;
            (aim.field, aim.submits) = (found.field, found.submits);
            if let Some(words) = self.words(tab, &aim.words) {
                aim.submits |= is_grave(&words);
                aim.words = words;
            }
        }
        Ok(aim)
    }

    /// Returns the line of an element in the last shown snapshot.
    fn words(&self, tab: &str, reference: &str) -> Option<String> {
        let number = outrigger_browser_core::snapshot::number(reference)?;
        let shown = self.last_shown(tab)?;
        let line = shown.lines.iter().find(|it| it.reference == Some(number))?;
        Some(format!("e{number} {}", line.text))
    }

    /// Performs it and checks its effect.
    pub(crate) async fn carry_out(
        &self,
        provider: &dyn Provider,
        grant: &Grant,
        planned: &Planned,
        action: &Action,
        denies: Denies<'_>,
    ) -> Result<Outcome, BrowserError> {
        let tab = &planned.tab.tab;
        let mark = provider.mark(tab);
        let before = match provider.dialog(tab) {
            None => self.observe(provider, tab, mark, denies).await.ok(),
            Some(_) => None,
        };
        let tabs = provider.tabs().len();
        let result = self.send(provider, grant, planned, action).await;
        let hash = |seen: Option<&Seen>| seen.map(|it| hash(&it.snapshot));
        let result = match result {
            Ok(done) => {
                let earlier = Earlier {
                    seen: before.as_ref(),
                    tabs,
                    mark,
                    denies,
                };
                self.judge(provider, planned, action, earlier, done).await
            }
            Err(error) => {
                let name = action.target.as_deref().unwrap_or_default();
                Err(named(error, name).withheld(denies))
            }
        };
        if result.as_ref().is_err_and(BrowserError::is_unknown) {
            self.lost_sight(tab);
        }
        let (decision, after) = match &result {
            Ok(outcome) => (outcome.status, hash(outcome.seen.as_ref())),
            Err(error) => (error.code(), None),
        };
        // An invalid lease is recorded where it is checked.
        if !matches!(result, Err(BrowserError::Lease(_))) {
            self.note(grant, planned, decision, hash(before.as_ref()), after);
        }
        result
    }

    async fn judge(
        &self,
        provider: &dyn Provider,
        planned: &Planned,
        action: &Action,
        earlier: Earlier<'_>,
        done: Done,
    ) -> Result<Outcome, BrowserError> {
        let tab = &planned.tab.tab;
        let mut usual = self.usual(planned, action, &done);
        let mut outcome = Outcome {
            status: verdict::DONE,
            unmet: Vec::new(),
            done,
            seen: None,
            dialog: None,
        };
        let kind = planned.step.kind;
        if kind == Kind::TabClose {
            return Ok(outcome);
        }
        let attempt = Attempt {
            kind,
            expects: !action.expect.is_empty(),
            timeout_ms: action.timeout_ms,
        };
        let begun = Instant::now();
        let mut last: Option<String> = None;
        loop {
            if let Some(dialog) = provider.dialog(tab) {
                let dialog = dialog.withheld(earlier.denies);
                return Ok(outcome.behind(dialog, action, usual));
            }
            let look = self.observe(provider, tab, earlier.mark, earlier.denies);
            let mut seen = match look.await {
                // It opened meanwhile.
                Err(BrowserError::Dialog(_)) => continue,
                other => other?,
            };
            if let Some(value) = value_now(provider, planned, &outcome.done, begun).await {
                outcome.done.value = Some(value);
                usual = self.usual(planned, action, &outcome.done);
            }
            let text = seen.snapshot.text();
            seen.facts.stable = last.as_ref() == Some(&text);
            last = Some(text);
            outcome.unmet = expect::unmet(&action.expect, &seen.facts);
            outcome.unmet.extend(usual.iter().cloned());
            let changed = has_changed(kind, earlier.seen, &seen)
                || provider.tabs().len() != earlier.tabs
                || !seen.facts.downloads.is_empty();
            let elapsed = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            if let Some(status) = attempt.verdict(outcome.unmet.is_empty(), changed, elapsed) {
                outcome.status = status;
                outcome.seen = Some(seen);
                return Ok(outcome);
            }
            tokio::time::sleep(POLL_PAUSE).await;
        }
    }

    /// Returns the implicit expectations of a kind of action.
    fn usual(&self, planned: &Planned, action: &Action, done: &Done) -> Option<Unmet> {
        let kind = planned.step.kind;
        let wanted = match kind {
            Kind::Select => done.chosen.as_deref(),
            _ => planned.step.text.as_deref(),
        };
        let is_kept = planned.field.is_some() || action.secret.is_some();
        verdict::unmet_field(kind, wanted, done.value.as_deref(), is_kept)
    }

    /// Records an action in the audit: lease, target, hashes of the state before and after, verdict.
    pub(crate) fn note(
        &self,
        grant: &Grant,
        planned: &Planned,
        decision: &str,
        before: Option<String>,
        after: Option<String>,
    ) {
        let Owner {
            session,
            agent,
            turn,
        } = &grant.owner;
        let mut record = AuditRecord::new(AuditKind::Browser, now_ms(), decision);
        record.session_id = Some(SessionId(session.clone()));
        record.subject = Some(format!(
            "{} {} {} {}",
            planned.step.kind.name(),
            grant.tab,
            planned.target,
            without_query(&planned.tab.url)
        ));
        record.input_hash = before;
        record.output_hash = after;
        record.errored = decision.contains('.') || decision == expect::FAILED;
        if decision == expect::FAILED {
            record.policy_check_result = format!("refused {decision}");
        }
        record.detail = Some(format!(
            "lease {} of {agent}, turn {turn}; risk {}",
            grant.token,
            planned.risk.name()
        ));
        (self.options.record)(record);
    }
}

/// Returns the audit record of a missing or invalid lease.
pub(crate) fn refused(owner: &Owner, tab: &str, refusal: &LeaseError) -> AuditRecord {
    let code = refusal.code();
    let mut record = AuditRecord::new(AuditKind::Browser, now_ms(), code);
    record.session_id = Some(SessionId(owner.session.clone()));
    record.subject = Some(format!("lease {tab}"));
    record.errored = true;
    record.policy_check_result = format!("refused {code}");
    record.detail = Some(format!("{refusal}; {owner}, turn {}", owner.turn));
    record
}

/// Returns the content of a changed field, after a moment, because pages may change it back. `None` if it is gone.
async fn value_now(
    provider: &dyn Provider,
    planned: &Planned,
    done: &Done,
    begun: Instant,
) -> Option<String> {
    done.value.as_ref()?;
    tokio::time::sleep(VALUE_TIMEOUT.saturating_sub(begun.elapsed())).await;
    let Some(ActionTarget::Element(key)) = &planned.step.place else {
        return None;
    };
    let found = provider.target(&planned.tab.tab, key).await.ok()?;
    found.value
}

/// Returns the step to perform.
fn step_of(
    action: &Action,
    at: Option<ActionTarget>,
    to: Option<ActionTarget>,
    text: Option<String>,
) -> Step {
    let mut step = Step::of(action.action, LOAD_TIMEOUT);
    if action.action == Kind::Wait {
        let wait = Duration::from_millis(action.timeout_ms.unwrap_or(500));
        step.wait = wait.min(Duration::from_secs(10));
    }
    (step.place, step.to, step.text) = (at, to, text);
    step.values.clone_from(&action.values);
    step.url.clone_from(&action.url);
    step.by = action.by;
    step.accept = action.accept.unwrap_or(true);
    step.submit = action.submit;
    step.modifiers.clone_from(&action.modifiers);
    step.focus = action.focus;
    if let Some(button) = &action.button {
        step.button.clone_from(button);
    }
    step
}

/// Returns whether the page has changed.
fn has_changed(kind: Kind, before: Option<&Seen>, after: &Seen) -> bool {
    let text = |seen: &Seen| seen.snapshot.text();
    before.is_none_or(|it| verdict::has_changed(kind, &text(it), &text(after)))
        || !after.facts.requests.is_empty()
}

/// Returns the error for a stale element, with the name in the call.
fn named(error: BrowserError, reference: &str) -> BrowserError {
    match error {
        BrowserError::Stale { .. } if !reference.is_empty() => BrowserError::Stale {
            reference: reference.to_owned(),
        },
        other => other,
    }
}

/// Returns the SHA-256 of a state, in hexadecimal digits.
fn hash(snapshot: &Snapshot) -> String {
    Sha256::digest(snapshot.text())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Waits until the expectations of a call are met, up to their timeout.
pub(crate) async fn verified(
    browser: &Browser,
    provider: &dyn Provider,
    tab: &str,
    all: &[Expectation],
    wait: Duration,
    denies: Denies<'_>,
) -> Result<(Vec<Unmet>, Seen), BrowserError> {
    let begun = Instant::now();
    let mut last: Option<String> = None;
    loop {
        let mut seen = browser
            .observe(provider, tab, Mark::default(), denies)
            .await?;
        let text = seen.snapshot.text();
        seen.facts.stable = last.as_ref() == Some(&text);
        last = Some(text);
        let unmet = expect::unmet(all, &seen.facts);
        if unmet.is_empty() || begun.elapsed() >= wait {
            return Ok((unmet, seen));
        }
        tokio::time::sleep(POLL_PAUSE).await;
    }
}

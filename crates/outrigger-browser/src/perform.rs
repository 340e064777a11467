//! One action from its target to its verdict: references, fields, lease, the action, what is observed, what was expected of it.

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

/// How long a page may take to load after an action.
const LOAD_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a field has to hold what it was given.
const VALUE_TIMEOUT: Duration = Duration::from_millis(100);
/// Pause between two looks.
const POLL_PAUSE: Duration = Duration::from_millis(100);

/// An action that is about to be done, decided in full.
pub(crate) struct Planned {
    pub(crate) tab: TabInfo,
    pub(crate) step: Step,
    pub(crate) risk: Risk,
    /// The target in words: `e3 button "Pay"`.
    pub(crate) target: String,
    /// What of the user's the target holds.
    pub(crate) field: Option<&'static str>,
    /// The frames that it may reach: those of its elements, or all of the page's where it has none.
    pub(crate) frames: Vec<FrameSite>,
}

/// What an action is aimed at.
#[derive(Default)]
struct Aim {
    words: String,
    field: Option<FieldKind>,
    submits: bool,
}

/// What an action came to.
pub(crate) struct Outcome {
    pub(crate) status: &'static str,
    pub(crate) unmet: Vec<Unmet>,
    pub(crate) done: Done,
    pub(crate) seen: Option<Seen>,
    pub(crate) dialog: Option<Dialog>,
}

impl Outcome {
    /// Behind a dialog nothing that is expected can be looked at.
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

/// What was there before an action, and what is looked at after it.
#[derive(Clone, Copy)]
struct Earlier<'a> {
    seen: Option<&'a Seen>,
    /// Number of tabs.
    tabs: usize,
    /// What comes after it belongs to the action.
    mark: Mark,
    denies: Denies<'a>,
}

impl Browser {
    /// Decides what an action is about.
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

    /// Does what was decided. Between that and now a plugin and a person may have been asked: whose a secret's field is, is looked at again.
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

    /// Whether a tab is in a state in which something may be begun.
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

    /// What an action is aimed at.
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

    /// The line of an element in what was shown last.
    fn words(&self, tab: &str, reference: &str) -> Option<String> {
        let number = outrigger_browser_core::snapshot::number(reference)?;
        let shown = self.last_shown(tab)?;
        let line = shown.lines.iter().find(|it| it.reference == Some(number))?;
        Some(format!("e{number} {}", line.text))
    }

    /// Does it, and looks whether it had its effect.
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
        // A lease that does not count is written down where it is looked at.
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
                // It opened while it was looked at.
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

    /// What each kind of action is expected to lead to without being said.
    fn usual(&self, planned: &Planned, action: &Action, done: &Done) -> Option<Unmet> {
        let kind = planned.step.kind;
        let wanted = match kind {
            Kind::Select => done.chosen.as_deref(),
            _ => planned.step.text.as_deref(),
        };
        let is_kept = planned.field.is_some() || action.secret.is_some();
        verdict::unmet_field(kind, wanted, done.value.as_deref(), is_kept)
    }

    /// Writes an action into the audit: lease, target, hashes of what was seen before and after, verdict.
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

/// What the audit says of a lease that was not given, or does not count.
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

/// What a field that was changed holds now: pages change it back, also a moment later. `None` where it is gone.
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

/// What is done, in full.
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

/// Whether a page is another one than before.
fn has_changed(kind: Kind, before: Option<&Seen>, after: &Seen) -> bool {
    let text = |seen: &Seen| seen.snapshot.text();
    before.is_none_or(|it| verdict::has_changed(kind, &text(it), &text(after)))
        || !after.facts.requests.is_empty()
}

/// A stale element, under the name that the call gave it.
fn named(error: BrowserError, reference: &str) -> BrowserError {
    match error {
        BrowserError::Stale { .. } if !reference.is_empty() => BrowserError::Stale {
            reference: reference.to_owned(),
        },
        other => other,
    }
}

/// SHA-256 of what was seen, in hexadecimal digits.
fn hash(snapshot: &Snapshot) -> String {
    Sha256::digest(snapshot.text())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Whether expectations of a call are met, now or within their time.
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

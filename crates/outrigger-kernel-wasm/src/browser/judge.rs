//! What an action has come to, by the page that was observed last.

use outrigger_browser_core::action::Kind;
use outrigger_browser_core::expect::{self, Expectation, Unmet};
use outrigger_browser_core::verdict::{self, Attempt};
use outrigger_protocol::Millis;
use serde::Deserialize;
use serde_json::json;

use super::pages::Pages;
use crate::{Answer, Failure};

/// An action that was sent, and what its host knows of its effect.
#[derive(Deserialize)]
pub(crate) struct Judged {
    tab: String,
    kind: Kind,
    #[serde(default)]
    expect: Vec<Expectation>,
    timeout_ms: Option<u64>,
    /// Text of the page before it; absent where it could not be looked at.
    before: Option<String>,
    /// A tab, a request or a download came of it.
    #[serde(default)]
    came: bool,
    /// Text that was typed, labels of options that were chosen.
    wanted: Option<String>,
    /// What the field holds now.
    holds: Option<String>,
    /// The field is the user's own, or a secret was typed.
    #[serde(default)]
    is_kept: bool,
    /// A dialog is open: nothing of the page can be looked at.
    dialog: Option<Dialog>,
    /// Time since the action.
    elapsed: Millis,
}

#[derive(Deserialize)]
struct Dialog {
    kind: String,
    message: String,
}

impl Pages {
    /// Answers with the status, `null` while it may still change, and with what is not met.
    pub(crate) fn judge(&self, it: &Judged) -> Answer {
        if it.expect.iter().any(Expectation::is_empty) {
            return Err(Failure::new("kernel.request", "`expect` is empty"));
        }
        let field = verdict::unmet_field(
            it.kind,
            it.wanted.as_deref(),
            it.holds.as_deref(),
            it.is_kept,
        )
        .into_iter();
        if let Some(dialog) = &it.dialog {
            let expected = it.expect.iter().map(|it| json!(it).to_string());
            let unmet: Vec<Unmet> = verdict::unmet_behind(&dialog.kind, &dialog.message, expected)
                .chain(field)
                .collect();
            let status = if unmet.is_empty() {
                verdict::DONE
            } else {
                expect::FAILED
            };
            return Ok(said(Some(status), &unmet));
        }
        let (facts, now) = self.observed(&it.tab)?;
        let mut unmet = expect::unmet(&it.expect, facts);
        unmet.extend(field);
        let is_other = |before: &String| verdict::has_changed(it.kind, before, &now);
        let changed = it.came || it.before.as_ref().is_none_or(is_other);
        let attempt = Attempt {
            kind: it.kind,
            expects: !it.expect.is_empty(),
            timeout_ms: it.timeout_ms,
        };
        let status = attempt.verdict(unmet.is_empty(), changed, it.elapsed);
        Ok(said(status, &unmet))
    }
}

fn said(status: Option<&str>, unmet: &[Unmet]) -> String {
    let sentence = if unmet.is_empty() {
        String::new()
    } else {
        expect::sentence(unmet)
    };
    json!({ "status": status, "unmet": unmet, "sentence": sentence }).to_string()
}

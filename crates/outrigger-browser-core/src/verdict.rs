//! The verdict about an action (C12) from later observations, for all providers.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::action::Kind;
use crate::expect::{FAILED, MAX_WAIT_MS, UNCHANGED, Unmet, VERIFIED, WAIT_MS};

/// How long to wait for an effect of an action, in milliseconds.
pub const EFFECT_MS: u64 = 600;
/// Status of an action with an effect and without expectations.
pub const DONE: &str = "done";

/// Properties of a sent action that its verdict depends on.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// Kind of the action.
    pub kind: Kind,
    /// Whether the call has expectations.
    pub expects: bool,
    /// Timeout of the expectations, in milliseconds; `None`: [`WAIT_MS`].
    pub timeout_ms: Option<u64>,
}

impl Attempt {
    /// Returns the status for the current observation; `None` if it may still change.
    ///
    /// `met`: all expectations are met, including implicit ones; `changed`: something observable
    /// changed; `elapsed_ms`: the time since the action.
    #[must_use]
    pub fn verdict(&self, met: bool, changed: bool, elapsed_ms: u64) -> Option<&'static str> {
        let wait = self.timeout_ms.unwrap_or(WAIT_MS).min(MAX_WAIT_MS);
        let has_had_time = elapsed_ms >= EFFECT_MS;
        if !met {
            let is_late = elapsed_ms >= wait || (!self.expects && has_had_time);
            return is_late.then_some(FAILED);
        }
        if self.expects {
            return Some(VERIFIED);
        }
        if changed || !self.kind.should_change_something() {
            return Some(DONE);
        }
        has_had_time.then_some(UNCHANGED)
    }
}

/// Compares the text of a page with that before an action. Moving the focus is not an effect of a click; for a key it may
/// be the only one.
#[must_use]
pub fn has_changed(kind: Kind, before: &str, after: &str) -> bool {
    match kind {
        Kind::Press => before != after,
        _ => before.replace(" focused", "") != after.replace(" focused", ""),
    }
}

/// Implicit expectation of some actions: a field contains what was entered.
///
/// `wanted` is the typed text, or the labels of the selected options; `holds` is the current content of the field, `None`
/// if the action has none. Neither is shown if the field is protected (`is_kept`).
#[must_use]
pub fn unmet_field(
    kind: Kind,
    wanted: Option<&str>,
    holds: Option<&str>,
    is_kept: bool,
) -> Option<Unmet> {
    let wanted = match kind {
        Kind::Fill | Kind::Type | Kind::Select => wanted?,
        Kind::Check => "true",
        Kind::Uncheck => "false",
        _ => return None,
    };
    let holds = holds?;
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_met = match kind {
        Kind::Type => flat(holds).contains(&flat(wanted)),
        _ => flat(holds) == flat(wanted),
    };
    let shown = |text: &str| {
        if is_kept {
            String::from("(not shown)")
        } else {
            format!("{text:?}")
        }
    };
    (!is_met).then(|| Unmet {
        expected: format!("the field to hold {}", shown(wanted)),
        seen: shown(holds),
    })
}

/// Returns the unmet expectations while a dialog is open, which prevents observation. `expected` are the expectations as
/// given in the call.
pub fn unmet_behind(
    kind: &str,
    message: &str,
    expected: impl Iterator<Item = String>,
) -> impl Iterator<Item = Unmet> {
    let seen = format!("a dialog ({kind}) is open: {message}");
    expected.map(move |expected| Unmet {
        expected,
        seen: seen.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_by_table() {
        let (click, fill) = (Kind::Click, Kind::Fill);
        for (kind, expects, timeout_ms, (met, changed, elapsed), wanted) in [
            (click, false, None, (true, true, 0), Some("done")),
            (click, false, None, (true, false, 599), None),
            (click, false, None, (true, false, 600), Some("unchanged")),
            (fill, false, None, (true, false, 0), Some("done")),
            (fill, false, None, (false, true, 599), None),
            (fill, false, None, (false, true, 600), Some("failed_verify")),
            (click, true, None, (true, false, 0), Some("verified")),
            (click, true, None, (false, true, 4_999), None),
            (
                click,
                true,
                None,
                (false, true, 5_000),
                Some("failed_verify"),
            ),
            (
                click,
                true,
                Some(0),
                (false, true, 0),
                Some("failed_verify"),
            ),
            (click, true, Some(90_000), (false, true, 59_999), None),
            (
                click,
                true,
                Some(90_000),
                (false, true, 60_000),
                Some("failed_verify"),
            ),
        ] {
            let attempt = Attempt {
                kind,
                expects,
                timeout_ms,
            };
            assert_eq!(
                attempt.verdict(met, changed, elapsed),
                wanted,
                "{attempt:?} {met} {changed} {elapsed}"
            );
        }
    }

    #[test]
    fn the_focus_is_an_effect_of_a_key_only() {
        let (before, after) = ("button \"Pay\"", "button \"Pay\" focused");
        assert!(has_changed(Kind::Press, before, after));
        assert!(!has_changed(Kind::Click, before, after));
        assert!(has_changed(Kind::Click, before, "button \"Paid\""));
    }

    #[test]
    fn fields_hold_what_was_put_into_them() {
        let met = |kind, wanted, holds| unmet_field(kind, wanted, holds, false).is_none();
        assert!(met(Kind::Fill, Some("a b"), Some(" a  b ")));
        assert!(!met(Kind::Fill, Some("a"), Some("ab")));
        assert!(met(Kind::Type, Some("b"), Some("ab")));
        assert!(met(Kind::Select, Some("Large"), Some("Large")));
        assert!(!met(Kind::Select, Some("Large"), Some("Small")));
        assert!(met(Kind::Check, None, Some("true")));
        assert!(!met(Kind::Uncheck, None, Some("true")));
        assert!(met(Kind::Fill, Some("a"), None));
        assert!(met(Kind::Click, Some("a"), Some("b")));
        let unmet = unmet_field(Kind::Fill, Some("hunter22"), Some("x"), true).unwrap();
        assert_eq!(
            (unmet.expected.as_str(), unmet.seen.as_str()),
            ("the field to hold (not shown)", "(not shown)")
        );
    }
}

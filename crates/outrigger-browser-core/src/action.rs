//! Actions on a page, as `browser_action` accepts them, and their risks.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::expect::Expectation;

/// Kind of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say what they do")]
pub enum Kind {
    Click,
    DoubleClick,
    Hover,
    Drag,
    Type,
    Fill,
    Select,
    Check,
    Uncheck,
    Press,
    Scroll,
    Upload,
    Download,
    Dialog,
    Navigate,
    Back,
    Forward,
    Reload,
    Wait,
    TabNew,
    TabClose,
    TabSwitch,
}

/// Risk of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// It changes only the viewport.
    Look,
    /// It navigates.
    Navigate,
    /// It changes the page.
    Input,
    /// It may submit or buy something.
    Submit,
    /// It uploads or downloads a file.
    File,
}

impl Risk {
    /// Returns the name in hooks and the audit.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Look => "look",
            Self::Navigate => "navigate",
            Self::Input => "input",
            Self::Submit => "submit",
            Self::File => "file",
        }
    }
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 22] = [
        Self::Click,
        Self::DoubleClick,
        Self::Hover,
        Self::Drag,
        Self::Type,
        Self::Fill,
        Self::Select,
        Self::Check,
        Self::Uncheck,
        Self::Press,
        Self::Scroll,
        Self::Upload,
        Self::Download,
        Self::Dialog,
        Self::Navigate,
        Self::Back,
        Self::Forward,
        Self::Reload,
        Self::Wait,
        Self::TabNew,
        Self::TabClose,
        Self::TabSwitch,
    ];

    /// Returns the name in the tool's arguments.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Click => "click",
            Self::DoubleClick => "double_click",
            Self::Hover => "hover",
            Self::Drag => "drag",
            Self::Type => "type",
            Self::Fill => "fill",
            Self::Select => "select",
            Self::Check => "check",
            Self::Uncheck => "uncheck",
            Self::Press => "press",
            Self::Scroll => "scroll",
            Self::Upload => "upload",
            Self::Download => "download",
            Self::Dialog => "dialog",
            Self::Navigate => "navigate",
            Self::Back => "back",
            Self::Forward => "forward",
            Self::Reload => "reload",
            Self::Wait => "wait",
            Self::TabNew => "tab_new",
            Self::TabClose => "tab_close",
            Self::TabSwitch => "tab_switch",
        }
    }

    /// Returns whether it needs a target on the page.
    #[must_use]
    pub const fn needs_target(self) -> bool {
        matches!(
            self,
            Self::Click
                | Self::DoubleClick
                | Self::Hover
                | Self::Drag
                | Self::Type
                | Self::Fill
                | Self::Select
                | Self::Check
                | Self::Uncheck
                | Self::Upload
                | Self::Download
        )
    }

    /// Returns whether it changes something and therefore needs a lease (C9, 6).
    #[must_use]
    pub const fn is_write(self) -> bool {
        !matches!(self, Self::Wait)
    }

    /// Returns its risk. `submits`: its target submits a form, or has a name like "buy", "pay" or "delete".
    #[must_use]
    pub const fn risk(self, submits: bool) -> Risk {
        match self {
            Self::Hover | Self::Scroll | Self::Wait | Self::TabSwitch => Risk::Look,
            Self::Navigate
            | Self::Back
            | Self::Forward
            | Self::Reload
            | Self::TabNew
            | Self::TabClose => Risk::Navigate,
            Self::Upload | Self::Download => Risk::File,
            Self::Click | Self::DoubleClick | Self::Press | Self::Dialog if submits => Risk::Submit,
            _ => Risk::Input,
        }
    }

    /// Returns whether it is reported if the page does not change afterwards.
    #[must_use]
    pub const fn should_change_something(self) -> bool {
        matches!(
            self,
            Self::Click | Self::DoubleClick | Self::Drag | Self::Press | Self::Dialog
        )
    }
}

/// Words in names of buttons for actions that cannot be undone.
const GRAVE: [&str; 16] = [
    "submit",
    "buy",
    "pay",
    "order",
    "purchase",
    "delete",
    "remove",
    "send",
    "confirm",
    "transfer",
    "publish",
    "post",
    "sign",
    "checkout",
    "unsubscribe",
    "cancel",
];

/// Returns whether a name indicates that something is submitted or cannot be undone.
#[must_use]
pub fn is_grave(name: &str) -> bool {
    let lower = name.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    words.any(|word| GRAVE.contains(&word))
}

/// A point of the viewport, in CSS pixels from its upper left corner.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// From the left.
    pub x: f64,
    /// From the top.
    pub y: f64,
}

/// An action with its expectations.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// Kind.
    pub action: Kind,
    /// Tab; default: the session's current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tab: Option<String>,
    /// A reference of a snapshot, such as `e12`.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// End of a drag: a reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Instead of a reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Point>,
    /// End of a drag, instead of a reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_at: Option<Point>,
    /// Text to type, key to press, or answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Name of a secret of the user to type instead of a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Options of a list to select, by label or value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// An address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// A file: to upload, or the destination of a download.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Pixels to scroll, down and to the right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Point>,
    /// Confirm the dialog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept: Option<bool>,
    /// Press Enter after typing.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub submit: bool,
    /// Modifier key: `Control`, `Shift`, `Alt`, `Meta`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modifiers: Vec<String>,
    /// `right` or `middle` instead of `left`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub button: Option<String>,
    /// Bring the tab to the front, which takes the user's focus.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub focus: bool,
    /// Expectations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<Expectation>,
    /// Timeout of the expectations, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl Action {
    /// Returns what is missing.
    ///
    /// # Errors
    /// Describes it for the model.
    pub fn check(&self) -> Result<(), &'static str> {
        let needs = |there: bool, what| if there { Ok(()) } else { Err(what) };
        if self.action.needs_target() {
            needs(
                self.target.is_some() || self.at.is_some(),
                "`ref` is missing: the element of the snapshot",
            )?;
        }
        let by_reference = matches!(
            self.action,
            Kind::Fill | Kind::Select | Kind::Check | Kind::Uncheck | Kind::Upload
        );
        if by_reference {
            needs(
                self.target.is_some(),
                "`ref` is missing: this action does not take coordinates",
            )?;
        }
        if self.secret.is_some() {
            needs(
                matches!(self.action, Kind::Type | Kind::Fill),
                "a secret is typed by `type` and `fill` alone",
            )?;
            needs(
                self.target.is_some(),
                "`ref` is missing: a secret is typed in a field of the snapshot, not at coordinates",
            )?;
        }
        match self.action {
            Kind::Type | Kind::Fill => needs(
                self.text.is_some() != self.secret.is_some(),
                "either `text` or `secret` says what is typed",
            ),
            Kind::Press => needs(
                self.text.is_some(),
                "`text` is missing: the key, as `Enter` or `Control+a`",
            ),
            Kind::Select => needs(
                !self.values.is_empty(),
                "`values` is missing: the options that are chosen",
            ),
            Kind::Drag => needs(
                self.to.is_some() || self.to_at.is_some(),
                "`to` is missing: where the drag ends",
            ),
            Kind::Navigate => needs(self.url.is_some(), "`url` is missing"),
            Kind::Upload | Kind::Download => {
                needs(self.path.is_some(), "`path` is missing: the file")
            }
            Kind::TabSwitch => needs(self.tab.is_some(), "`tab` is missing"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn actions_are_read_strictly_and_say_what_is_missing() {
        for (value, want) in [
            (json!({"action": "click", "ref": "e1"}), Ok(())),
            (json!({"action": "click", "at": {"x": 1, "y": 2}}), Ok(())),
            (
                json!({"action": "click"}),
                Err("`ref` is missing: the element of the snapshot"),
            ),
            (
                json!({"action": "fill", "at": {"x": 1, "y": 2}, "text": ""}),
                Err("`ref` is missing: this action does not take coordinates"),
            ),
            (
                json!({"action": "fill", "ref": "e1"}),
                Err("either `text` or `secret` says what is typed"),
            ),
            (
                json!({"action": "fill", "ref": "e1", "text": "a", "secret": "b"}),
                Err("either `text` or `secret` says what is typed"),
            ),
            (
                json!({"action": "type", "at": {"x": 1, "y": 2}, "secret": "S"}),
                Err(
                    "`ref` is missing: a secret is typed in a field of the snapshot, not at coordinates",
                ),
            ),
            (
                json!({"action": "press", "ref": "e1", "text": "a", "secret": "S"}),
                Err("a secret is typed by `type` and `fill` alone"),
            ),
            (json!({"action": "wait"}), Ok(())),
        ] {
            let action: Action = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(action.check(), want, "{value}");
        }
        for value in [
            json!({"action": "clik"}),
            json!({"action": "click", "reff": "e1"}),
        ] {
            assert!(serde_json::from_value::<Action>(value).is_err());
        }
    }

    #[test]
    fn names_of_kinds_are_those_of_the_wire_and_risks_are_told_apart() {
        for kind in Kind::ALL {
            assert_eq!(json!(kind), json!(kind.name()));
        }
        assert_eq!(Kind::Click.risk(true), Risk::Submit);
        assert_eq!(Kind::Click.risk(false), Risk::Input);
        assert_eq!(Kind::Hover.risk(true), Risk::Look);
        assert!(
            is_grave("Pay now") && is_grave("Delete…") && !is_grave("Payload") && !is_grave("Next")
        );
    }
}

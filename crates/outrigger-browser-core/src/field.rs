//! Protected form fields: passwords, codes, cards. They are neither read nor typed in without a
//! grant, and their values come from the user's secrets, by name.

use serde::{Deserialize, Serialize};

/// Kind of a protected field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldKind {
    /// A password.
    Password,
    /// A one-time code.
    Code,
    /// Number, code or date of a payment card.
    Card,
}

impl FieldKind {
    /// Returns the name in settings, hooks and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::Code => "code",
            Self::Card => "card",
        }
    }
}

/// Returns whether a key may be pressed while a protected field has the focus, because it does not change the field.
#[must_use]
pub fn takes_key(key: &str) -> bool {
    matches!(key, "Enter" | "Tab" | "Shift+Tab" | "Escape")
}

/// Attributes of a field.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attributes<'a> {
    /// `type`.
    pub kind: &'a str,
    /// `autocomplete`.
    pub autocomplete: &'a str,
    /// `name`.
    pub name: &'a str,
    /// `id`.
    pub id: &'a str,
}

/// Parts of names of card fields without `autocomplete`.
const CARD_NAMES: [&str; 9] = [
    "cardnumber",
    "card-number",
    "card_number",
    "ccnumber",
    "cc-number",
    "cc_number",
    "cvc",
    "cvv",
    "creditcard",
];

/// Returns the kind of a protected field, if it is one.
#[must_use]
pub fn kind_of(field: Attributes<'_>) -> Option<FieldKind> {
    if field.kind.eq_ignore_ascii_case("password") {
        return Some(FieldKind::Password);
    }
    for word in field.autocomplete.split_ascii_whitespace() {
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        if is("current-password") || is("new-password") {
            return Some(FieldKind::Password);
        }
        if is("one-time-code") {
            return Some(FieldKind::Code);
        }
        if word
            .get(..3)
            .is_some_and(|it| it.eq_ignore_ascii_case("cc-"))
        {
            return Some(FieldKind::Card);
        }
    }
    let named = |text: &str| {
        let text = text.to_ascii_lowercase();
        CARD_NAMES.iter().any(|part| text.contains(part))
    };
    (named(field.name) || named(field.id)).then_some(FieldKind::Card)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_by_table() {
        let of = |kind, autocomplete, name| {
            kind_of(Attributes {
                kind,
                autocomplete,
                name,
                id: "",
            })
        };
        assert_eq!(of("PASSWORD", "", ""), Some(FieldKind::Password));
        assert_eq!(
            of("text", "section-a New-Password", ""),
            Some(FieldKind::Password)
        );
        assert_eq!(of("text", "one-time-code", ""), Some(FieldKind::Code));
        assert_eq!(of("tel", "billing cc-number", ""), Some(FieldKind::Card));
        assert_eq!(of("text", "", "payment[cardNumber]"), Some(FieldKind::Card));
        assert_eq!(of("text", "username", "q"), None);
        assert_eq!(of("", "é-", ""), None);
    }
}

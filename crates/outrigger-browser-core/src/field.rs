//! Fields of forms that hold what is nobody's but the user's: passwords, codes, cards. They are neither read nor typed in without a
//! grant, and what is typed comes from the user's secrets, by name.

use serde::{Deserialize, Serialize};

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldKind {
    /// A password.
    Password,
    /// A code that is valid once.
    Code,
    /// Number, code or date of a payment card.
    Card,
}

impl FieldKind {
    /// As settings, hooks and messages name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::Code => "code",
            Self::Card => "card",
        }
    }
}

/// Whether a key may be pressed while a field of the user's has the focus: it leaves the field as it is.
#[must_use]
pub fn takes_key(key: &str) -> bool {
    matches!(key, "Enter" | "Tab" | "Shift+Tab" | "Escape")
}

/// What a page says of a field: its attributes.
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

/// Parts of names by which pages call fields of cards that do not say so in `autocomplete`.
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

/// What of the user's a field holds, if anything.
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

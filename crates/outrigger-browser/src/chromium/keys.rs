//! Keys by name, in the form of the DevTools protocol.

/// A key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Press {
    pub(super) key: String,
    pub(super) code: String,
    pub(super) number: u32,
    /// The text that it types.
    pub(super) text: String,
}

/// Name, code, number, text.
const NAMED: [(&str, &str, u32, &str); 29] = [
    ("Enter", "Enter", 13, "\r"),
    ("Tab", "Tab", 9, ""),
    ("Escape", "Escape", 27, ""),
    ("Backspace", "Backspace", 8, ""),
    ("Delete", "Delete", 46, ""),
    ("Insert", "Insert", 45, ""),
    ("Home", "Home", 36, ""),
    ("End", "End", 35, ""),
    ("PageUp", "PageUp", 33, ""),
    ("PageDown", "PageDown", 34, ""),
    ("ArrowUp", "ArrowUp", 38, ""),
    ("ArrowDown", "ArrowDown", 40, ""),
    ("ArrowLeft", "ArrowLeft", 37, ""),
    ("ArrowRight", "ArrowRight", 39, ""),
    ("Control", "ControlLeft", 17, ""),
    ("Shift", "ShiftLeft", 16, ""),
    ("Alt", "AltLeft", 18, ""),
    ("Meta", "MetaLeft", 91, ""),
    (" ", "Space", 32, " "),
    ("F1", "F1", 112, ""),
    ("F2", "F2", 113, ""),
    ("F3", "F3", 114, ""),
    ("F4", "F4", 115, ""),
    ("F5", "F5", 116, ""),
    ("F6", "F6", 117, ""),
    ("F10", "F10", 121, ""),
    ("F11", "F11", 122, ""),
    ("F12", "F12", 123, ""),
    ("ContextMenu", "ContextMenu", 93, ""),
];

/// Other names of keys.
const ALIASES: [(&str, &str); 8] = [
    ("Space", " "),
    ("Return", "Enter"),
    ("Esc", "Escape"),
    ("Up", "ArrowUp"),
    ("Down", "ArrowDown"),
    ("Left", "ArrowLeft"),
    ("Right", "ArrowRight"),
    ("Ctrl", "Control"),
];

/// Bits of held modifier keys.
pub(super) fn modifiers<'a>(held: impl IntoIterator<Item = &'a str>) -> Option<u32> {
    let mut bits = 0;
    for name in held {
        bits |= match name {
            "Alt" => 1,
            "Control" | "Ctrl" => 2,
            "Meta" | "Command" => 4,
            "Shift" => 8,
            _ => return None,
        };
    }
    Some(bits)
}

/// Returns a key by its name, or for a single character.
pub(super) fn key(name: &str) -> Option<Press> {
    let name = ALIASES
        .iter()
        .find(|(alias, _)| alias.eq_ignore_ascii_case(name))
        .map_or(name, |(_, name)| name);
    let named = NAMED.iter().find(|(it, ..)| it.eq_ignore_ascii_case(name));
    if let Some((key, code, number, text)) = named {
        return Some(Press {
            key: (*key).into(),
            code: (*code).into(),
            number: *number,
            text: (*text).into(),
        });
    }
    let mut chars = name.chars();
    let (Some(c), None) = (chars.next(), chars.next()) else {
        return None;
    };
    let upper = c.to_ascii_uppercase();
    let (code, number) = match upper {
        'A'..='Z' => (format!("Key{upper}"), u32::from(upper)),
        '0'..='9' => (format!("Digit{upper}"), u32::from(upper)),
        _ => (String::new(), 0),
    };
    Some(Press {
        key: c.into(),
        code,
        number,
        text: c.into(),
    })
}

/// Parses a key with modifiers, such as `Control+Shift+a`.
pub(super) fn chord(text: &str) -> Option<(u32, Press)> {
    let (held, last) = match text.strip_suffix("++") {
        Some(held) => (held, "+"),
        None => text
            .rsplit_once('+')
            .filter(|(held, _)| !held.is_empty())
            .unwrap_or(("", text)),
    };
    let bits = modifiers(held.split('+').filter(|it| !it.is_empty()))?;
    let mut press = key(last)?;
    if bits & !8 != 0 {
        press.text.clear();
    }
    Some((bits, press))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_by_name() {
        assert_eq!(chord("Enter").unwrap().1.text, "\r");
        let (bits, press) = chord("Control+a").unwrap();
        assert_eq!(
            (bits, press.code.as_str(), press.number, press.text.as_str()),
            (2, "KeyA", 65, "")
        );
        assert_eq!(chord("Shift+Tab").unwrap().0, 8);
        assert_eq!(chord("Control++").unwrap().1.key, "+");
        assert_eq!(chord("+").unwrap().1.key, "+");
        assert_eq!(chord("é").unwrap().1.text, "é");
        for none in ["", "Enterr", "Hyper+a"] {
            assert_eq!(chord(none), None, "{none}");
        }
    }
}

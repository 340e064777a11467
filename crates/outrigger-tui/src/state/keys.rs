//! Key bindings: the table of actions with the user's changes.

use std::collections::BTreeMap;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::actions::{Action, TABLE};

/// A key with its modifiers, with or without the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stroke {
    leader: bool,
    code: KeyCode,
    modifiers: KeyModifiers,
}

/// Keys and their actions.
#[derive(Clone, Debug)]
pub struct Keymap {
    strokes: Vec<(Stroke, Action)>,
    shown: BTreeMap<&'static str, String>,
}

impl Default for Keymap {
    fn default() -> Self {
        let (keymap, _) = Self::new(&BTreeMap::new());
        keymap
    }
}

impl Keymap {
    /// Creates the defaults with the user's changes (name to keys, separated by commas, or `none`), and the problems of
    /// these.
    #[must_use]
    pub fn new(changes: &BTreeMap<String, String>) -> (Self, Vec<String>) {
        let mut problems: Vec<String> = changes
            .keys()
            .filter(|name| !TABLE.iter().any(|(known, ..)| known == name))
            .map(|name| format!("`{name}` is the name of no key"))
            .collect();
        let mut keymap = Self {
            strokes: Vec::new(),
            shown: BTreeMap::new(),
        };
        for (name, default, action, _) in TABLE {
            let keys = changes.get(*name).map_or(*default, String::as_str);
            keymap.shown.insert(name, keys.to_owned());
            for key in keys
                .split(',')
                .map(str::trim)
                .filter(|key| *key != "none" && !key.is_empty())
            {
                match stroke(key) {
                    Some(stroke) => keymap.strokes.push((stroke, *action)),
                    None => problems.push(format!("`{key}` is not a key (at `{name}`)")),
                }
            }
        }
        (keymap, problems)
    }

    /// Returns the keys of an action, by its name, as they are pressed: `ctrl+x l` for `<leader>l`.
    #[must_use]
    pub fn keys(&self, name: &str) -> String {
        let set = |name: &str| self.shown.get(name).map_or("", String::as_str);
        let leader = set("leader").split(',').next().unwrap_or_default();
        let pressed = format!("{} ", leader.trim());
        set(name).replace("<leader>", &pressed).replace(',', ", ")
    }

    /// Returns the first key of an action.
    #[must_use]
    pub fn key(&self, name: &str) -> String {
        self.keys(name)
            .split(", ")
            .next()
            .unwrap_or_default()
            .to_owned()
    }

    /// Returns the possible actions of a key, the most specific first: a key may have another meaning in an empty prompt.
    pub fn actions(&self, leader: bool, key: &KeyEvent) -> impl Iterator<Item = Action> {
        let mut modifiers =
            key.modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT);
        // A capital is its own key that includes shift.
        if matches!(key.code, KeyCode::Char(_)) {
            modifiers -= KeyModifiers::SHIFT;
        }
        let wanted = Stroke {
            leader,
            code: key.code,
            modifiers,
        };
        self.strokes
            .iter()
            .filter(move |(it, _)| *it == wanted)
            .map(|(_, action)| *action)
    }
}

/// Returns the problems of changed keys (name to keys): each names the unknown key or action.
#[must_use]
pub fn key_problems(changes: &BTreeMap<String, String>) -> Vec<String> {
    Keymap::new(changes).1
}

fn stroke(text: &str) -> Option<Stroke> {
    let (leader, mut rest) = match text.strip_prefix("<leader>") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut modifiers = KeyModifiers::NONE;
    while let Some((modifier, key)) = rest.split_once('+').filter(|(_, key)| !key.is_empty()) {
        modifiers |= match modifier {
            "ctrl" => KeyModifiers::CONTROL,
            "alt" | "meta" | "option" => KeyModifiers::ALT,
            "shift" => KeyModifiers::SHIFT,
            _ => return None,
        };
        rest = key;
    }
    let code = match rest {
        "return" | "enter" => KeyCode::Enter,
        "escape" | "esc" => KeyCode::Esc,
        "tab" if modifiers.contains(KeyModifiers::SHIFT) => KeyCode::BackTab,
        "tab" => KeyCode::Tab,
        "backspace" => KeyCode::Backspace,
        "delete" => KeyCode::Delete,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "pageup" => KeyCode::PageUp,
        "pagedown" => KeyCode::PageDown,
        "space" => KeyCode::Char(' '),
        other => match other.strip_prefix('f').and_then(|n| n.parse().ok()) {
            Some(number @ 1..=12) => KeyCode::F(number),
            _ => {
                let mut characters = other.chars();
                let first = characters.next().filter(|_| characters.next().is_none())?;
                KeyCode::Char(first)
            }
        },
    };
    Some(Stroke {
        leader,
        code,
        modifiers,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(
        keymap: &Keymap,
        leader: bool,
        code: KeyCode,
        modifiers: KeyModifiers,
    ) -> Option<Action> {
        keymap
            .actions(leader, &KeyEvent::new(code, modifiers))
            .next()
    }

    #[test]
    fn the_defaults_are_sound_and_opencodes() {
        let (keymap, problems) = Keymap::new(&BTreeMap::new());
        assert_eq!(problems, Vec::<String>::new());
        let ctrl = KeyModifiers::CONTROL;
        for (leader, code, modifiers, action) in [
            (false, KeyCode::Char('x'), ctrl, Action::Leader),
            (
                true,
                KeyCode::Char('n'),
                KeyModifiers::NONE,
                Action::NewSession,
            ),
            (
                true,
                KeyCode::Char('l'),
                KeyModifiers::NONE,
                Action::Sessions,
            ),
            (false, KeyCode::Tab, KeyModifiers::NONE, Action::NextAgent),
            (
                false,
                KeyCode::BackTab,
                KeyModifiers::SHIFT,
                Action::PreviousAgent,
            ),
            (false, KeyCode::Enter, KeyModifiers::SHIFT, Action::Newline),
            (false, KeyCode::Char('p'), ctrl, Action::Commands),
        ] {
            let shift = matches!(code, KeyCode::BackTab);
            let found = first(&keymap, leader, code, modifiers);
            assert_eq!(found, Some(action), "{code:?} {shift}");
        }
        assert_eq!(
            first(&keymap, false, KeyCode::Char('n'), KeyModifiers::NONE),
            None
        );
    }

    #[test]
    fn keys_can_be_changed_and_mistakes_are_named() {
        let changes = [
            ("session_new", "ctrl+n,f5"),
            ("app_exit", "none"),
            ("nothing", "a"),
            ("input_yank", "hyper+y"),
        ]
        .map(|(name, keys)| (name.to_owned(), keys.to_owned()))
        .into();
        let (keymap, problems) = Keymap::new(&changes);
        assert_eq!(
            problems,
            [
                "`nothing` is the name of no key",
                "`hyper+y` is not a key (at `input_yank`)"
            ]
        );
        assert_eq!(
            first(&keymap, false, KeyCode::Char('n'), KeyModifiers::CONTROL),
            Some(Action::NewSession)
        );
        assert_eq!(
            first(&keymap, true, KeyCode::Char('n'), KeyModifiers::NONE),
            None
        );
        assert_eq!(
            first(&keymap, true, KeyCode::Char('q'), KeyModifiers::NONE),
            None
        );
    }
}

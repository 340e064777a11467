//! Which key does what: OpenCode's defaults, which the user can change.

use std::collections::BTreeMap;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::editor::To;

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table below says what each does")]
pub enum Action {
    Submit,
    Newline,
    Clear,
    Exit,
    Interrupt,
    Leader,
    Move(To),
    Delete(To),
    Yank,
    Undo,
    Redo,
    HistoryPrevious,
    HistoryNext,
    HistorySearch,
    PageUp,
    PageDown,
    HalfPageUp,
    HalfPageDown,
    LineUp,
    LineDown,
    First,
    Last,
    Copy,
    UndoMessage,
    RedoMessage,
    NewSession,
    Sessions,
    Timeline,
    Fork,
    Compact,
    Models,
    Agents,
    NextAgent,
    PreviousAgent,
    Commands,
    Themes,
    Status,
    Thinking,
    Details,
    Suspend,
    Help,
}

/// Names, default keys and actions. The names are OpenCode's where it has the action.
pub const TABLE: &[(&str, &str, Action, &str)] = &[
    (
        "input_submit",
        "return",
        Action::Submit,
        "send the prompt; during a turn the model reads it at its next step",
    ),
    (
        "input_newline",
        "shift+return,ctrl+return,alt+return,ctrl+j",
        Action::Newline,
        "a new line",
    ),
    (
        "input_clear",
        "ctrl+c",
        Action::Clear,
        "clear the prompt; with an empty one: interrupt, then leave",
    ),
    (
        "app_exit",
        "ctrl+d,<leader>q",
        Action::Exit,
        "leave (ctrl+d with an empty prompt)",
    ),
    (
        "session_interrupt",
        "escape",
        Action::Interrupt,
        "interrupt the turn",
    ),
    ("leader", "ctrl+x", Action::Leader, "the leader key"),
    (
        "input_move_left",
        "left,ctrl+b",
        Action::Move(To::Left),
        "a character back",
    ),
    (
        "input_move_right",
        "right,ctrl+f",
        Action::Move(To::Right),
        "a character on",
    ),
    (
        "input_word_backward",
        "alt+b,alt+left,ctrl+left",
        Action::Move(To::WordLeft),
        "a word back",
    ),
    (
        "input_word_forward",
        "alt+f,alt+right,ctrl+right",
        Action::Move(To::WordRight),
        "a word on",
    ),
    (
        "input_line_home",
        "ctrl+a",
        Action::Move(To::LineStart),
        "to the start of the line",
    ),
    (
        "input_line_end",
        "ctrl+e",
        Action::Move(To::LineEnd),
        "to the end of the line",
    ),
    (
        "input_buffer_home",
        "alt+<",
        Action::Move(To::Start),
        "to the start of the prompt",
    ),
    (
        "input_buffer_end",
        "alt+>",
        Action::Move(To::End),
        "to the end of the prompt",
    ),
    (
        "input_backspace",
        "backspace,shift+backspace,ctrl+h",
        Action::Delete(To::Left),
        "delete a character back",
    ),
    (
        "input_delete",
        "delete,ctrl+d",
        Action::Delete(To::Right),
        "delete a character",
    ),
    (
        "input_delete_word_backward",
        "ctrl+w,alt+backspace,ctrl+backspace",
        Action::Delete(To::WordLeft),
        "delete a word back",
    ),
    (
        "input_delete_word_forward",
        "alt+d,alt+delete",
        Action::Delete(To::WordRight),
        "delete a word",
    ),
    (
        "input_delete_to_line_start",
        "ctrl+u",
        Action::Delete(To::LineStart),
        "delete to the start of the line",
    ),
    (
        "input_delete_to_line_end",
        "ctrl+k",
        Action::Delete(To::LineEnd),
        "delete to the end of the line",
    ),
    (
        "input_yank",
        "ctrl+y",
        Action::Yank,
        "put back what was deleted last",
    ),
    (
        "input_undo",
        "ctrl+-,ctrl+_,ctrl+7",
        Action::Undo,
        "undo a change of the prompt",
    ),
    ("input_redo", "ctrl+.", Action::Redo, "redo it"),
    (
        "history_previous",
        "up",
        Action::HistoryPrevious,
        "the prompt before (from the first row)",
    ),
    (
        "history_next",
        "down",
        Action::HistoryNext,
        "the prompt after (from the last row)",
    ),
    (
        "history_search",
        "ctrl+r",
        Action::HistorySearch,
        "search your earlier prompts",
    ),
    ("messages_page_up", "pageup", Action::PageUp, "a page up"),
    (
        "messages_page_down",
        "pagedown",
        Action::PageDown,
        "a page down",
    ),
    (
        "messages_half_page_up",
        "ctrl+alt+u",
        Action::HalfPageUp,
        "half a page up",
    ),
    (
        "messages_half_page_down",
        "ctrl+alt+d",
        Action::HalfPageDown,
        "half a page down",
    ),
    (
        "messages_line_up",
        "ctrl+alt+y,shift+up",
        Action::LineUp,
        "a row up",
    ),
    (
        "messages_line_down",
        "ctrl+alt+e,shift+down",
        Action::LineDown,
        "a row down",
    ),
    (
        "messages_first",
        "ctrl+g,home",
        Action::First,
        "to the first message",
    ),
    (
        "messages_last",
        "ctrl+alt+g,end",
        Action::Last,
        "to the last message",
    ),
    (
        "messages_copy",
        "<leader>y",
        Action::Copy,
        "copy the last answer (OSC 52)",
    ),
    (
        "messages_undo",
        "<leader>u",
        Action::UndoMessage,
        "take the last prompt and its changes back",
    ),
    (
        "messages_redo",
        "<leader>r",
        Action::RedoMessage,
        "bring them back",
    ),
    (
        "session_new",
        "<leader>n",
        Action::NewSession,
        "a new session",
    ),
    (
        "session_list",
        "<leader>l",
        Action::Sessions,
        "choose a session",
    ),
    (
        "session_timeline",
        "<leader>g",
        Action::Timeline,
        "go to one of your prompts, fork or revert there",
    ),
    (
        "session_fork",
        "<leader>f",
        Action::Fork,
        "work in a copy of the session",
    ),
    (
        "session_compact",
        "<leader>c",
        Action::Compact,
        "summarise the session",
    ),
    ("model_list", "<leader>m", Action::Models, "choose a model"),
    ("agent_list", "<leader>a", Action::Agents, "choose an agent"),
    ("agent_cycle", "tab", Action::NextAgent, "the next agent"),
    (
        "agent_cycle_reverse",
        "shift+tab",
        Action::PreviousAgent,
        "the agent before",
    ),
    ("command_list", "ctrl+p", Action::Commands, "all commands"),
    ("theme_list", "<leader>t", Action::Themes, "choose a theme"),
    (
        "status_view",
        "<leader>s",
        Action::Status,
        "plugins: state, breakers, latency, memory",
    ),
    (
        "display_thinking",
        "<leader>h",
        Action::Thinking,
        "show or fold the reasoning",
    ),
    (
        "tool_details",
        "ctrl+o",
        Action::Details,
        "show tool cards whole or folded",
    ),
    (
        "terminal_suspend",
        "ctrl+z",
        Action::Suspend,
        "suspend; `fg` comes back",
    ),
    ("help_show", "f1,<leader>?", Action::Help, "the keys"),
];

/// A key with its modifiers, after the leader or not.
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
    /// The defaults with the user's changes (name to keys, separated by commas, or `none`), and what is wrong with these.
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
                    None => problems.push(format!("`{key}` is no key (at `{name}`)")),
                }
            }
        }
        (keymap, problems)
    }

    /// The keys of an action, by its name.
    #[must_use]
    pub fn keys(&self, name: &str) -> &str {
        self.shown.get(name).map_or("", String::as_str)
    }

    /// What a key may do, the most specific first: one key may have a meaning at an empty prompt and another one else.
    pub fn actions(&self, leader: bool, key: &KeyEvent) -> impl Iterator<Item = Action> {
        let mut modifiers =
            key.modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT);
        // A capital is its own key, and shift is in it.
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
        ];
        let changes = changes
            .map(|(name, keys)| (name.to_owned(), keys.to_owned()))
            .into();
        let (keymap, problems) = Keymap::new(&changes);
        assert_eq!(
            problems,
            [
                "`nothing` is the name of no key",
                "`hyper+y` is no key (at `input_yank`)"
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

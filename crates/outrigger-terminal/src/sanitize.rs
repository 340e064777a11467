//! Sanitizes untrusted text for terminals.
//!
//! Text from outside (a model, a tool, a file name, a title, a plugin, a server) may contain control sequences that clear the
//! screen, set the clipboard, reverse text or overwrite a question. Such characters are shown instead of sent: `␛` for ESC
//! and the like, `\u009b` for those without a symbol, which is the same character in JSON. Only line ends, tabs and the plain
//! colours of `COLOURS` are sent.
//!
//! Questions, and names in lists, are stricter: see [`name`], [`one_line`] and [`question`].

/// SGR parameters that are sent: bold, faint, italic, underlined, foreground colours that are readable on black and on white,
/// and their resets. None that conceals (8), inverts (7) or sets the background.
const COLOURS: [&str; 23] = [
    "", "0", "00", "1", "01", "2", "3", "4", "22", "23", "24", "31", "32", "33", "34", "35", "36",
    "39", "90", "91", "92", "94", "96",
];
const RESET: &str = "\u{1b}[0m";
/// Maximum length of a sequence.
const MAX_SEQUENCE_LENGTH: usize = 24;

/// Sanitizes a name to one line without control characters, invisible characters or colours.
#[must_use]
pub fn name(text: &str) -> String {
    text.chars().fold(String::new(), |mut shown, c| {
        match c {
            '\n' => shown.push('␊'),
            '\t' => shown.push('␉'),
            c if is_control(c) || is_invisible(c) => show(c, &mut shown),
            c => shown.push(c),
        }
        shown
    })
}

/// Formats one line of a list, with its line end, like [`name`]: nothing in it can begin another line, which would be as one of the
/// program's own.
#[must_use]
pub fn one_line(text: std::fmt::Arguments<'_>) -> String {
    let mut line = name(&text.to_string());
    line.push('\n');
    line
}

/// Like [`name`], for a question to the user, which may have several lines.
#[must_use]
pub fn question(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(name).collect();
    lines.join("\n")
}

/// Returns the safe characters of a text, with the rest made visible. With `colours`, plain colours are kept, but reset at
/// the end of each line.
#[must_use]
pub fn safe(text: &str, colours: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    let (mut rest, mut before, mut coloured) = (text, None, false);
    while let Some(c) = rest.chars().next() {
        let behind = rest.get(c.len_utf8()..).unwrap_or_default();
        rest = behind;
        match c {
            '\n' => {
                if std::mem::take(&mut coloured) {
                    shown.push_str(RESET);
                }
                shown.push(c);
            }
            '\t' => shown.push(c),
            '\r' if behind.starts_with('\n') => {}
            '\u{1b}' => match colour(behind) {
                Some(parameters) => {
                    rest = behind.get(parameters.len() + 2..).unwrap_or_default();
                    if colours {
                        shown.push_str(&format!("\u{1b}[{parameters}m"));
                        coloured = !matches!(parameters, "" | "0" | "00");
                    }
                }
                None => show(c, &mut shown),
            },
            // Emoji and some scripts join their letters with these.
            '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}' if before.is_some_and(joins) => {
                shown.push(c)
            }
            c if is_control(c) || is_invisible(c) => show(c, &mut shown),
            c => shown.push(c),
        }
        before = Some(c);
    }
    if coloured {
        shown.push_str(RESET);
    }
    shown
}

/// Returns the parameters of a sequence that only sets colours, after its ESC.
fn colour(behind: &str) -> Option<&str> {
    let inner = behind.strip_prefix('[')?;
    let end = inner
        .bytes()
        .take(MAX_SEQUENCE_LENGTH)
        .position(|byte| byte == b'm')?;
    let parameters = inner.get(..end)?;
    let known = |parameter| COLOURS.contains(&parameter);
    parameters.split(';').all(known).then_some(parameters)
}

fn joins(before: char) -> bool {
    !before.is_ascii() && !is_control(before) && !is_invisible(before)
        || before == '\u{fe0f}'
        || before.is_ascii_digit()
}

/// Returns whether it is a control character of C0 or C1, or one that reverses text.
#[must_use]
pub fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns whether a character has no width: two names that look the same may differ by it.
#[must_use]
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

fn show(c: char, shown: &mut String) {
    match c {
        '\0'..='\u{1f}' => shown.extend(char::from_u32(0x2400 + u32::from(c))),
        // Escaped as in JSON, so that JSON keeps its meaning.
        c => {
            let units = c
                .encode_utf16(&mut [0; 2])
                .iter()
                .map(|unit| format!("\\u{unit:04x}"))
                .collect::<String>();
            shown.push_str(&units);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Control sequences, and how they are shown.
    const HOSTILE: [(&str, &str); 22] = [
        ("\u{1b}]52;c;cm0gLXJm\u{7}", "␛]52;c;cm0gLXJm␇"),
        ("\u{1b}]0;title\u{1b}\\", "␛]0;title␛\\"),
        ("\u{1b}]8;;http://x\u{1b}\\y", "␛]8;;http://x␛\\y"),
        ("\u{1b}[2J\u{1b}[H", "␛[2J␛[H"),
        ("\u{1b}[1A\u{1b}[2K", "␛[1A␛[2K"),
        ("\u{1b}c", "␛c"),
        ("\u{1b}Pq#0\u{1b}\\", "␛Pq#0␛\\"),
        ("\u{1b}[?1049h", "␛[?1049h"),
        ("\u{1b}[8mhidden", "␛[8mhidden"),
        ("\u{1b}[30;40mhidden", "␛[30;40mhidden"),
        ("\u{1b}[6n\u{5}", "␛[6n␅"),
        ("\u{1b}", "␛"),
        ("\u{1b}[", "␛["),
        ("\u{9b}2J", "\\u009b2J"),
        ("\u{9d}52;c;x\u{9c}", "\\u009d52;c;x\\u009c"),
        ("safe\rrm", "safe␍rm"),
        ("rm\u{8}\u{8}ls", "rm␈␈ls"),
        ("a\u{7f}\0", "a\\u007f␀"),
        ("\u{202e}gpj.exe\u{202c}", "\\u202egpj.exe\\u202c"),
        ("\u{2067}x\u{2069}\u{2028}", "\\u2067x\\u2069\\u2028"),
        ("a\u{200b}b\u{feff}\u{ad}", "a\\u200bb\\ufeff\\u00ad"),
        ("\u{e0041}", "\\udb40\\udc41"),
    ];

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        for (hostile, shown) in HOSTILE {
            for colours in [false, true] {
                assert_eq!(safe(hostile, colours), shown, "{hostile:?}");
            }
            assert_eq!(name(hostile), shown);
            assert_eq!(question(hostile), shown);
        }
    }

    /// Pieces of a sequence that arrive one by one do not form one.
    #[test]
    fn a_sequence_in_pieces_is_none() {
        for (hostile, _) in HOSTILE {
            for at in (0..hostile.len()).filter(|at| hostile.is_char_boundary(*at)) {
                let (one, other) = hostile.split_at(at);
                let sent = safe(one, true) + &safe(other, true);
                let obeyed = |c: char| is_control(c) || is_invisible(c);
                assert!(!sent.contains(obeyed), "{hostile:?} at {at}: {sent:?}");
            }
        }
    }

    #[test]
    fn colours_are_sent_where_there_are_some_and_end_with_their_line() {
        for (text, plain, coloured) in [
            ("\u{1b}[31mred\u{1b}[0m", "red", "\u{1b}[31mred\u{1b}[0m"),
            ("\u{1b}[1;32mx\ny", "x\ny", "\u{1b}[1;32mx\u{1b}[0m\ny"),
            ("\u{1b}[91mx", "x", "\u{1b}[91mx\u{1b}[0m"),
            ("a\tb\r\n", "a\tb\n", "a\tb\n"),
        ] {
            assert_eq!(safe(text, false), plain);
            assert_eq!(safe(text, true), coloured);
        }
        assert_eq!(name("\u{1b}[31mred"), "␛[31mred");
    }

    #[test]
    fn what_people_write_stays_as_it_is() {
        for text in [
            "äöü — „x“ …",
            "👩\u{200d}💻 ❤\u{fe0f} 1\u{fe0f}\u{20e3}",
            "می\u{200c}خواهم",
            "日本語",
            "{\"a\":\"\\u001b[2J\"}\n",
        ] {
            assert_eq!(safe(text, true), text);
        }
        assert_eq!(name("a\nb\tc"), "a␊b␉c");
        assert_eq!(question("a\nb\tc"), "a\nb␉c");
    }

    /// Sanitized JSON keeps its meaning.
    #[test]
    fn json_means_the_same() {
        for (hostile, _) in HOSTILE {
            let value = serde_json::json!({ "text": hostile, hostile: [1] });
            let sent = safe(&value.to_string(), false);
            let back: serde_json::Value = serde_json::from_str(&sent).unwrap();
            assert_eq!(back, value, "{sent}");
        }
    }
}

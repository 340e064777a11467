//! Finds a secret in a text in any encoding of pages, addresses and requests: plain, percent-encoded, form-encoded, in HTML, in
//! JSON, and in base64.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

/// Replaces the value of a secret by `name`.
#[must_use]
pub fn mask(text: &str, value: &str, name: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        match end_of(text, at, value) {
            Some(end) => {
                masked.push_str(name);
                at = end;
            }
            None => {
                masked.push(c);
                at += c.len_utf8();
            }
        }
    }
    for form in base64(value.as_bytes()) {
        if masked.contains(form.as_str()) {
            masked = masked.replace(form.as_str(), name);
        }
    }
    masked
}

/// Returns where the value ends if it begins at `at`; each character may be written in its own way.
fn end_of(text: &str, at: usize, value: &str) -> Option<usize> {
    let mut at = at;
    for c in value.chars() {
        at += length_of(text.get(at..)?, c)?;
    }
    Some(at)
}

/// Returns the length of a character at the beginning of a text, in any encoding.
fn length_of(text: &str, c: char) -> Option<usize> {
    if let Some(length) = escaped(text, c) {
        return Some(length);
    }
    if text.starts_with(c) {
        return Some(c.len_utf8());
    }
    (c == ' ' && text.starts_with('+')).then_some(1)
}

/// Like [`length_of`], for forms that begin with `%`, `&` or `\`.
fn escaped(text: &str, c: char) -> Option<usize> {
    match text.as_bytes().first()? {
        b'%' => {
            let mut bytes = [0; 4];
            let bytes = c.encode_utf8(&mut bytes).as_bytes();
            let is = |(place, byte): (usize, &u8)| {
                let digits = text.get(3 * place..)?.strip_prefix('%')?.get(..2)?;
                (u8::from_str_radix(digits, 16).ok()? == *byte).then_some(())
            };
            let all = bytes
                .iter()
                .enumerate()
                .map(is)
                .collect::<Option<Vec<()>>>();
            all.map(|it| 3 * it.len())
        }
        b'&' => {
            let end = text.get(..text.len().min(10)).unwrap_or(text).find(';')?;
            let name = text.get(1..end)?;
            (entity(name)? == c).then_some(end + 1)
        }
        b'\\' => {
            let escape = text.get(1..)?.chars().next()?;
            if escape == 'u' {
                let number = u32::from_str_radix(text.get(2..6)?, 16).ok()?;
                return (char::from_u32(number)? == c).then_some(6);
            }
            let is_itself = matches!(escape, '"' | '\\' | '/' | '\'') && escape == c;
            let is_named = matches!((escape, c), ('n', '\n') | ('t', '\t') | ('r', '\r'));
            (is_itself || is_named).then_some(2)
        }
        _ => None,
    }
}

fn entity(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some(' '),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)
        }
    }
}

/// Returns the base64 encodings of a value, in both alphabets and for each offset in the encoded bytes. Characters that also encode other bytes
/// are omitted.
fn base64(value: &[u8]) -> Vec<String> {
    const MIN: usize = 6;
    let mut forms: Vec<String> = Vec::new();
    for (before, skipped) in [(0, 0), (1, 2), (2, 3)] {
        let bytes: Vec<u8> = core::iter::repeat_n(0, before)
            .chain(value.iter().copied())
            .collect();
        let bits = bytes.len() * 8;
        for alphabet in [b"+/", b"-_"] {
            let letters = (0..bits / 6)
                .skip(skipped)
                .map(|place| letter(&bytes, place, alphabet));
            let form: String = letters.collect();
            if form.len() >= MIN && !forms.contains(&form) {
                forms.push(form.to_string());
            }
        }
    }
    forms
}

/// Returns the letter of the six bits at a place.
fn letter(bytes: &[u8], place: usize, alphabet: &[u8; 2]) -> char {
    let bit = |at: usize| {
        let byte = bytes.get(at / 8).copied().unwrap_or(0);
        (byte >> (7 - at % 8)) & 1
    };
    let six = (0..6).fold(0, |six, at| (six << 1) | bit(place * 6 + at));
    char::from(match six {
        0..=25 => b'A' + six,
        26..=51 => b'a' + six - 26,
        52..=61 => b'0' + six - 52,
        62 => alphabet[0],
        _ => alphabet[1],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_however_it_is_written() {
        let value = "p@ss/CANARY <22\"7é";
        for written in [
            value,
            "p%40ss%2FCANARY+%3C22%227%C3%A9",
            "p%40ss%2fCANARY%20%3c22%227%c3%a9",
            "p@ss/CANARY &lt;22&quot;7&#xe9;",
            "p&#64;ss/CANARY&nbsp;&lt;22&#34;7é",
            "p@ss\\/CANARY <22\\\"7\\u00e9",
            "%70%40%73%73/CANARY%20<22%227é",
        ] {
            let text = alloc::format!("a={written}&b");
            assert_eq!(mask(&text, value, "[it]"), "a=[it]&b", "{written}");
        }
        for (text, want) in [
            ("cEBzcy9DQU5BUlk=", "[it]k="),
            // `u:` before it, as a header has it.
            ("dTpwQHNzL0NBTkFSWQ==", "dTp[it]Q=="),
            ("p%4ss% &am \\", "p%4ss% &am \\"),
            ("&#99999999999; \\u12 é", "&#99999999999; \\u12 é"),
        ] {
            assert_eq!(mask(text, "p@ss/CANARY", "[it]"), want, "{text}");
        }
    }
}

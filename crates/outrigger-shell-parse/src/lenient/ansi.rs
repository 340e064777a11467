//! The escapes of `$'…'`, as bash reads them.

use crate::UNKNOWN;

/// Adds the text of `$'…'` to `value`, and returns the length of `inner`, which begins after the opening quote, up to and with the closing
/// one. `None` without an end, and if the text ends before the quote.
pub(super) fn decode(inner: &str, value: &mut String) -> Option<usize> {
    let mut rest = inner;
    loop {
        let c = take(&mut rest)?;
        match c {
            '\'' => return Some(inner.len() - rest.len()),
            '\\' => escape(&mut rest, value)?,
            c => value.push(c),
        }
    }
}

fn escape(rest: &mut &str, value: &mut String) -> Option<()> {
    let c = take(rest)?;
    let read = match c {
        'a' => '\x07',
        'b' => '\x08',
        'e' | 'E' => '\x1b',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        'x' => number(rest, 16, 2)?,
        'u' => number(rest, 16, 4)?,
        'U' => number(rest, 16, 8)?,
        'c' => char::from(u8::try_from(take(rest)?).ok()? & 0x1f),
        '0'..='7' => {
            let first = c.to_digit(8)?;
            let more = digits(rest, 8, 2);
            let shift = 3 * u32::try_from(more.len()).ok()?;
            let low = u32::from_str_radix(more, 8).unwrap_or(0);
            text(((first << shift) | low) & 0xff)?
        }
        '\\' | '\'' | '"' | '?' => c,
        other => {
            value.push('\\');
            other
        }
    };
    value.push(read);
    Some(())
}

fn number(rest: &mut &str, radix: u32, most: usize) -> Option<char> {
    let value = u32::from_str_radix(digits(rest, radix, most), radix).ok()?;
    text(value)
}

/// Returns the character of a number; 0, which ends the text, is none. A byte beyond ASCII may be a part of one.
fn text(value: u32) -> Option<char> {
    let c = char::from_u32(value).filter(|it| *it != '\0')?;
    Some(if c.is_ascii() { c } else { UNKNOWN })
}

fn digits<'a>(rest: &mut &'a str, radix: u32, most: usize) -> &'a str {
    let length = rest.chars().take(most).take_while(|c| c.is_digit(radix));
    let (found, after) = rest.split_at_checked(length.count()).unwrap_or(("", rest));
    *rest = after;
    found
}

fn take(rest: &mut &str) -> Option<char> {
    let c = rest.chars().next()?;
    *rest = rest.get(c.len_utf8()..)?;
    Some(c)
}

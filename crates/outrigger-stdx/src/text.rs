//! Hexadecimal text, and truncation at character boundaries.

/// Returns bytes as hexadecimal digits, in lower case.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns the bytes of pairs of hexadecimal digits; `None` for anything else, a sign among them.
#[must_use]
pub fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digit = |it: &u8| char::from(*it).to_digit(16);
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(high)? * 16 + digit(low)?).ok(),
        _ => None,
    };
    pairs.map(byte).collect()
}

/// Returns the last character boundary up to `at`.
///
/// ```
/// use outrigger_stdx::text::{ceil_char_boundary, floor_char_boundary};
///
/// assert_eq!((floor_char_boundary("Büro", 2), ceil_char_boundary("Büro", 2)), (1, 3));
/// ```
#[must_use]
pub fn floor_char_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Returns the first character boundary from `at` on.
#[must_use]
pub fn ceil_char_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_digits_for_each_byte() {
        assert_eq!(hex(&[0, 10, 255]), "000aff");
        assert_eq!(unhex("000aFf"), Some(vec![0, 10, 255]));
        for digits in ["+1", "0", "0x", "0 ", "é"] {
            assert_eq!(unhex(digits), None, "{digits}");
        }
    }

    #[test]
    fn no_character_is_cut_in_half() {
        let text = "a\u{e9}\u{1f600}";
        let at =
            |cut: fn(&str, usize) -> usize| (0..=9).map(|at| cut(text, at)).collect::<Vec<_>>();
        assert_eq!(at(floor_char_boundary), [0, 1, 1, 3, 3, 3, 3, 7, 7, 7]);
        assert_eq!(at(ceil_char_boundary), [0, 1, 3, 3, 7, 7, 7, 7, 7, 7]);
        assert_eq!(
            (floor_char_boundary("", 3), ceil_char_boundary("", 3)),
            (0, 0)
        );
    }
}

//! Bytes as text, as hashes, keys and random names stand in what is stored.

/// Bytes as hexadecimal digits, in small letters.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_digits_for_each_byte() {
        assert_eq!(super::hex(&[0, 10, 255]), "000aff");
    }
}

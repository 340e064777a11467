//! Unpredictable names and tokens.

use std::io;

/// Returns random bytes of the system.
///
/// # Errors
/// The system's error if it has no randomness.
pub fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

/// Returns `N` random bytes as `2 * N` hexadecimal digits.
///
/// # Errors
/// As [`bytes`].
pub fn token<const N: usize>() -> io::Result<String> {
    Ok(crate::text::hex(&bytes::<N>()?))
}

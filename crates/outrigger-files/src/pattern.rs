//! Limits of patterns for file names, which models and projects write.

/// Maximum length of a pattern in bytes: as long as a path can be.
pub const MAX_PATTERN: usize = 4096;
/// Maximum nesting of braces. The `globset` crate is recursive in it.
pub const MAX_BRACES: usize = 32;

/// Why a pattern is not compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// Exceeds [`MAX_PATTERN`].
    #[error("it is longer than {MAX_PATTERN} bytes; use a shorter one, or several")]
    TooLong,
    /// Exceeds [`MAX_BRACES`].
    #[error(
        "its braces are nested more than {MAX_BRACES} deep; write the alternatives side by side"
    )]
    TooDeep,
}

impl PatternError {
    /// Returns the stable code.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::TooLong => "pattern.too_long",
            Self::TooDeep => "pattern.too_deep",
        }
    }
}

/// Checks a pattern before it is compiled. Closing braces that are escaped or in a class close nothing, so only
/// opening ones are believed where there are backslashes or brackets.
///
/// # Errors
/// [`PatternError`]: it is too long or nested too deep.
pub fn check_pattern(pattern: &str) -> Result<(), PatternError> {
    if pattern.len() > MAX_PATTERN {
        return Err(PatternError::TooLong);
    }
    let closes = !pattern.contains(['\\', '[']);
    let mut open = 0_usize;
    for byte in pattern.bytes() {
        match byte {
            b'{' => open += 1,
            b'}' if closes => open = open.saturating_sub(1),
            _ => {}
        }
        if open > MAX_BRACES {
            return Err(PatternError::TooDeep);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_short_and_flat() {
        let nested = |n: usize| format!("{}a{}", "{".repeat(n), "}".repeat(n));
        for (pattern, want) in [
            ("src/**/*.{ts,tsx}".to_owned(), None),
            ("{a,b}".repeat(500), None),
            (nested(MAX_BRACES), None),
            (nested(MAX_BRACES + 1), Some(PatternError::TooDeep)),
            ("{\\}".repeat(100), Some(PatternError::TooDeep)),
            ("{[}]".repeat(100), Some(PatternError::TooDeep)),
            (nested(100_000), Some(PatternError::TooLong)),
            ("*a".repeat(3000), Some(PatternError::TooLong)),
        ] {
            assert_eq!(check_pattern(&pattern).err(), want, "{:.40}", pattern);
        }
        assert_eq!(PatternError::TooDeep.code(), "pattern.too_deep");
    }
}

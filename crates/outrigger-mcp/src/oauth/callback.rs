//! Checks of the browser's callback. [`outrigger_net::Callback`] receives it.

use super::discover::is_same_issuer;
use super::exchange::short;

/// The expected callback.
pub(crate) struct Expected {
    /// The state of the login.
    pub(crate) state: String,
    /// The expected issuer (RFC 9207).
    pub(crate) issuer: String,
    /// The issuer is always included.
    pub(crate) names_issuer: bool,
}

impl Expected {
    /// Checks the issuer in the parameter `iss`: the code of another server's login must not go to the token endpoint of this
    /// one.
    ///
    /// # Errors
    /// It was another one, in words.
    pub(crate) fn check(&self, iss: Option<&str>) -> Result<(), String> {
        let issuer = &self.issuer;
        match iss {
            Some(iss) if is_same_issuer(iss, issuer) => Ok(()),
            Some(iss) => Err(format!(
                "the answer came from {}, and not from {issuer}",
                short(iss)
            )),
            None if self.names_issuer => Err(format!(
                "the answer does not say who it came from, which {issuer} always does"
            )),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(names_issuer: bool) -> Expected {
        Expected {
            state: "s".to_owned(),
            issuer: "https://auth.test".to_owned(),
            names_issuer,
        }
    }

    #[test]
    fn another_server_does_not_answer() {
        for (iss, names_issuer, is_taken) in [
            (Some("https://auth.test"), true, true),
            (Some("https://auth.test/"), false, true),
            (None, false, true),
            (None, true, false),
            (Some("https://bank.test"), false, false),
            (Some(""), false, false),
        ] {
            let checked = expected(names_issuer).check(iss);
            assert_eq!(checked.is_ok(), is_taken, "{iss:?}: {checked:?}");
        }
    }
}

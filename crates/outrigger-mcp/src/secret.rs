//! Configured values hold keys; they are taken out of what a server prints before it is logged, stored or shown to the
//! model (invariant 10).

/// Shorter ones are words and numbers, and taking them out would spoil texts.
const SHORTEST: usize = 8;

/// The configured values of one server.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// Takes the values of `environment` or `headers`, and what follows `Bearer ` and the like in them.
    pub(crate) fn new<'a>(values: impl IntoIterator<Item = &'a String>) -> Self {
        let mut all: Vec<String> = values
            .into_iter()
            .flat_map(|value| [Some(value.as_str()), value.rsplit(' ').next()])
            .flatten()
            .filter(|value| value.len() >= SHORTEST)
            .map(str::to_owned)
            .collect();
        // A value that holds another goes first.
        all.sort_by_key(|value| std::cmp::Reverse(value.len()));
        all.dedup();
        Self(all)
    }

    /// The text without them.
    pub(crate) fn hide(&self, text: String) -> String {
        self.0
            .iter()
            .fold(text, |text, secret| match text.contains(secret) {
                true => text.replace(secret, "***"),
                false => text,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_hidden_with_and_without_the_word_before_them() {
        let values = ["Bearer abcdefgh1234".to_owned(), "on".to_owned()];
        let secrets = Secrets::new(&values);
        assert_eq!(
            secrets.hide("got Bearer abcdefgh1234, token=abcdefgh1234 on".to_owned()),
            "got ***, token=*** on"
        );
    }
}

//! Removes configured values, which contain keys, from a server's output before it is logged, stored or shown to the
//! model (invariant 10).

/// Minimum length; shorter values are words and numbers, and removing them would damage texts.
const MIN_SECRET_LENGTH: usize = 8;

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
            .filter(|value| value.len() >= MIN_SECRET_LENGTH)
            .map(str::to_owned)
            .collect();
        // A value that contains another one comes first.
        all.sort_by_key(|value| std::cmp::Reverse(value.len()));
        all.dedup();
        Self(all)
    }

    /// Returns the text without the values.
    pub(crate) fn hide(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| {
            if text.contains(secret) {
                text.replace(secret, "***")
            } else {
                text
            }
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

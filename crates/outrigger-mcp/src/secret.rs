//! Removes configured keys from a server's output before it is logged, stored or shown to the
//! model (invariant 10).

use outrigger_protocol::keys::is_secret_in_texts;

/// The configured values of one server that are secrets.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// Takes the secrets of `environment` or `headers`, and what follows `Bearer ` and the like in them. Other values stay: a
    /// project's folder or `production` is in many texts.
    pub(crate) fn new<'a>(values: impl IntoIterator<Item = (&'a String, &'a String)>) -> Self {
        let parts = |(name, value): (&'a String, &'a String)| {
            [Some(value.as_str()), value.rsplit(' ').next()]
                .into_iter()
                .flatten()
                .filter(|value| is_secret_in_texts(name, value))
        };
        let mut all: Vec<String> = values
            .into_iter()
            .flat_map(parts)
            .map(str::to_owned)
            .collect();
        // A value that contains another one comes first.
        all.sort_by_key(|value| std::cmp::Reverse(value.len()));
        all.dedup();
        Self(all)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
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
        let values = [
            ("Authorization", "Bearer abcdefgh1234"),
            ("DEBUG", "on"),
            ("NODE_ENV", "production"),
            ("ROOT", "/home/me/project"),
        ];
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let secrets = Secrets::new(values.iter().map(|(name, value)| (name, value)));
        let text = "got Bearer abcdefgh1234, token=abcdefgh1234 on /home/me/project in production";
        assert_eq!(
            secrets.hide(text.to_owned()),
            "got ***, token=*** on /home/me/project in production"
        );
    }
}

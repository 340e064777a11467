//! What the policy of a machine forbids plugins and shell commands alike (issue 5, item 5).

use serde::{Deserialize, Deserializer};

/// `[forbid]` of a policy. Several policies add up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Forbid {
    /// Patterns of hosts and addresses, as in `[plugins.NAME] hosts`.
    #[serde(deserialize_with = "hosts")]
    pub hosts: Vec<String>,
}

impl Forbid {
    /// Adds what another policy forbids.
    pub(crate) fn add(&mut self, other: &Self) {
        self.hosts.extend(other.hosts.iter().cloned());
    }

    /// What it says, one line each.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let hosts = (!self.hosts.is_empty()).then(|| self.hosts.join(", "));
        let hosts = hosts.map(|hosts| format!("hosts forbidden: {hosts}"));
        hosts.into_iter().collect()
    }
}

/// One pattern; where it does not fit, the error is about its place in the file.
struct Host(String);

impl<'de> Deserialize<'de> for Host {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.*:[]/".contains(c);
        match !text.is_empty() && text.chars().all(fits) && !text.contains("//") {
            true => Ok(Self(text)),
            false => Err(serde::de::Error::custom(format!(
                "{text:?} is no host: use `api.example.com`, `*.example.com`, `*`, an address or `10.0.0.0/8`, with or without `:PORT`"
            ))),
        }
    }
}

fn hosts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let list = Vec::<Host>::deserialize(from)?;
    Ok(list.into_iter().map(|it| it.0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Forbid, String> {
        crate::read_toml::<Forbid>(text, "policy.toml").map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_forbidden_adds_up_and_is_told() {
        let mut one = read("hosts = [\"*.evil.com\", \"10.0.0.0/8\"]").unwrap();
        one.add(&read("hosts = [\"[::1]:80\"]").unwrap());
        assert_eq!(
            one.lines(),
            ["hosts forbidden: *.evil.com, 10.0.0.0/8, [::1]:80"]
        );
        assert_eq!(Forbid::default().lines(), Vec::<String>::new());
    }

    #[test]
    fn what_is_no_host_is_refused_with_its_place() {
        for (text, want) in [
            (
                "hosts = [\"ok\",\n \"http://x\"]",
                "policy.toml:1:9: not valid TOML: \"http://x\" is no host",
            ),
            ("hosts = [\"a b\"]", "\"a b\" is no host"),
            ("hosts = [\"\"]", "\"\" is no host"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(want), "{text}: {error}");
        }
    }
}

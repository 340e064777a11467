//! The feature flags at the start of an agent, for readers of the log (A12).

use std::fmt::Write as _;

use outrigger_config::{Loaded, Origin};

use crate::state::Agent;

/// Every flag with its state and where that comes from, in the order of the settings: name, whether it is on, origin.
pub fn flags(config: &Loaded) -> Vec<(String, bool, Origin)> {
    let values = config.settings.list().into_iter();
    values
        .filter_map(|(name, value)| {
            let flag = name.strip_prefix("flags.")?.to_owned();
            let origin = config.settings_origins.get(&name).cloned();
            Some((flag, value == true, origin.unwrap_or(Origin::Default)))
        })
        .collect()
}

impl Agent {
    /// The feature flags that it runs with.
    #[must_use]
    pub fn flags(&self) -> Vec<(String, bool, Origin)> {
        flags(&self.inner.config)
    }
}

/// Writes the flags to the log, so that the figures after that line can be distinguished from those of another setting.
pub(crate) fn record(config: &Loaded) {
    tracing::info!(target: "plugin::perf", "[plugin-perf] flags{}", line(&flags(config)));
}

fn line(flags: &[(String, bool, Origin)]) -> String {
    flags
        .iter()
        .fold(String::new(), |mut text, (name, on, origin)| {
            let _ = write!(text, " {name}={}", if *on { "on" } else { "off" });
            if *origin != Origin::Default {
                let _ = write!(text, " ({origin})");
            }
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_default_names_its_origin() {
        let origin = Origin::Env {
            name: "OUTRIGGER_FLAGS_B".into(),
        };
        assert_eq!(
            line(&[
                ("a".into(), true, Origin::Default),
                ("b".into(), false, origin)
            ]),
            " a=on b=off (environment OUTRIGGER_FLAGS_B)"
        );
    }
}

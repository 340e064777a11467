//! Limits of the user's that a project may make narrower, and never wider: `[deadlines]` and `[limits]`.

use super::keys::{Key, Leaf};
use super::{Deadlines, Limits, Settings};

/// Whether a value would make a limit wider than it is now.
pub(super) fn widens(now: &Settings, key: &Key<Settings>, leaf: &Leaf) -> bool {
    if !["deadlines.", "limits."]
        .iter()
        .any(|it| key.name.starts_with(it))
    {
        return false;
    }
    let mut then = now.clone();
    (key.apply)(&mut then, leaf);
    let (now, then) = (numbers(now), numbers(&then));
    then.iter().zip(now).any(|(then, now)| *then > now)
}

/// All of them, the larger the wider.
fn numbers(settings: &Settings) -> [u64; 9] {
    let Deadlines {
        fast_ms,
        normal_ms,
        load_ms,
        slow_ms,
    } = settings.deadlines;
    let Limits {
        plugin_memory_mb,
        plugin_processes,
        plugin_open_files,
        plugin_health_seconds,
        plugin_inline_bytes,
    } = settings.limits;
    // Never to be asked is the longest time of all.
    let health = match plugin_health_seconds {
        0 => u64::MAX,
        seconds => seconds,
    };
    [
        fast_ms,
        normal_ms,
        load_ms,
        slow_ms,
        plugin_memory_mb,
        plugin_processes,
        plugin_open_files,
        health,
        plugin_inline_bytes,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::keys::KEYS;

    #[test]
    fn what_is_wider() {
        let mut user = Settings::default();
        user.deadlines.normal_ms = 2000;
        user.limits.plugin_processes = 8;
        for (name, value, wider) in [
            ("deadlines.normal_ms", 1999, false),
            ("deadlines.normal_ms", 2000, false),
            ("deadlines.normal_ms", 2001, true),
            // Than what nobody has set.
            ("deadlines.load_ms", 10_001, true),
            ("deadlines.fast_ms", 499, false),
            ("deadlines.slow_ms", 30_001, true),
            ("limits.plugin_processes", 9, true),
            ("limits.plugin_processes", 7, false),
            ("limits.plugin_memory_mb", 4096, true),
            ("limits.plugin_open_files", 8192, true),
            ("limits.plugin_inline_bytes", 65_537, true),
            ("limits.plugin_health_seconds", 31, true),
            ("limits.plugin_health_seconds", 0, true),
            ("limits.plugin_health_seconds", 29, false),
            ("agent.max_steps", 1_000_000, false),
        ] {
            let key = KEYS.iter().find(|key| key.name == name).unwrap();
            assert_eq!(
                widens(&user, key, &Leaf::Whole(value)),
                wider,
                "{name} = {value}"
            );
        }
        // Whoever is never asked is asked more often by any number.
        user.limits.plugin_health_seconds = 0;
        let key = KEYS
            .iter()
            .find(|key| key.name == "limits.plugin_health_seconds");
        assert!(!widens(&user, key.unwrap(), &Leaf::Whole(3600)));
    }
}

//! A plugin's manifest, which anybody may have written: it is read or refused with a place in the text, what was read can
//! be written and read again, and a problem names a key that has a place.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outrigger_config::{place_in_toml, read_toml};
use outrigger_protocol::manifest::Manifest;

fuzz_target!(|text: &str| {
    let manifest: Manifest = match read_toml(text, "outrigger.plugin.toml") {
        Ok(manifest) => manifest,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    for problem in manifest.problems() {
        let (line, column) = place_in_toml(text, problem.key);
        assert!(line >= 1 && column >= 1, "{}", problem.key);
        assert!(usize::try_from(line).unwrap() <= text.lines().count() + 1);
    }
    let json = serde_json::to_value(&manifest).unwrap();
    assert_eq!(serde_json::from_value::<Manifest>(json).unwrap(), manifest);
    // What is without a problem stays inside of its package and project.
    if manifest.problems().is_empty() {
        let files = &manifest.permissions.files;
        let roots = files.read.iter().chain(&files.write);
        // Places outside are the user's to grant, each by what is written.
        let outside = |root: &&String| root.starts_with("~/") || root.starts_with('/');
        for root in roots.filter(|root| !outside(root)).chain(&manifest.entry) {
            let inside = root.strip_prefix("${project}").unwrap_or(root);
            let base = std::path::Path::new("/project");
            let led = outrigger_sandbox::paths::resolve(
                base,
                std::path::Path::new(inside.trim_start_matches('/')),
            );
            assert!(led.starts_with(base), "{root:?} leads to {}", led.display());
        }
    }
});

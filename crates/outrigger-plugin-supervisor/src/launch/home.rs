//! The private folder of a plugin process: its HOME, XDG folders and TMPDIR.
//!
//! It contains copies of the user's OpenCode configuration, so that a plugin that moves or rewrites such files does so to copies.
//! A copy is renewed only when the original has changed, or the plugin would change it again at every start. Only settings and
//! texts that OpenCode and its plugins read there are copied, and no secrets: keys in `opencode.json` are redacted, and every
//! other file that seems to contain one is skipped.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use outrigger_protocol::keys::looks_like_key;
use outrigger_sandbox::folders;
use serde::{Deserialize, Serialize};

/// Maximum size in bytes of a configuration file.
const MAX_FILE: u64 = 1024 * 1024;
/// Maximum number of files that are copied.
const MAX_FILES: usize = 500;
/// Folders of the configuration that contain code or packages; plugins are imported from their original paths.
const LEFT_OUT: &[&str] = &["node_modules", ".git", "plugin", "plugins"];

/// Minimum length of a name that identifies a plugin's file.
const MIN_NAME_LENGTH: usize = 5;
/// OpenCode's own settings.
const SETTINGS: [&str; 3] = ["config.json", "opencode.json", "opencode.jsonc"];
/// Words in the names of files that contain secrets.
const SECRET_WORDS: [&str; 5] = ["account", "auth", "credential", "secret", "token"];
/// Start of a private key.
const PRIVATE_KEY: &str = "PRIVATE KEY-----";

/// The files that were checked, with size and time. A record by a version with other copy rules is ignored: all files are checked
/// again then.
#[derive(Default, Serialize, Deserialize)]
struct Copied {
    by_package: BTreeMap<PathBuf, (u64, u64)>,
}

/// Makes the folder and answers the environment that leads into it. `own`: packages that the user lists by name, whose settings
/// come with their keys.
///
/// # Errors
/// When the folder cannot be made or a file cannot be copied.
pub fn prepare(
    private: &Path,
    config: Option<&Path>,
    own: &[String],
) -> io::Result<Vec<(OsString, OsString)>> {
    let places = [
        ("HOME", private.join("home")),
        ("XDG_CONFIG_HOME", private.join("home/.config")),
        ("XDG_DATA_HOME", private.join("home/.local/share")),
        ("XDG_STATE_HOME", private.join("home/.local/state")),
        ("XDG_CACHE_HOME", private.join("home/.cache")),
        ("XDG_RUNTIME_DIR", private.join("run")),
        ("TMPDIR", private.join("tmp")),
    ];
    // A plugin that ran here before may have replaced them by links.
    for (_, folder) in &places {
        let below = folder.strip_prefix(private).unwrap_or(folder);
        folders::make(private, below)?;
    }
    only_ours(private)?;
    // oh-my-opencode asks the host over the SDK only if this file exists.
    let database = "home/.local/share/opencode/opencode.db";
    folders::make_file(private, Path::new(database))?;
    if let Some(config) = config {
        // The record is outside, where no plugin can replace it by a link.
        copy_changed(
            config,
            private,
            &private.join("home/.config/opencode"),
            &record_of(private),
            own,
        )?;
    }
    Ok(places
        .map(|(name, folder)| (OsString::from(name), folder.into_os_string()))
        .into())
}

fn record_of(private: &Path) -> PathBuf {
    let mut name = private.file_name().unwrap_or_default().to_owned();
    name.push(".copied.json");
    private.with_file_name(name)
}

fn only_ours(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

fn copy_changed(
    from: &Path,
    private: &Path,
    to: &Path,
    record: &Path,
    own: &[String],
) -> io::Result<()> {
    let mut copied: Copied = outrigger_files::read(record, outrigger_files::DATA)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default();
    let mut files = Vec::new();
    collect(from, &mut files);
    let of_values = files_of_values(from);
    let mut changed = false;
    for file in files {
        let Ok(relative) = file.strip_prefix(from) else {
            continue;
        };
        let Ok(meta) = fs::metadata(&file) else {
            continue;
        };
        let stamp = meta
            .modified()
            .ok()
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let mark = (
            meta.len(),
            stamp.map_or(0, |stamp| u64::try_from(stamp.as_millis()).unwrap_or(0)),
        );
        if copied.by_package.get(relative) == Some(&mark) {
            continue;
        }
        let below = to.strip_prefix(private).unwrap_or(to).join(relative);
        let is_value = file.canonicalize().is_ok_and(|it| of_values.contains(&it));
        match copy_of(&file, relative, own)?.filter(|_| !is_value) {
            Some(text) => folders::write_file(private, &below, &text)?,
            None => remove_copy(private, &below, &file)?,
        }
        copied.by_package.insert(relative.to_owned(), mark);
        changed = true;
    }
    if changed {
        fs::write(record, serde_json::to_vec(&copied)?)?;
    }
    Ok(())
}

/// Removes a copy that an earlier version made of a file that is no longer copied. A file of the plugin itself stays.
fn remove_copy(private: &Path, below: &Path, original: &Path) -> io::Result<()> {
    let read = |path: &Path| outrigger_files::read(path, MAX_FILE).ok();
    let copy = read(&private.join(below));
    if copy.is_some() && copy == read(original) {
        folders::remove_file(private, below)?;
    }
    Ok(())
}

/// Returns a plugin's copy of a file; `None` if it is not of a kind that is read there, or contains a secret.
fn copy_of(file: &Path, relative: &Path, own: &[String]) -> io::Result<Option<Vec<u8>>> {
    let name = relative
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
        .to_ascii_lowercase();
    if is_settings_of(&name, own) {
        return outrigger_files::read(file, MAX_FILE).map(Some);
    }
    let (stem, ending) = name.rsplit_once('.').unwrap_or_default();
    if stem.is_empty() || SECRET_WORDS.iter().any(|word| name.contains(word)) {
        return Ok(None);
    }
    let read = || {
        let bytes = outrigger_files::read(file, MAX_FILE)?;
        Ok::<_, io::Error>(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = match ending {
        "md" => Some(read()?),
        "toml" | "yaml" | "yml" => {
            Some(read()?).filter(|text| !outrigger_config::names_secret(text))
        }
        "json" | "jsonc" => without_secrets(read()?, relative),
        _ => None,
    };
    Ok(text.filter(|text| !holds_key(text)).map(String::into_bytes))
}

/// Returns OpenCode's own settings with placeholders, and other JSON if it has no secret.
fn without_secrets(text: String, relative: &Path) -> Option<String> {
    match outrigger_config::redacted_text(&text)? {
        Cow::Borrowed(_) => Some(text),
        Cow::Owned(text) => SETTINGS
            .iter()
            .any(|it| relative == Path::new(it))
            .then_some(text),
    }
}

/// Returns whether a text contains something that looks like a key, under any name.
fn holds_key(text: &str) -> bool {
    let is_of_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut words = text.split(|c: char| !is_of_key(c));
    let has_digit = |word: &str| word.bytes().any(|it| it.is_ascii_digit());
    text.contains(PRIVATE_KEY) || words.any(|word| looks_like_key(word) && has_digit(word))
}

/// Returns the files that settings take a value from (`{file:./token}`): OpenCode's own way to keep keys out of them.
fn files_of_values(config: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for settings in SETTINGS {
        let Ok(bytes) = outrigger_files::read(&config.join(settings), MAX_FILE) else {
            continue;
        };
        let text = String::from_utf8_lossy(&bytes);
        let names = text
            .split("{file:")
            .skip(1)
            .filter_map(|rest| rest.split_once('}'));
        found.extend(names.filter_map(|(name, _)| config.join(name.trim()).canonicalize().ok()));
    }
    found
}

/// Returns whether a file is named after one of these packages: `supermemory.json` of `opencode-supermemory`. Their whole
/// names count, and OpenCode's own settings are nobody's, whatever a package is called.
fn is_settings_of(name: &str, own: &[String]) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    let stem = stem.strip_suffix("-accounts").unwrap_or(stem);
    let is_named = |package: &String| {
        let package = package.strip_suffix("-auth").unwrap_or(package);
        package == stem || package.strip_prefix("opencode-") == Some(stem)
    };
    let of_opencode = |it: &&str| it.split('.').next() == Some(stem);
    let is_opencodes = SETTINGS.iter().any(of_opencode);
    stem.len() >= MIN_NAME_LENGTH && !is_opencodes && own.iter().any(is_named)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let mut entries: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let Ok(meta) = fs::metadata(&path) else {
            continue;
        };
        // A link to a folder could form a cycle.
        let link = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_symlink());
        if meta.is_dir() && !link && !LEFT_OUT.contains(&name) {
            collect(&path, files);
        } else if meta.is_file() && meta.len() <= MAX_FILE && files.len() < MAX_FILES {
            files.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_made_once_and_renewed_when_the_original_changes() {
        let root = tempfile::tempdir().unwrap();
        let (config, private) = (root.path().join("config"), root.path().join("private"));
        fs::create_dir_all(config.join("node_modules/x")).unwrap();
        fs::create_dir_all(config.join("agent")).unwrap();
        fs::write(config.join("node_modules/x/a.json"), "{}").unwrap();
        fs::write(config.join("opencode.json"), "{}").unwrap();
        fs::write(config.join("agent/a.md"), "a").unwrap();

        let env = prepare(&private, Some(&config), &[]).unwrap();
        assert!(env.iter().all(
            |(_, folder)| Path::new(folder).starts_with(&private) && Path::new(folder).is_dir()
        ));
        let copy = private.join("home/.config/opencode");
        assert!(copy.join("opencode.json").is_file() && copy.join("agent/a.md").is_file());
        assert!(!copy.join("node_modules").exists());

        // What a plugin moved away stays away,
        fs::remove_file(copy.join("opencode.json")).unwrap();
        prepare(&private, Some(&config), &[]).unwrap();
        assert!(!copy.join("opencode.json").exists());
        // until the user changes the original. A link that replaces it is replaced, not followed.
        std::os::unix::fs::symlink(config.join("agent/a.md"), copy.join("opencode.json")).unwrap();
        fs::write(config.join("opencode.json"), r#"{"model":"x/y"}"#).unwrap();
        prepare(&private, Some(&config), &[]).unwrap();
        assert_eq!(
            fs::read_to_string(copy.join("opencode.json")).unwrap(),
            r#"{"model":"x/y"}"#
        );
        assert_eq!(fs::read_to_string(config.join("agent/a.md")).unwrap(), "a");
    }

    #[test]
    fn no_secret_is_copied() {
        let root = tempfile::tempdir().unwrap();
        let (config, private) = (root.path().join("config"), root.path().join("a.b"));
        fs::create_dir_all(config.join("sub")).unwrap();
        let settings = r#"{ "provider": { "p": { "options": { "apiKey": "SECRET", "baseURL": "http://u" } } }, // mine
            "mcp": { "m": { "headers": { "X": "SECRET" }, "environment": { "Y": "SECRET" } } },
            "instructions": ["{file: pat.md}", "{file:./gh-pat}"] }"#;
        for (name, text) in [
            ("opencode.jsonc", settings),
            ("antigravity-accounts.json", "{}SECRET"),
            ("some.json", r#"{"refreshToken": "SECRET"}"#),
            ("sub/opencode.json", r#"{"token": "SECRET"}"#),
            ("broken.json", "{SECRET"),
            (".env", "KEY=SECRET"),
            ("sub/id.pem", "SECRET"),
            ("gh-pat", "SECRET"),
            ("pat.md", "SECRET"),
            ("prod.env", "K=SECRET"),
            (".netrc", "SECRET"),
            ("opencode.json.bak", "SECRET"),
            ("opencode.json~", "SECRET"),
            ("note.txt", "SECRET"),
            ("mcp.toml", "token = \"SECRET\""),
            ("login.yaml", "a:\n  refresh_token: SECRET"),
            ("list.json", r#"["sk-ant-SECRET0123456789"]"#),
            ("agent/a.md", "use ghp_SECRET0123456789abcdef"),
            ("key.md", "-----BEGIN OPENSSH PRIVATE KEY-----\nSECRET"),
            ("plain.json", "{ \"theme\": \"x\" } // fine"),
            ("plain.toml", "max_tokens = 8\n"),
            ("plain.yml", "a: b\n"),
            ("AGENTS.md", "fine, a task-force and sk-learn"),
        ] {
            fs::create_dir_all(config.join(name).parent().unwrap()).unwrap();
            fs::write(config.join(name), text).unwrap();
        }
        let own = ["opencode-mine".to_owned()];
        fs::write(config.join("mine.json"), "{}").unwrap();
        fs::write(config.join("opencode-mine.json"), r#"{"apiKey": "own"}"#).unwrap();
        prepare(&private, Some(&config), &own).unwrap();
        let copy = private.join("home/.config/opencode");
        let mut files = Vec::new();
        collect(&copy, &mut files);
        let names: Vec<&str> = files
            .iter()
            .map(|it| it.file_name().unwrap().to_str().unwrap())
            .collect();
        assert_eq!(
            names,
            [
                "AGENTS.md",
                "mine.json",
                "opencode-mine.json",
                "opencode.jsonc",
                "plain.json",
                "plain.toml",
                "plain.yml"
            ]
        );
        for file in &files {
            let text = fs::read_to_string(file).unwrap();
            assert!(!text.contains("SECRET"), "{text}");
        }
        assert!(
            fs::read_to_string(copy.join("opencode.jsonc"))
                .unwrap()
                .contains("http://u")
        );
        assert!(root.path().join("a.b.copied.json").exists());

        // A copy by an earlier version is removed; a file of the plugin under such a name is its own.
        fs::copy(config.join("gh-pat"), copy.join("gh-pat")).unwrap();
        fs::write(copy.join("antigravity-accounts.json"), "{}").unwrap();
        fs::write(root.path().join("a.b.copied.json"), r#"{"gh-pat": [6, 0]}"#).unwrap();
        prepare(&private, Some(&config), &own).unwrap();
        assert!(!copy.join("gh-pat").exists());
        assert!(copy.join("antigravity-accounts.json").exists());
    }

    #[test]
    fn keys_in_settings_go_to_the_package_of_that_name_alone() {
        let settings = r#"{"provider": {"p": {"options": {"apiKey": "SECRET"}}}}"#;
        let files = [
            "config.json",
            "opencode.json",
            "opencode-accounts.json",
            "supermemory.json",
        ];
        for (package, sees) in [
            ("config", false),
            ("opencode", false),
            ("opencode-config", false),
            ("@anyone/config", false),
            ("@anyone/supermemory", false),
            ("supermemory.js", false),
            ("/home/me/supermemory.js", false),
            ("supermemory", true),
            ("opencode-supermemory", true),
        ] {
            let root = tempfile::tempdir().unwrap();
            let (config, private) = (root.path().join("config"), root.path().join("private"));
            fs::create_dir_all(&config).unwrap();
            for name in files {
                fs::write(config.join(name), settings).unwrap();
            }
            prepare(&private, Some(&config), &[package.to_owned()]).unwrap();
            let copy = private.join("home/.config/opencode");
            let read = |name: &str| fs::read_to_string(copy.join(name)).unwrap_or_default();
            let seen: Vec<&str> = files
                .into_iter()
                .filter(|name| read(name).contains("SECRET"))
                .collect();
            let wanted = if sees { &files[3..] } else { &[] };
            assert_eq!(seen, wanted, "{package}");
        }
    }

    #[test]
    fn links_that_a_plugin_left_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let (config, private) = (root.path().join("config"), root.path().join("private"));
        let outside = root.path().join("outside");
        fs::create_dir_all(config.join("agent")).unwrap();
        fs::write(config.join("agent/a.md"), "a").unwrap();
        for name in [
            "tmp",
            "home",
            "home/.local/share/opencode",
            "home/.config/opencode",
        ] {
            let _ = fs::remove_dir_all(&private);
            let _ = fs::remove_dir_all(&outside);
            let _ = fs::remove_file(record_of(&private));
            fs::create_dir_all(private.join(name).parent().unwrap()).unwrap();
            fs::create_dir_all(&outside).unwrap();
            std::os::unix::fs::symlink(&outside, private.join(name)).unwrap();
            prepare(&private, Some(&config), &[]).unwrap();
            assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{name}");
            assert!(
                private.join(name).symlink_metadata().unwrap().is_dir(),
                "{name}"
            );
        }
    }
}

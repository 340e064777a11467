//! Skills from URLs (`skills.urls`): an `index.json` with `{skills: [{name, files, version?}]}` and below it
//! `NAME/FILE`, as in OpenCode. They are stored in the cache folder. Only text files are fetched: nothing of them
//! runs, and no name in them points outside their folder (invariant 11).

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::join_all;
use outrigger_sandbox::SandboxOverrides;
use outrigger_sandbox::paths::Roots;
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, Url};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, timeout_at};

use crate::sandbox_label;

/// Maximum size of an index in bytes.
const INDEX_BYTES: usize = 1 << 20;
/// Maximum size of all files of one skill together, in bytes.
const SKILL_BYTES: usize = 8 << 20;
/// Maximum number of skills of one URL; the rest is skipped.
const MAX_SKILLS: usize = 200;
/// Maximum number of files of one skill.
const MAX_FILES: usize = 100;
/// Number of skills that are fetched concurrently.
const AT_ONCE: usize = 4;
const MAX_REDIRECTS: usize = 5;
const SKILL_FILE: &str = "SKILL.md";

#[derive(Deserialize)]
struct Index {
    skills: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    files: Vec<String>,
    version: Option<String>,
}

/// Fetches the skills of all URLs within `timeout`. Returns their folders in the order of the URLs, and the errors,
/// each with its URL. If fetching fails, the previously fetched skills are used.
pub(super) async fn all(
    urls: &[String],
    cache: &Path,
    timeout: Duration,
    sandboxes: &SandboxOverrides,
) -> (Vec<PathBuf>, Vec<String>) {
    let end = Instant::now() + timeout;
    let found = join_all(urls.iter().map(|url| one(url, cache, end, sandboxes))).await;
    let (mut dirs, mut problems) = (Vec::new(), Vec::new());
    for (more, wrong) in found {
        dirs.extend(more);
        problems.extend(wrong);
    }
    (dirs, problems)
}

/// A URL with skills.
struct SkillSource {
    /// Ends with `/`.
    base: Url,
    client: Client,
    /// Cache folder for it: `skills/NAME` and `versions/NAME`.
    dir: PathBuf,
    end: Instant,
}

async fn one(
    url: &str,
    cache: &Path,
    end: Instant,
    sandboxes: &SandboxOverrides,
) -> (Vec<PathBuf>, Vec<String>) {
    let own = sandboxes
        .of(&sandbox_label(url))
        .and_then(|own| own.proxy());
    let place = match SkillSource::new(url, cache, end, own) {
        Ok(place) => place,
        Err(why) => return (Vec::new(), vec![format!("skills of {url}: {why}")]),
    };
    let mut index = match place.index().await {
        Ok(index) => index,
        Err(why) => {
            let kept = place.kept();
            let rest = if kept.is_empty() {
                "none of its skills are there"
            } else {
                "its skills are those fetched before"
            };
            return (kept, vec![format!("skills of {url}: {why}; {rest}")]);
        }
    };
    let mut problems = Vec::new();
    if index.skills.len() > MAX_SKILLS {
        problems.push(format!(
            "skills of {url}: its index lists {} skills; the first {MAX_SKILLS} are taken",
            index.skills.len()
        ));
        index.skills.truncate(MAX_SKILLS);
    }
    let mut fetched = Vec::new();
    for some in index.skills.chunks(AT_ONCE) {
        fetched.extend(join_all(some.iter().map(|listed| place.skill(listed))).await);
    }
    let mut dirs = Vec::new();
    for (listed, result) in index.skills.iter().zip(fetched) {
        let kept = place.skill_dir(&listed.name);
        match result {
            Ok(dir) => dirs.push(dir),
            Err(Wrong::Refused(why)) => {
                problems.push(format!("skill `{}` of {url}: {why}; skipped", listed.name))
            }
            Err(Wrong::Failed(why)) if kept.join(SKILL_FILE).is_file() => {
                problems.push(format!(
                    "skill `{}` of {url}: {why}; it is as fetched before",
                    listed.name
                ));
                dirs.push(kept);
            }
            Err(Wrong::Failed(why)) => {
                problems.push(format!("skill `{}` of {url}: {why}; skipped", listed.name))
            }
        }
    }
    (dirs, problems)
}

enum Wrong {
    /// Its entry is not allowed.
    Refused(String),
    /// It could not be fetched or stored.
    Failed(String),
}

impl SkillSource {
    /// Creates a source; `proxy` is that of the plugin that contributed the URL.
    fn new(url: &str, cache: &Path, end: Instant, proxy: Option<String>) -> Result<Self, String> {
        let mut base = Url::parse(url).map_err(|error| format!("not an address: {error}"))?;
        base.set_query(None);
        base.set_fragment(None);
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let local = is_loopback(&base);
        if base.scheme() != "https" && !(local && base.scheme() == "http") {
            return Err("it must begin with https://, or be on this machine".to_owned());
        }
        outrigger_net::check(&base).map_err(|refused| refused.to_string())?;
        let client = outrigger_net::builder()
            .user_agent(concat!("outrigger/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::custom(same_origin));
        let unusable = |error: reqwest::Error| format!("no web client could be made: {error}");
        let client = match proxy.map(reqwest::Proxy::all) {
            Some(proxy) => client.proxy(proxy.map_err(unusable)?),
            None if local => client.no_proxy(),
            None => client,
        };
        let client = client.build().map_err(unusable)?;
        let dir = cache.join(key(&base, local));
        Ok(Self {
            base,
            client,
            dir,
            end,
        })
    }

    async fn index(&self) -> Result<Index, String> {
        let url = self
            .base
            .join("index.json")
            .map_err(|error| error.to_string())?;
        let bytes = self.get(url, INDEX_BYTES).await?;
        serde_json::from_slice(&bytes)
            .map_err(|error| format!("cannot read its index.json: {error}"))
    }

    fn skill_dir(&self, name: &str) -> PathBuf {
        self.dir.join("skills").join(name)
    }

    /// Returns the previously fetched skills. None for a URL on this machine: another program may have had its port.
    fn kept(&self) -> Vec<PathBuf> {
        if is_loopback(&self.base) {
            return Vec::new();
        }
        let entries = fs::read_dir(self.dir.join("skills"));
        let mut dirs: Vec<PathBuf> = entries
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|dir| dir.join(SKILL_FILE).is_file())
            .collect();
        dirs.sort();
        dirs
    }

    /// Fetches one skill unless its version is cached, and returns its folder.
    async fn skill(&self, listed: &Listed) -> Result<PathBuf, Wrong> {
        check(listed).map_err(Wrong::Refused)?;
        let dir = self.skill_dir(&listed.name);
        let marker = self.dir.join("versions").join(&listed.name);
        let known = outrigger_files::read_to_string(&marker, outrigger_files::SETTINGS).ok();
        if listed.version.is_some() && known == listed.version && dir.join(SKILL_FILE).is_file() {
            return Ok(dir);
        }
        let files = self.files(listed).await.map_err(Wrong::Failed)?;
        let kept = self.keep(&dir, &files, &marker, listed.version.as_deref());
        kept.map_err(|error| {
            Wrong::Failed(format!("it cannot be kept in {}: {error}", dir.display()))
        })?;
        Ok(dir)
    }

    async fn files(&self, listed: &Listed) -> Result<Vec<(String, Vec<u8>)>, String> {
        let mut below = self.base.clone();
        if let Ok(mut segments) = below.path_segments_mut() {
            segments.pop_if_empty().push(&listed.name).push("");
        }
        let (mut files, mut left) = (Vec::new(), SKILL_BYTES);
        for name in &listed.files {
            let url = below
                .join(&format!("./{name}"))
                .map_err(|error| format!("{name}: {error}"))?;
            let bytes = self
                .get(url, left)
                .await
                .map_err(|why| format!("{name}: {why}"))?;
            left -= bytes.len();
            files.push((name.clone(), bytes));
        }
        Ok(files)
    }

    /// Writes the files into a temporary folder and replaces the existing one, so that no reader sees a partial skill.
    /// Identical files are left alone: another run may be reading them.
    fn keep(
        &self,
        dir: &Path,
        files: &[(String, Vec<u8>)],
        marker: &Path,
        version: Option<&str>,
    ) -> io::Result<()> {
        let same = |(name, bytes): &(String, Vec<u8>)| {
            outrigger_files::read(&dir.join(name), outrigger_files::DATA)
                .is_ok_and(|there| there == *bytes)
        };
        if !files.iter().all(same) {
            fs::create_dir_all(self.dir.join("skills"))?;
            let room = tempdir(&self.dir)?;
            let placed = place(&room, dir, files);
            let _ = fs::remove_dir_all(&room);
            placed?;
        }
        match version {
            Some(version) => {
                fs::create_dir_all(self.dir.join("versions"))?;
                fs::write(marker, version)
            }
            None => match fs::remove_file(marker) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
        }
    }

    async fn get(&self, url: Url, most: usize) -> Result<Vec<u8>, String> {
        let work = async {
            let answer = self.client.get(url).send().await.map_err(cause)?;
            let mut answer = answer.error_for_status().map_err(|error| {
                let status = error.status().map(|s| s.as_u16()).unwrap_or_default();
                format!("the server answered {status}")
            })?;
            let mut bytes = Vec::new();
            while let Some(chunk) = answer.chunk().await.map_err(cause)? {
                if bytes.len() + chunk.len() > most {
                    return Err(format!("it is larger than {most} bytes"));
                }
                bytes.extend_from_slice(&chunk);
            }
            Ok(bytes)
        };
        match timeout_at(self.end, work).await {
            Ok(result) => result,
            Err(_) => Err("the server took too long".to_owned()),
        }
    }
}

fn place(room: &Path, dir: &Path, files: &[(String, Vec<u8>)]) -> io::Result<()> {
    let (new, old) = (room.join("new"), room.join("old"));
    fs::create_dir(&new)?;
    let roots = Roots::new([&new]);
    for (name, bytes) in files {
        let path = new.join(name);
        // The names are checked already; this check applies to every path that comes from outside.
        let path = roots.contains(&path).map_err(io::Error::other)?;
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, bytes)?;
    }
    let there = match fs::rename(dir, &old) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error),
        Ok(()) => true,
    };
    fs::rename(&new, dir).inspect_err(|_| {
        if there {
            let _ = fs::rename(&old, dir);
        }
    })
}

/// Creates a folder for this run alone.
fn tempdir(below: &Path) -> io::Result<PathBuf> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let room = below.join(format!(".staging-{}-{count}", std::process::id()));
    // Left by a killed process with the same process id.
    let _ = fs::remove_dir_all(&room);
    fs::create_dir(&room)?;
    Ok(room)
}

/// Returns the folder name of a URL. Plugins serve skills on a port that changes with every start, so the port is
/// omitted.
fn key(base: &Url, local: bool) -> String {
    let mut base = base.clone();
    if local {
        let _ = base.set_port(None);
    }
    let digest = Sha256::digest(base.as_str().as_bytes());
    outrigger_stdx::text::hex(digest.get(..8).unwrap_or_default())
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or("").trim_matches(['[', ']']);
    match host.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

fn same_origin(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let first = attempt.previous().first().map(Url::origin);
    if attempt.previous().len() > MAX_REDIRECTS {
        return attempt.error("too many redirects");
    }
    if first != Some(attempt.url().origin()) {
        return attempt.error("it redirects to another server");
    }
    attempt.follow()
}

/// Checks the entry of a skill.
fn check(listed: &Listed) -> Result<(), String> {
    if !is_name(&listed.name) {
        return Err("its name must be that of a single folder".to_owned());
    }
    if !listed.files.iter().any(|file| file == SKILL_FILE) {
        return Err(format!("its `files` lack {SKILL_FILE}"));
    }
    if listed.files.len() > MAX_FILES {
        return Err(format!("it has more than {MAX_FILES} files"));
    }
    let bad = |file: &&String| file.contains(['?', '#', '%']) || !file.split('/').all(is_name);
    match listed.files.iter().find(bad) {
        Some(file) => Err(format!("the file {file:?} is not a path inside it")),
        None => Ok(()),
    }
}

fn is_name(text: &str) -> bool {
    let is_refused = |c: char| matches!(c, '/' | '\\' | ':') || c.is_control();
    !matches!(text, "" | "." | "..") && !text.contains(is_refused)
}

// The text of the innermost cause is the most specific; the others repeat the URL.
fn cause(error: reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_lead_elsewhere_are_refused() {
        let listed = |name: &str, files: &[&str]| Listed {
            name: name.to_owned(),
            files: files.iter().map(|&file| file.to_owned()).collect(),
            version: None,
        };
        for (name, files, good) in [
            ("a", &["SKILL.md"][..], true),
            ("a b", &["SKILL.md", "scripts/run.sh", ".hidden"], true),
            ("..", &["SKILL.md"], false),
            ("a/b", &["SKILL.md"], false),
            ("a\n", &["SKILL.md"], false),
            ("", &["SKILL.md"], false),
            ("a", &["README.md"], false),
            ("a", &["SKILL.md", "../x"], false),
            ("a", &["SKILL.md", "/etc/passwd"], false),
            ("a", &["SKILL.md", "x//y"], false),
            ("a", &["SKILL.md", "x\\y"], false),
            ("a", &["SKILL.md", "%2e%2e/x"], false),
            ("a", &["SKILL.md", "x?y"], false),
            ("a", &["SKILL.md", "http://other/x"], false),
        ] {
            assert_eq!(
                check(&listed(name, files)).is_ok(),
                good,
                "{name} {files:?}"
            );
        }
    }

    #[test]
    fn only_https_and_this_machine() {
        let cache = Path::new("/cache");
        let made = |url: &str| SkillSource::new(url, cache, Instant::now(), None);
        for (url, good) in [
            ("https://example.com/skills", true),
            ("http://127.0.0.1:4000/", true),
            ("http://[::1]:4000/", true),
            ("http://localhost:1", true),
            ("http://example.com", false),
            ("http://127.0.0.1.example.com", false),
            ("file:///etc", false),
            ("skills", false),
        ] {
            assert_eq!(made(url).is_ok(), good, "{url}");
        }
        let dir = |url: &str| made(url).unwrap_or_else(|why| panic!("{why}")).dir;
        assert_eq!(dir("http://127.0.0.1:1/"), dir("http://127.0.0.1:2/#x"));
        assert_ne!(dir("https://a.example/"), dir("https://a.example:8443/"));
    }
}

//! Files of the project: `/find`, `/find/file`, `/file`, `/file/content`, `/file/status`.
//!
//! Shows nothing outside the project's worktree, even through links (invariant 11), and nothing that the
//! configuration forbids to read.

use std::io::Read as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::extract::{Query, State};
use axum::routing::get;
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outrigger_agent::{Agent, View};
use outrigger_sandbox::Anchor;
use outrigger_sandbox::paths::{self, Roots};
use outrigger_tools::search::{self, Ignored, Kind};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{ApiError, JsonResult};

/// Maximum number of lines and names returned, as in OpenCode.
const MAX_LINES: usize = 10;
pub(crate) const MAX_NAMES: usize = 200;
const NAMES: usize = 10;
/// Larger files are not sent: they would be held in memory several times.
const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;

pub(crate) fn routes() -> Router<Agent> {
    Router::new()
        .route("/find", get(find_text))
        .route("/find/file", get(find_file))
        .route("/file", get(list))
        .route("/file/content", get(content))
        .route("/file/status", get(status))
}

/// Runs blocking file access on a suitable thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|e| ApiError::internal(format!("the search ended: {e}")))?
}

#[derive(Deserialize)]
struct Text {
    pattern: String,
}

/// A folder to search: its handle, and which files in it may be shown.
struct Searched {
    held: Option<Arc<Anchor>>,
    directory: PathBuf,
    view: View,
}

impl Searched {
    fn of(agent: &Agent) -> Result<Self, ApiError> {
        Ok(Self {
            held: agent.folder()?,
            directory: agent.location().directory.clone(),
            view: agent.view(),
        })
    }

    /// Returns the opened folder, regardless of what has replaced it since.
    fn root(&self) -> PathBuf {
        self.held
            .as_ref()
            .map_or_else(|| self.directory.clone(), |it| it.root())
    }

    fn may_read(&self, root: &Path, path: &Path) -> bool {
        let rest = path.strip_prefix(root).unwrap_or(path);
        self.view.may_read(&self.directory.join(rest))
    }
}

async fn find_text(State(agent): State<Agent>, Query(query): Query<Text>) -> JsonResult<Value> {
    blocking(move || {
        let searched = Searched::of(&agent)?;
        let root = searched.root();
        let (named, rules) = (searched.directory, searched.view.into_search_rules());
        let hits = search::lines(&root, &named, &query.pattern, MAX_LINES, &*rules)
        .map_err(|e| ApiError::bad_request(format!("invalid pattern: {e}")))?.into_iter().map(|hit| {
            let spans = hit.spans.iter().map(|(start, end)| {
                let text = hit.line.get(*start..*end).unwrap_or_default();
                json!({ "match": { "text": text }, "start": start, "end": end })
            });
            json!({
                "path": { "text": hit.path }, "lines": { "text": hit.line }, "line_number": hit.number,
                "absolute_offset": hit.offset, "submatches": spans.collect::<Value>(),
            })
        });
        Ok(Json(hits.collect()))
    })
    .await
}

#[derive(Deserialize)]
struct Names {
    query: String,
    dirs: Option<bool>,
    #[serde(rename = "type")]
    kind: Option<NodeKind>,
    limit: Option<usize>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NodeKind {
    File,
    Directory,
}

impl From<NodeKind> for Kind {
    fn from(kind: NodeKind) -> Self {
        match kind {
            NodeKind::File => Self::File,
            NodeKind::Directory => Self::Folder,
        }
    }
}

async fn find_file(
    State(agent): State<Agent>,
    Query(names): Query<Names>,
) -> JsonResult<Vec<String>> {
    let limit = names.limit.unwrap_or(NAMES);
    if !(1..=MAX_NAMES).contains(&limit) {
        return Err(ApiError::bad_request(format!(
            "`limit` must be from 1 to {MAX_NAMES}, not {limit}"
        )));
    }
    let kind = match names.kind {
        None if names.dirs == Some(false) => Kind::File,
        kind => kind.map_or(Kind::Any, Kind::from),
    };
    find_names(&agent, names.query, kind, limit).await.map(Json)
}

/// Returns names in the served folder, best first; those of folders end with a slash.
pub(crate) async fn find_names(
    agent: &Agent,
    query: String,
    kind: Kind,
    limit: usize,
) -> Result<Vec<String>, ApiError> {
    let agent = agent.clone();
    blocking(move || {
        let searched = Searched::of(&agent)?;
        let root = searched.root();
        let may_read = |path: &Path| searched.may_read(&root, path);
        Ok(search::names(&root, &query, kind, limit, &may_read))
    })
    .await
}

#[derive(Deserialize)]
struct At {
    path: String,
}

/// Resolves a path of a client: as named, and as it may be opened.
fn locate(agent: &Agent, path: &str) -> Result<(PathBuf, PathBuf), ApiError> {
    let location = agent.location();
    let shown = paths::resolve(&location.directory, Path::new(path));
    let real = Roots::found([&location.worktree])
        .contains(&shown)
        .map_err(|e| ApiError::bad_request(e.to_string()))?;
    for path in [&shown, &real] {
        if !agent.may_read(path) {
            return Err(ApiError::forbidden(format!(
                "the configuration forbids reading {}",
                path.display()
            )));
        }
    }
    Ok((shown, real))
}

fn unreadable(what: &Path, error: &std::io::Error) -> ApiError {
    if error.kind() == std::io::ErrorKind::NotFound {
        ApiError::missing(format!("there is no {}", what.display()))
    } else {
        ApiError::bad_request(format!("cannot read {}: {error}", what.display()))
    }
}

async fn list(State(agent): State<Agent>, Query(at): Query<At>) -> JsonResult<Vec<Value>> {
    blocking(move || {
        let (shown, real) = locate(&agent, &at.path)?;
        let location = agent.location();
        let ignored = Ignored::of(&location.worktree);
        let entries = Anchor::hold(&real)
            .and_then(|it| it.entries())
            .map_err(|e| unreadable(&shown, &e))?;
        let view = agent.view();
        let mut nodes: Vec<(bool, String)> = entries
            .filter_map(Result::ok)
            .filter_map(|entry| {
                let kind = entry.file_type().ok()?;
                // Links, sockets and the like are skipped, as in OpenCode.
                let plain = kind.is_file() || kind.is_dir();
                let name = entry.file_name().into_string().ok()?;
                let shown = plain && view.may_read(&real.join(&name));
                shown.then_some((!kind.is_dir(), name))
            })
            .collect();
        nodes.sort();
        let nodes = nodes.into_iter().map(|(file, name)| {
            let absolute = shown.join(&name);
            let relative = relative(&location.directory, &absolute);
            json!({
                "name": name,
                "path": if file { relative } else { format!("{relative}/") },
                "absolute": absolute,
                "type": if file { "file" } else { "directory" },
                "ignored": ignored.has(&absolute, !file),
            })
        });
        Ok(Json(nodes.collect()))
    })
    .await
}

/// Returns a path inside the worktree, relative to the working directory.
fn relative(from: &Path, to: &Path) -> String {
    let common = from
        .ancestors()
        .find(|above| to.starts_with(above))
        .unwrap_or(Path::new("/"));
    let up = from
        .strip_prefix(common)
        .map_or(0, |rest| rest.components().count());
    let mut path: PathBuf = std::iter::repeat_n("..", up).collect();
    path.push(to.strip_prefix(common).unwrap_or(to));
    path.to_string_lossy().into_owned()
}

async fn content(State(agent): State<Agent>, Query(at): Query<At>) -> JsonResult<Value> {
    blocking(move || {
        let (shown, real) = locate(&agent, &at.path)?;
        let meta = match std::fs::metadata(&real) {
            Ok(meta) => meta,
            // OpenCode shows missing files as empty.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Json(json!({ "type": "text", "content": "" })));
            }
            Err(error) => return Err(unreadable(&shown, &error)),
        };
        let special = meta.file_type().is_fifo() || meta.file_type().is_char_device();
        if !meta.is_file() || special {
            return Err(ApiError::bad_request(format!(
                "{} is not a file",
                shown.display()
            )));
        }
        let file = paths::open_resolved(&real, false, false).map_err(|e| unreadable(&shown, &e))?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|e| unreadable(&shown, &e))?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(ApiError::bad_request(format!(
                "{} is larger than {MAX_FILE_BYTES} bytes",
                shown.display()
            )));
        }
        Ok(Json(shape(&shown, bytes)))
    })
    .await
}

/// Returns text without surrounding white space, anything else in base64, as in OpenCode.
fn shape(path: &Path, bytes: Vec<u8>) -> Value {
    let text = if bytes.contains(&0) {
        Err(bytes)
    } else {
        String::from_utf8(bytes).map_err(std::string::FromUtf8Error::into_bytes)
    };
    match text {
        Ok(text) => json!({ "type": "text", "content": text.trim() }),
        Err(bytes) => json!({
            "type": "binary", "content": STANDARD.encode(bytes), "encoding": "base64", "mimeType": mime(path),
        }),
    }
}

/// Returns the media type of a file's extension; only types that clients display.
fn mime(path: &Path) -> &'static str {
    let ending = path
        .extension()
        .and_then(|e| e.to_str())
        .unwrap_or_default();
    match ending.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "bmp" => "image/bmp",
        "ico" => "image/x-icon",
        "avif" => "image/avif",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "gz" => "application/gzip",
        "wasm" => "application/wasm",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "ogg" => "audio/ogg",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        "woff" => "font/woff",
        "woff2" => "font/woff2",
        "ttf" => "font/ttf",
        _ => "application/octet-stream",
    }
}

/// Always empty, as in current OpenCode: `/vcs/status` has replaced it.
async fn status() -> Json<Vec<Value>> {
    Json(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_from_the_working_folder() {
        for (from, to, want) in [
            ("/p", "/p/a/b", "a/b"),
            ("/p/sub", "/p/a", "../a"),
            ("/p/sub/deep", "/p/sub/x", "../x"),
            ("/p", "/p", ""),
        ] {
            assert_eq!(relative(Path::new(from), Path::new(to)), want);
        }
    }
}

//! `read`: shows a file or a folder.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek, SeekFrom};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use outrigger_protocol::permission::Action;
use outrigger_protocol::tool::{ToolOutput, ToolSpec};
use outrigger_sandbox::Anchor;
use serde_json::{Value, json};

use crate::builtin::{MAX_SAFE, number, reading, spec, text};
use crate::error::ToolError;
use crate::files::{Kind, Located, locate};
use crate::host::{CancelFlag, PermissionAsk, ToolContext};
use crate::tool::Tool;

const DESCRIPTION: &str = r"
Reads a file, or lists a folder.

- filePath is an absolute path, or relative to the working directory.
- Lines are numbered from 1, as in `12: text`. At most 2000 lines and 50 KB are returned; use offset (first line) and limit (number of lines) for other parts. Lines over 2000 characters are truncated.
- Images and PDF files are shown to you as such.
- Of a large file, find the parts that you need with grep and read only those. Read several files in one answer when you know that you need them.
";

// OpenCode's figures.
const MAX_LINES: u64 = 2000;
const MAX_BYTES: usize = 50 * 1024;
const MAX_LINE_LENGTH: usize = 2000;
const PREVIEW_LINES: usize = 20;
const SAMPLE: usize = 4096;
/// How often a file that other tools replace is checked.
const MAX_CHECKS: usize = 5;
// Larger images and documents are useless to a model.
const MAX_MEDIA_BYTES: u64 = 20 * 1024 * 1024;

const BINARY: &[&str] = &[
    "7z", "a", "bin", "bz2", "class", "dat", "db", "dll", "doc", "docx", "dylib", "exe", "gz",
    "jar", "lib", "o", "obj", "odp", "ods", "odt", "ppt", "pptx", "pyc", "pyo", "rar", "so",
    "sqlite", "tar", "tgz", "war", "wasm", "xls", "xlsx", "xz", "zip", "zst",
];

/// The read tool.
pub(in crate::builtin) struct Read {
    spec: ToolSpec,
}

impl Read {
    pub(in crate::builtin) fn new() -> Self {
        let whole = json!({"type": "integer", "minimum": 0, "maximum": MAX_SAFE});
        Self {
            spec: reading(spec(
                "read",
                DESCRIPTION,
                json!({"filePath": {"type": "string"}, "offset": whole, "limit": whole}),
                &["filePath"],
            )),
        }
    }
}

/// Returns the questions before a file or folder is read.
pub(in crate::builtin) fn asks_read(at: &Located, ctx: &ToolContext) -> Vec<PermissionAsk> {
    let kind = if at.real.is_dir() {
        Kind::Folder
    } else {
        Kind::File
    };
    let mut asks = Vec::new();
    if !at.is_lent(ctx) {
        asks.extend(at.ask_outside(kind));
    }
    asks.push(PermissionAsk {
        permission: "read".to_owned(),
        patterns: at.patterns(ctx),
        always: vec!["*".to_owned()],
        metadata: json!({}),
        ..PermissionAsk::default()
    });
    asks
}

impl Tool for Read {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn permissions(
        &self,
        input: &Value,
        ctx: &ToolContext,
    ) -> Result<Vec<PermissionAsk>, ToolError> {
        let at = locate(ctx, text(input, "filePath"))?;
        Ok(asks_read(&at, ctx))
    }

    fn run<'a>(
        &'a self,
        input: Value,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let (at, shown) = show_checked(&input, ctx).await?;
            let title = at.relative(ctx);
            let mut output = ToolOutput { title, ..shown };
            if output.metadata["display"]["type"] == "file" {
                add_instructions(&mut output, &at, ctx);
                ctx.host.opened(&at.real);
            }
            Ok(output)
        })
    }
}

// Nearby instruction files are shown once per session, after the file (as in OpenCode).
fn add_instructions(output: &mut ToolOutput, at: &Located, ctx: &ToolContext) {
    let found = ctx.host.nearby_instructions(&at.shown);
    if found.is_empty() {
        return;
    }
    let texts: Vec<String> = found
        .iter()
        .map(|one| format!("Instructions from: {}\n{}", one.path.display(), one.text))
        .collect();
    output.output.push_str(&format!(
        "\n\n<system-reminder>\n{}\n</system-reminder>",
        texts.join("\n\n")
    ));
    output.metadata["loaded"] = found.iter().map(|one| json!(one.path)).collect();
}

/// Shows the file that was decided about. Another tool of the same answer may have replaced it since, as each edit does: then the
/// rules decide again. What a person approved must not be replaced.
async fn show_checked(
    input: &Value,
    ctx: &ToolContext,
) -> Result<(Located, ToolOutput), ToolError> {
    let path = text(input, "filePath");
    let from = number(input, "offset").unwrap_or(1).max(1);
    let limit = number(input, "limit").unwrap_or(MAX_LINES);
    for _ in 0..MAX_CHECKS {
        let at = locate(ctx, path)?;
        let (place, here) = (at.clone(), ctx.clone());
        let shown = tokio::task::spawn_blocking(move || show(&place, from, limit, &here))
            .await
            .map_err(|e| ToolError::failed(e.to_string()))??;
        if let Some(shown) = shown {
            return Ok((at, shown));
        }
        if ctx.is_approved() {
            break;
        }
        ctx.forget_target(&at.shown);
        for question in asks_read(&locate(ctx, path)?, ctx) {
            ctx.ask(question).await?;
        }
    }
    Err(ToolError::failed(format!(
        "{path} is another file than when it was checked: something replaced it meanwhile. Try again, so that this one is checked."
    )))
}

/// Returns nothing if it is another file than the one that was checked.
fn show(
    at: &Located,
    from: u64,
    limit: u64,
    ctx: &ToolContext,
) -> Result<Option<ToolOutput>, ToolError> {
    let file = match at.open() {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(missing(at, ctx)),
        Err(error) => return Err(ToolError::io("open", &at.shown, &error)),
    };
    let fail = |error: io::Error| ToolError::io("read", &at.shown, &error);
    let meta = file.metadata().map_err(fail)?;
    if !ctx.is_checked(&at.shown, &meta) {
        return Ok(None);
    }
    if meta.is_dir() {
        return folder(at, &file, (from, limit), ctx)
            .map(Some)
            .map_err(fail);
    }
    let extension = at
        .real
        .extension()
        .map(|e| e.to_string_lossy().to_lowercase())
        .unwrap_or_default();
    if let Some(mime) = media(&extension) {
        return attach(at, file, meta.len(), mime).map(Some);
    }
    if BINARY.contains(&extension.as_str()) || looks_binary(&file).map_err(fail)? {
        return Err(ToolError::failed(format!(
            "Cannot read binary file: {}",
            at.shown.display()
        )));
    }
    let part = lines(file, from, limit, &ctx.cancel).map_err(fail)?;
    present(at, from, part).map(Some)
}

// OpenCode names only the file; similar names save the model a search.
fn missing(at: &Located, ctx: &ToolContext) -> ToolError {
    let names = names(ctx);
    let wanted = at
        .shown
        .file_name()
        .map(|n| n.to_string_lossy().to_lowercase())
        .unwrap_or_default();
    let stem = wanted.split('.').next().unwrap_or("").to_owned();
    let mut near: Vec<String> = at
        .real
        .parent()
        .filter(|_| at.inside && stem.len() > 2)
        .and_then(|folder| Anchor::hold(folder).ok())
        .and_then(|folder| folder.entries().ok())
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .map(|entry| entry.file_name())
        .filter(|name| names(&at.real.with_file_name(name)))
        .filter(|name| {
            let name = name.to_string_lossy().to_lowercase();
            name.starts_with(&stem) || name.contains(&wanted)
        })
        .map(|name| at.shown.with_file_name(name).display().to_string())
        .collect();
    near.sort();
    near.truncate(3);
    let mut message = format!("File not found: {}", at.shown.display());
    if !near.is_empty() {
        message.push_str(&format!(
            "\n\nDid you mean one of these?\n{}",
            near.join("\n")
        ));
    }
    ToolError::failed(message)
}

/// Returns a predicate for names that may be shown: as in searches, the name of an unreadable file may not.
fn names(ctx: &ToolContext) -> impl Fn(&Path) -> bool + use<'_> {
    let rules = ctx.host.read_rules();
    move |path| rules.of(path) != Action::Deny && ctx.allowed(path, path).is_ok()
}

fn folder(
    at: &Located,
    opened: &File,
    (from, limit): (u64, u64),
    ctx: &ToolContext,
) -> io::Result<ToolOutput> {
    let names = names(ctx);
    let opened = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
    let held = Anchor::again(&opened)?;
    let mut entries: Vec<String> = held
        .entries()?
        .filter_map(Result::ok)
        .filter(|entry| names(&at.real.join(entry.file_name())))
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.path().is_dir() {
                format!("{name}/")
            } else {
                name
            }
        })
        .collect();
    entries.sort_by_key(|name| (name.to_lowercase(), name.clone()));
    let total = entries.len();
    let start = usize::try_from(from - 1).unwrap_or(usize::MAX).min(total);
    let end = start
        .saturating_add(usize::try_from(limit).unwrap_or(usize::MAX))
        .min(total);
    let part = entries.get(start..end).unwrap_or_default();
    let truncated = end < total;
    let note = if truncated {
        format!(
            "(Showing {} of {total} entries. Use 'offset' parameter to read beyond entry {})",
            part.len(),
            end + 1
        )
    } else {
        format!("({total} entries)")
    };
    let text = part.join("\n");
    Ok(ToolOutput {
        title: String::new(),
        output: format!(
            "<path>{}</path>\n<type>directory</type>\n<entries>\n{text}\n\n{note}\n</entries>",
            at.shown.display()
        ),
        metadata: json!({
            "preview": part.iter().take(PREVIEW_LINES).cloned().collect::<Vec<_>>().join("\n"),
            "truncated": truncated,
            "loaded": [],
            "display": {"type": "directory", "path": at.shown, "entries": part, "offset": from, "totalEntries": total,
                "truncated": truncated},
        }),
        attachments: None,
    })
}

fn media(extension: &str) -> Option<&'static str> {
    Some(match extension {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "pdf" => "application/pdf",
        _ => return None,
    })
}

fn attach(at: &Located, mut file: File, size: u64, mime: &str) -> Result<ToolOutput, ToolError> {
    if size > MAX_MEDIA_BYTES {
        return Err(ToolError::failed(format!(
            "{} is {size} bytes, more than the {MAX_MEDIA_BYTES} that can be shown",
            at.shown.display()
        )));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)
        .map_err(|e| ToolError::io("read", &at.shown, &e))?;
    let kind = if mime == "application/pdf" {
        "PDF"
    } else {
        "Image"
    };
    let said = format!("{kind} read successfully");
    Ok(ToolOutput {
        title: String::new(),
        output: said.clone(),
        metadata: json!({"preview": said, "truncated": false, "loaded": []}),
        attachments: Some(vec![json!({
            "type": "file", "mime": mime, "url": format!("data:{mime};base64,{}", STANDARD.encode(bytes)),
        })]),
    })
}

// Applies OpenCode's test: a NUL byte, or more than 30% bytes that do not occur in text.
fn looks_binary(mut file: &File) -> io::Result<bool> {
    let mut sample = Vec::with_capacity(SAMPLE);
    file.take(SAMPLE as u64).read_to_end(&mut sample)?;
    file.seek(SeekFrom::Start(0))?;
    let odd = sample
        .iter()
        .filter(|b| matches!(b, 0..=8 | 14..=31))
        .count();
    Ok(sample.contains(&0) || odd * 10 > sample.len() * 3)
}

#[derive(Default)]
struct Part {
    lines: Vec<String>,
    /// Lines of the file, as far as it was read.
    total: u64,
    capped: bool,
}

fn lines(file: File, from: u64, limit: u64, cancel: &CancelFlag) -> io::Result<Part> {
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let mut part = Part::default();
    let mut bytes = 0;
    let mut line = Vec::new();
    while next_line(&mut reader, &mut line)? {
        part.total += 1;
        if cancel.is_cancelled() {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "cancelled"));
        }
        if part.total < from || part.lines.len() as u64 >= limit {
            continue;
        }
        let text = shorten(&line, part.total == 1);
        let size = text.len() + usize::from(!part.lines.is_empty());
        if bytes + size > MAX_BYTES {
            part.capped = true;
            break;
        }
        bytes += size;
        part.lines.push(text);
    }
    Ok(part)
}

// Reads a line and keeps only as much as is shown: a file without line ends must not fill the memory.
fn next_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut any = false;
    loop {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            return Ok(any);
        }
        any = true;
        let (taken, done) = match chunk.iter().position(|b| *b == b'\n') {
            Some(at) => (at, true),
            None => (chunk.len(), false),
        };
        let room = (MAX_LINE_LENGTH + 1) * 4;
        let keep = taken.min(room.saturating_sub(line.len()));
        line.extend_from_slice(&chunk[..keep]);
        reader.consume(taken + usize::from(done));
        if done {
            return Ok(true);
        }
    }
}

fn shorten(line: &[u8], first: bool) -> String {
    let text = String::from_utf8_lossy(line);
    let text = text.strip_suffix('\r').unwrap_or(&text);
    let text = if first {
        text.strip_prefix('\u{feff}').unwrap_or(text)
    } else {
        text
    };
    match text.char_indices().nth(MAX_LINE_LENGTH) {
        Some((at, _)) => format!(
            "{}... (line truncated to {MAX_LINE_LENGTH} chars)",
            &text[..at]
        ),
        None => text.to_owned(),
    }
}

fn present(at: &Located, from: u64, part: Part) -> Result<ToolOutput, ToolError> {
    let Part {
        lines,
        total,
        capped,
    } = part;
    if from > total && !(from == 1 && total == 0) {
        return Err(ToolError::failed(format!(
            "Offset {from} is out of range for this file ({total} lines)"
        )));
    }
    let last = from + lines.len() as u64 - 1;
    let truncated = capped || last < total;
    let note = if capped {
        format!(
            "(Output capped at {} KB. Showing lines {from}-{last}. Use offset={} to continue.)",
            MAX_BYTES / 1024,
            last + 1
        )
    } else if truncated {
        format!(
            "(Showing lines {from}-{last} of {total}. Use offset={} to continue.)",
            last + 1
        )
    } else {
        format!("(End of file - total {total} lines)")
    };
    let numbered: Vec<String> = (from..)
        .zip(&lines)
        .map(|(n, line)| format!("{n}: {line}"))
        .collect();
    let preview: Vec<&str> = lines
        .iter()
        .take(PREVIEW_LINES)
        .map(String::as_str)
        .collect();
    Ok(ToolOutput {
        title: String::new(),
        output: format!(
            "<path>{}</path>\n<type>file</type>\n<content>\n{}\n\n{note}\n</content>",
            at.shown.display(),
            numbered.join("\n")
        ),
        metadata: json!({
            "preview": preview.join("\n"),
            "truncated": truncated,
            "loaded": [],
            "display": {"type": "file", "path": at.shown, "text": lines.join("\n"), "lineStart": from, "lineEnd": last,
                "totalLines": total, "truncated": truncated},
        }),
        attachments: None,
    })
}

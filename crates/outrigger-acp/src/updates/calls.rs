//! Tool calls in the editor's form.

use std::path::Path;

use outrigger_kernel::merge::{Author, Converter, Form};
use outrigger_protocol::merged::Details;
use outrigger_protocol::message::{Part, ToolPart, ToolState};
use outrigger_protocol::task_output;
use serde_json::{Value, json};

use crate::content::picture;

/// Maximum bytes of a displayed text of a call. The conversation has all of it.
const MAX_TEXT: usize = 32 * 1024;
/// Maximum bytes of arguments sent in addition.
const MAX_INPUT: usize = 64 * 1024;
/// Maximum characters of a title.
const MAX_TITLE: usize = 300;

/// Returns the kind by which the editor selects an icon.
pub(crate) fn kind(tool: &str) -> &'static str {
    match tool {
        "read" | "skill" => "read",
        "edit" | "write" | "apply_patch" => "edit",
        "bash" | "python" => "execute",
        "glob" | "grep" | "list" | "lsp" | "codesearch" | "table" => "search",
        "webfetch" | "websearch" => "fetch",
        "task" | "todowrite" => "think",
        "plan_enter" | "plan_exit" => "switch_mode",
        _ => "other",
    }
}

/// Returns a one-line title. `said` is the tool's own title.
///
/// Zed reads titles as Markdown, except those of commands and changes. What a model or a file named stays as it is: in code, if it
/// means something in Markdown.
pub(crate) fn title(tool: &str, input: &Value, said: Option<&str>, folder: &Path) -> String {
    let text = |key: &str| input[key].as_str().filter(|text| !text.is_empty());
    let file = || text("filePath").or(text("path"));
    let is_markdown = !matches!(kind(tool), "execute" | "edit");
    let literal = |text: &str| {
        if is_markdown {
            code(text)
        } else {
            one_line(text)
        }
    };
    let of = |verb: &str, what: Option<&str>| what.map(|what| format!("{verb} {}", literal(what)));
    let line = match tool {
        "bash" => text("command").map(literal),
        "python" => of("python", text("code").and_then(|code| code.lines().next())),
        "read" => of("Read", file().map(|it| shown(it, folder))),
        "edit" => of("Edit", file().map(|it| shown(it, folder))),
        "write" => of("Write", file().map(|it| shown(it, folder))),
        "list" => of("List", file().map(|it| shown(it, folder))),
        "glob" => of("Find", text("pattern")),
        "grep" => of("Search for", text("pattern")),
        "webfetch" => of("Fetch", text("url")),
        "websearch" => of("Search the web for", text("query")),
        "task" => text("description").map(literal),
        "question" => input["questions"][0]["question"].as_str().map(literal),
        "skill" => of("Read the skill", text("name")),
        _ => None,
    };
    let said = said.filter(|text| !text.is_empty());
    let own = said.map(|said| {
        if said.starts_with(tool) {
            literal(said)
        } else {
            literal(&format!("{tool}: {said}"))
        }
    });
    line.or(own).unwrap_or_else(|| literal(tool))
}

/// Returns a text as a line of limited length.
pub(crate) fn one_line(text: &str) -> String {
    let line = outrigger_terminal::name(text.trim());
    match line.char_indices().nth(MAX_TITLE) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// Returns whether Markdown shows a text differently. An underscore inside of a word is one.
fn means_something(text: &str) -> bool {
    let letters: Vec<char> = text.chars().collect();
    let is_of_word = |at: Option<usize>| {
        at.and_then(|at| letters.get(at))
            .is_some_and(|c| c.is_alphanumeric())
    };
    letters.iter().enumerate().any(|(at, c)| match c {
        '_' => !is_of_word(at.checked_sub(1)) || !is_of_word(at.checked_add(1)),
        c => "\\`*[]<>~|#&!".contains(*c),
    })
}

/// Returns a line that is the same text in Markdown.
fn code(text: &str) -> String {
    let line = one_line(text);
    if !means_something(&line) {
        return line;
    }
    let longest = line.split(|c| c != '`').map(str::len).max();
    let ticks = "`".repeat(longest.unwrap_or_default() + 1);
    // A space on both sides belongs to the marks.
    let space = if line.starts_with('`') || line.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{ticks}{space}{line}{space}{ticks}")
}

/// Returns a path as displayed in this folder.
pub(crate) fn shown<'a>(path: &'a str, folder: &Path) -> &'a str {
    Path::new(path)
        .strip_prefix(folder)
        .ok()
        .and_then(Path::to_str)
        .filter(|it| !it.is_empty())
        .unwrap_or(path)
}

/// Returns the files of the call, for an editor that follows.
pub(crate) fn locations(tool: &str, input: &Value, folder: &Path) -> Vec<Value> {
    if !matches!(kind(tool), "read" | "edit" | "search") {
        return Vec::new();
    }
    let path = input["filePath"].as_str().or(input["path"].as_str());
    let place = |path: &str| {
        let mut place = json!({ "path": folder.join(path) });
        if let Some(line) = input["offset"].as_u64().filter(|it| *it > 0) {
            place["line"] = json!(line);
        }
        place
    };
    path.map(place).into_iter().collect()
}

/// Puts a text into a code block. A fence in the text does not end it.
pub(crate) fn fenced(text: &str) -> String {
    let longest = text
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

/// Creates a text block of a call.
pub(crate) fn text_block(text: &str) -> Value {
    json!({ "type": "content", "content": { "type": "text", "text": text } })
}

/// Creates a diff block of a call.
pub(crate) fn diff_block(path: &Path, before: Option<&str>, after: &str) -> Value {
    json!({ "type": "diff", "path": path, "oldText": before, "newText": after })
}

/// Truncates a text, keeping the start, or the end for a running command.
pub(super) fn cut(text: &str, keeps_end: bool) -> String {
    if text.len() <= MAX_TEXT {
        return text.to_owned();
    }
    let left = text.len() - MAX_TEXT;
    let at = |from: usize| (from..text.len()).find(|at| text.is_char_boundary(*at));
    if keeps_end {
        let end = at(left).and_then(|at| text.get(at..)).unwrap_or_default();
        format!("… {left} bytes before this\n{end}")
    } else {
        let begin = at(MAX_TEXT)
            .and_then(|at| text.get(..at))
            .unwrap_or_default();
        format!("{begin}\n… {left} more bytes")
    }
}

/// Returns the arguments, unless they are long: the displayed content contains the same.
pub(crate) fn input_of(input: &Value) -> Option<Value> {
    (input.to_string().len() <= MAX_INPUT).then(|| input.clone())
}

/// Returns the content below the title.
pub(crate) fn content(part: &Part, call: &ToolPart, folder: &Path) -> Vec<Value> {
    match &call.state {
        ToolState::Pending { .. } => Vec::new(),
        ToolState::Running { metadata, .. } => {
            let printed = metadata
                .as_ref()
                .and_then(|it| it["output"].as_str())
                .filter(|text| !text.is_empty());
            let block = |text: &str| text_block(&fenced(&cut(text, true)));
            printed.map(block).into_iter().collect()
        }
        ToolState::Error { error, .. } => vec![text_block(&fenced(&cut(error, false)))],
        ToolState::Completed {
            output,
            attachments,
            ..
        } => {
            let mut blocks = changes(part, folder);
            if blocks.is_empty() && !output.is_empty() {
                blocks.push(text_block(&result(call, output)));
            }
            let files = attachments.iter().flatten();
            blocks.extend(files.filter_map(|file| {
                let mime = file["mime"].as_str()?;
                let image = picture(mime, file["url"].as_str()?)?;
                let is_image = mime.starts_with("image/");
                is_image.then(|| json!({ "type": "content", "content": image }))
            }));
            blocks
        }
    }
}

/// Returns the output. Answers of subagents and pages are Markdown; anything else is shown
/// verbatim.
fn result(call: &ToolPart, output: &str) -> String {
    let output = cut(output, false);
    let is_replaced = call.provenance.replaced_tool_of().is_some();
    match call.tool.as_str() {
        "task" if !is_replaced => task_output::answer(&output).to_owned(),
        "websearch" if !is_replaced => output,
        _ => fenced(&output),
    }
}

/// Returns the files that the call changed.
fn changes(part: &Part, folder: &Path) -> Vec<Value> {
    // Time and author of the message do not matter here.
    let author = Author {
        role: "assistant",
        created: 0,
        attempt: part.message_id.clone(),
    };
    let placed = Converter::default().part(&author, part, Form::Merged);
    let mut found = Vec::new();
    for message in placed.iter().map(|it| &it.message) {
        let one = message.metadata.get("details").cloned();
        let more = message
            .metadata
            .get("changes")
            .cloned()
            .and_then(|it| serde_json::from_value::<Vec<Details>>(it).ok());
        let one = one.and_then(|it| serde_json::from_value::<Details>(it).ok());
        for details in more.unwrap_or_default().into_iter().chain(one) {
            if let Details::Diff {
                old_content,
                new_content,
                path: Some(path),
            } = details
            {
                let before = (!old_content.is_empty()).then_some(old_content);
                found.push(diff_block(
                    &folder.join(path),
                    before.as_deref(),
                    &new_content,
                ));
            }
        }
    }
    found
}

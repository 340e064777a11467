//! Messages of the conversation as lines for users.

use outrigger_kernel::merge::details;
use outrigger_protocol::merged::{CHANGED_BY, ConversationMessage, Details, REFUSED_BY};
use outrigger_protocol::task_output;
use serde_json::Value;
use similar::TextDiff;

use crate::terminal;
use crate::terminal::paint::Paint;

/// Displayed lines of a tool's output; the model gets more, the session keeps all.
pub(crate) const SHOWN_LINES: usize = 40;

/// Displayed names of a list of files.
const SHOWN_FILES: usize = 10;

/// Returns whether a message is about a tool: a start, a result, or both merged.
pub(crate) fn is_tool(message: &ConversationMessage) -> bool {
    matches!(
        message.message_type.as_str(),
        "tool_execution" | "tool_use" | "tool_result"
    )
}

/// Formats a message about a tool (E6, in a terminal). Paths in the project are shortened.
pub(crate) fn tool_text(message: &ConversationMessage, paint: Paint, directory: &str) -> String {
    if message.message_type == "tool_execution" {
        merged(message, paint, directory)
    } else {
        half(message, paint, directory)
    }
}

/// Formats a start without its result or a result without its start (E5).
fn half(message: &ConversationMessage, paint: Paint, directory: &str) -> String {
    let field = |key: &str| message.metadata.get(key);
    let name = tool_name(message);
    let shorten = |text: &str| shorten(text, directory);
    if message.message_type == "tool_use" {
        let input = field("input").map(ToString::to_string).unwrap_or_default();
        return format!("{} {name} {}\n", paint.bold("▸"), shorten(&input));
    }
    let output = field("output")
        .and_then(Value::as_str)
        .unwrap_or(&message.content);
    if field("is_error").and_then(Value::as_bool) == Some(true) {
        return format!(
            "{} {name} failed\n{} {}\n",
            paint.bad("✗"),
            paint.bad("Error:"),
            shorten(output)
        );
    }
    format!("{} {name}\n{}", paint.bold("◂"), shorten(&clip(output)))
}

/// Returns its name, with the plugin if a plugin's tool has the name of a bundled one.
fn tool_name(message: &ConversationMessage) -> String {
    let field = |key: &str| message.metadata.get(key).and_then(Value::as_str);
    let name = field("tool_name").unwrap_or("tool");
    match field("plugin") {
        Some(plugin) => terminal::name(&format!("{name} (plugin {plugin})")),
        None => terminal::name(name),
    }
}

/// Returns which plugins changed the displayed result of a call.
pub(crate) fn changed_by(message: &ConversationMessage) -> Option<String> {
    let plugins: Vec<String> = message
        .metadata
        .get(CHANGED_BY)?
        .as_array()?
        .iter()
        .filter_map(Value::as_str)
        .map(terminal::name)
        .collect();
    Some(format!("  changed by {}", plugins.join(", ")))
}

/// Shows paths in the folder relative to it, except where one is a name for `outrigger.toml`, which takes whole ones.
fn shorten(text: &str, directory: &str) -> String {
    const TABLE: &str = "[plugins.\"";
    let folder = format!("{}/", directory.trim_end_matches('/'));
    let mut parts = text.split(&folder);
    let mut short = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        if short.ends_with(TABLE) {
            short.push_str(&folder);
        }
        short.push_str(part);
    }
    short
}

fn merged(message: &ConversationMessage, paint: Paint, directory: &str) -> String {
    let tool = Tool {
        message,
        paint,
        directory,
    };
    if tool.field("is_error").and_then(Value::as_bool) == Some(true) {
        return tool.failed();
    }
    if tool.field("plugin").is_some() {
        return tool.other();
    }
    match details(message) {
        Some(Details::CommandOutput {
            stdout,
            stderr,
            exit_code,
        }) => tool.command(&format!("{stdout}{stderr}"), exit_code),
        Some(Details::Diff {
            old_content,
            new_content,
            ..
        }) => tool.content("←") + &diff(&old_content, &new_content, paint),
        Some(Details::FileList { .. }) if tool.is("apply_patch") => tool.patch(),
        Some(Details::FileList { .. }) if tool.is("read") => tool.content("→"),
        Some(Details::FileList { files }) => tool.files(&files),
        None if tool.is("todowrite") => tool.todos(),
        None if tool.is("task") => tool.task(),
        None if message.content.starts_with("Read ") => tool.content("→"),
        None => tool.other(),
    }
}

/// A call with its result.
struct Tool<'m> {
    message: &'m ConversationMessage,
    paint: Paint,
    directory: &'m str,
}

impl<'m> Tool<'m> {
    fn field(&self, key: &str) -> Option<&'m Value> {
        self.message.metadata.get(key)
    }

    fn input(&self, key: &str) -> Option<&'m str> {
        self.field("input")?.get(key)?.as_str()
    }

    fn name(&self) -> String {
        tool_name(self.message)
    }

    fn time(&self) -> String {
        let time = self.field("duration_ms").and_then(Value::as_u64);
        self.paint.dim(&format!("  {} ms", time.unwrap_or(0)))
    }

    fn shorten(&self, text: &str) -> String {
        shorten(text, self.directory)
    }

    fn failed(&self) -> String {
        let why = self.field("output").and_then(Value::as_str);
        let what = self
            .input("command")
            .or_else(|| self.input("filePath"))
            .or_else(|| self.input("pattern"))
            .unwrap_or_default();
        let end = match self.field(REFUSED_BY).and_then(Value::as_str) {
            Some(plugin) => format!("refused by plugin {}", terminal::name(plugin)),
            None => "failed".to_owned(),
        };
        format!(
            "{} {} {} {end}{}\n{} {}\n",
            self.paint.bad("✗"),
            self.name(),
            terminal::question(&self.shorten(what)),
            self.time(),
            self.paint.bad("Error:"),
            self.shorten(why.unwrap_or("failed"))
        )
    }

    fn command(&self, output: &str, exit_code: Option<i64>) -> String {
        let code = match exit_code {
            Some(0) => String::new(),
            Some(code) => self.paint.bad(&format!("  exit {code}")),
            None => self.paint.bad("  killed"),
        };
        format!(
            "{} {}{code}{}\n{}",
            self.paint.bold("$"),
            terminal::question(self.input("command").unwrap_or(&self.name())),
            self.time(),
            clip(output)
        )
    }

    /// Formats the content, after a mark.
    fn content(&self, mark: &str) -> String {
        format!(
            "{} {}{}\n",
            self.paint.bold(mark),
            terminal::name(&self.shorten(&self.message.content)),
            self.time()
        )
    }

    fn files(&self, files: &[String]) -> String {
        let what = terminal::name(self.input("pattern").unwrap_or_default());
        let noun = if files.len() == 1 { "file" } else { "files" };
        let count = self.paint.dim(&format!("{} {noun}", files.len()));
        let mark = self.paint.bold("✱");
        let mut text = format!("{mark} {} \"{what}\" {count}{}\n", self.name(), self.time());
        for file in files.iter().take(SHOWN_FILES) {
            text.push_str(&format!("  {}\n", terminal::name(&self.shorten(file))));
        }
        if files.len() > SHOWN_FILES {
            text.push_str(&format!("  … {} more\n", files.len() - SHOWN_FILES));
        }
        text
    }

    /// A patch of several files: what changed in each.
    fn patch(&self) -> String {
        let changes = self.field("changes").cloned().unwrap_or_default();
        let changes: Vec<Details> = serde_json::from_value(changes).unwrap_or_default();
        let shown = changes.iter().filter_map(|change| match change {
            Details::Diff {
                old_content,
                new_content,
                path,
            } => Some(format!(
                "{}\n{}",
                terminal::name(path.as_deref().unwrap_or_default()),
                diff(old_content, new_content, self.paint)
            )),
            _ => None,
        });
        self.content("←") + &clip(&shown.collect::<String>())
    }

    fn is(&self, name: &str) -> bool {
        self.field("tool_name").and_then(Value::as_str) == Some(name)
    }

    /// Formats the todo list, with OpenCode's marks.
    fn todos(&self) -> String {
        let todos = self
            .field("input")
            .and_then(|input| input.get("todos")?.as_array());
        let lines: String = todos
            .into_iter()
            .flatten()
            .map(|todo| {
                let text = |key: &str| todo.get(key).and_then(Value::as_str).unwrap_or_default();
                let mark = match text("status") {
                    "completed" => "✓",
                    "in_progress" => "•",
                    "cancelled" => "-",
                    _ => " ",
                };
                format!("[{mark}] {}\n", terminal::name(text("content")))
            })
            .collect();
        format!(
            "{} Todos{}\n{}",
            self.paint.bold("#"),
            self.time(),
            clip(&lines)
        )
    }

    /// Formats a subagent's prompt and answer.
    fn task(&self) -> String {
        let output = self.field("output").and_then(Value::as_str);
        format!(
            "{} {}: {}{}\n{}",
            self.paint.bold("•"),
            terminal::name(self.input("subagent_type").unwrap_or("task")),
            terminal::name(self.input("description").unwrap_or_default()),
            self.time(),
            self.shorten(&clip(task_output::answer(output.unwrap_or_default())))
        )
    }

    fn other(&self) -> String {
        let input = self.field("input").map(ToString::to_string);
        let output = self.field("output").and_then(Value::as_str);
        format!(
            "{} {} {}{}\n{}",
            self.paint.bold("⚙"),
            self.name(),
            self.shorten(&input.unwrap_or_default()),
            self.time(),
            self.shorten(&clip(output.unwrap_or_default()))
        )
    }
}

fn clip(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut shown: String = lines
        .iter()
        .take(SHOWN_LINES)
        .flat_map(|line| [*line, "\n"])
        .collect();
    if lines.len() > SHOWN_LINES {
        shown.push_str(&format!("… {} more lines\n", lines.len() - SHOWN_LINES));
    }
    shown
}

/// Formats the hunks of a unified diff; the file is named above them.
fn diff(old: &str, new: &str, paint: Paint) -> String {
    let text = TextDiff::from_lines(old, new)
        .unified_diff()
        .context_radius(3)
        .to_string();
    clip(&text)
        .lines()
        .map(|line| match line.chars().next() {
            Some('+') => paint.good(line) + "\n",
            Some('-') => paint.bad(line) + "\n",
            _ => format!("{line}\n"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(metadata: Value, content: &str) -> ConversationMessage {
        ConversationMessage {
            id: "prt_1-merged".into(),
            role: "assistant".into(),
            message_type: "tool_execution".into(),
            content: content.into(),
            timestamp: 1,
            metadata: metadata.as_object().cloned().unwrap_or_default(),
        }
    }

    #[test]
    fn tool_messages_as_people_see_them() {
        let shell = message(
            json!({"tool_name":"bash","input":{"command":"ls"},"is_error":false,"duration_ms":5,
            "details":{"type":"commandOutput","data":{"stdout":"a\nb\n","stderr":"","exitCode":2}}}),
            "bash completed",
        );
        let edit = message(
            json!({"tool_name":"edit","input":{"filePath":"/p/a.txt"},"is_error":false,"duration_ms":1,
            "details":{"type":"diff","data":{"oldContent":"one\ntwo\n","newContent":"one\n2\n","path":"/p/a.txt"}}}),
            "Updated /p/a.txt",
        );
        let failed = message(
            json!({"tool_name":"read","input":{"filePath":"/p/x"},"output":"File not found: /p/x","is_error":true,"duration_ms":0}),
            "x",
        );
        let text: String = [shell, edit, failed]
            .iter()
            .map(|m| tool_text(m, Paint::off(), "/p"))
            .collect();
        insta::assert_snapshot!(text, @r"
        $ ls  exit 2  5 ms
        a
        b
        ← Updated a.txt  1 ms
        @@ -1,2 +1,2 @@
         one
        -two
        +2
        ✗ read x failed  0 ms
        Error: File not found: x
        ");
    }

    /// A name for `outrigger.toml` is one there only in whole.
    #[test]
    fn a_table_of_a_plugins_file_keeps_its_whole_path() {
        let why = "/p/a.ts may not (`prompt = true` under [plugins.\"/p/x/a.ts\"] in your own outrigger.toml grants that)";
        assert_eq!(shorten(why, "/p/"), why.replacen("/p/", "", 1));
    }

    #[test]
    fn files_are_named_and_patches_show_what_changed() {
        let found: Vec<String> = (0..12).map(|n| format!("/p/{n}.txt")).collect();
        let found = json!({ "type": "fileList", "data": { "files": found } });
        let glob = message(
            json!({ "tool_name": "glob", "input": { "pattern": "*" }, "duration_ms": 1, "details": found }),
            "glob completed",
        );
        let change = |path: &str| json!({ "type": "diff", "data": { "oldContent": "1\n", "newContent": "2\n", "path": path } });
        let files = json!({ "type": "fileList", "data": { "files": ["a", "b"] } });
        let patch = message(
            json!({ "tool_name": "apply_patch", "duration_ms": 1, "details": files, "changes": [change("a"), change("b")] }),
            "Patched a, b",
        );
        let text: String = [glob, patch]
            .iter()
            .map(|m| tool_text(m, Paint::off(), "/p"))
            .collect();
        insta::assert_snapshot!(text, @r#"
        ✱ glob "*" 12 files  1 ms
          0.txt
          1.txt
          2.txt
          3.txt
          4.txt
          5.txt
          6.txt
          7.txt
          8.txt
          9.txt
          … 2 more
        ← Patched a, b  1 ms
        a
        @@ -1 +1 @@
        -1
        +2
        b
        @@ -1 +1 @@
        -1
        +2
        "#);
    }

    #[test]
    fn todos_and_tasks_are_no_json_and_no_tags() {
        let todos = json!([{ "content": "one", "status": "completed" }, { "content": "two\n", "status": "in_progress" },
            { "content": "three", "status": "pending" }, { "content": "four", "status": "cancelled" }]);
        let todos = message(
            json!({ "tool_name": "todowrite", "input": { "todos": todos }, "output": "[]", "duration_ms": 1 }),
            "todowrite completed",
        );
        let input =
            json!({ "description": "look", "prompt": "look around", "subagent_type": "general" });
        let output = "<task id=\"ses_2\" state=\"completed\">\n<task_result>\nnothing\nthere\n</task_result>\n</task>";
        let task = message(
            json!({ "tool_name": "task", "input": input, "output": output, "duration_ms": 2 }),
            "task completed",
        );
        let text: String = [todos, task]
            .iter()
            .map(|m| tool_text(m, Paint::off(), "/p"))
            .collect();
        insta::assert_snapshot!(text, @r"
        # Todos  1 ms
        [✓] one
        [•] two␊
        [ ] three
        [-] four
        • general: look  2 ms
        nothing
        there
        ");
    }

    #[test]
    fn starts_and_results_apart() {
        let input = json!({ "filePath": "/p/a.txt" });
        let half = |kind: &str, metadata| ConversationMessage {
            message_type: kind.into(),
            ..message(metadata, "read")
        };
        let start = half("tool_use", json!({ "tool_name": "read", "input": input }));
        let result = half(
            "tool_result",
            json!({ "tool_name": "read", "output": "one\ntwo", "is_error": false }),
        );
        let failed = half(
            "tool_result",
            json!({ "tool_name": "read", "output": "no /p/a.txt", "is_error": true }),
        );
        let text: String = [start, result, failed]
            .iter()
            .map(|m| tool_text(m, Paint::off(), "/p"))
            .collect();
        insta::assert_snapshot!(text, @r#"
        ▸ read {"filePath":"a.txt"}
        ◂ read
        one
        two
        ✗ read failed
        Error: no a.txt
        "#);
    }
}

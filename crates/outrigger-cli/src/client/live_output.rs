//! Live output of a running command.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use outrigger_protocol::Millis;
use outrigger_protocol::id::{CallId, PartId};
use outrigger_protocol::message::{Part, PartKind, PartTime, ToolPart, ToolState};
use serde_json::Value;

use crate::terminal::transcript::SHOWN_LINES;
use crate::terminal::{Paint, name, question};

/// A command that ends sooner is shown as a whole, below a line with its duration.
const QUICK: Duration = Duration::from_millis(500);

/// The output of the running command. The output of concurrent commands is shown when they end.
#[derive(Default)]
pub(super) struct LiveOutput {
    command: Option<Command>,
    /// Calls whose output is on the screen.
    shown: HashSet<CallId>,
}

/// A running command with output.
struct Command {
    part: PartId,
    call: CallId,
    text: String,
    /// When its output is shown.
    due: Instant,
    /// Its output as last reported: all of it, or the end if it is long.
    output: String,
    /// Bytes of `output` that are on the screen: whole lines.
    printed: usize,
    lines: usize,
    /// The command line itself is on the screen.
    has_title: bool,
    /// No more of it is shown: the screen has enough, or `output` has lost its start.
    is_full: bool,
}

impl LiveOutput {
    /// Handles a part of a call; returns what to print. `is_held`: nothing is printed now, unless the call has ended.
    pub(super) fn on(&mut self, part: &Part, at: Millis, is_held: bool, paint: Paint) -> String {
        let PartKind::Tool(call) = &part.kind else {
            return String::new();
        };
        match &call.state {
            ToolState::Running { metadata, time, .. } => {
                let output = metadata.as_ref().and_then(printed).unwrap_or_default();
                if output.is_empty() {
                    return String::new();
                }
                let command = match &mut self.command {
                    Some(command) if command.part != part.id => return String::new(),
                    Some(command) => command,
                    none => match Command::of(part, call, at.saturating_sub(time.start)) {
                        Some(command) => none.insert(command),
                        None => return String::new(),
                    },
                };
                command.take(output);
                if is_held || command.due > Instant::now() {
                    String::new()
                } else {
                    self.more(paint)
                }
            }
            ToolState::Completed { metadata, time, .. } => {
                self.end(part, paint, printed(metadata), |_| {
                    let code = match metadata.get("exit").and_then(Value::as_i64) {
                        Some(0) => String::new(),
                        Some(code) => paint.bad(&format!("  exit {code}")),
                        None => paint.bad("  killed"),
                    };
                    format!("{code}{}\n", took(time, paint))
                })
            }
            ToolState::Error {
                error,
                metadata,
                time,
                ..
            } => {
                let output = metadata.as_ref().and_then(printed);
                let end = match call.state.refused_by() {
                    Some(plugin) => format!("refused by plugin {}", name(plugin)),
                    None => "failed".to_owned(),
                };
                self.end(part, paint, output, |tool| {
                    format!(
                        "{} {} {end}{}\n{} {error}\n",
                        paint.bad("✗"),
                        name(tool),
                        took(time, paint),
                        paint.bad("Error:")
                    )
                })
            }
            ToolState::Pending { .. } => String::new(),
        }
    }

    /// Returns when there is something to print without a further report.
    pub(super) fn due(&self) -> Option<Instant> {
        let command = self.command.as_ref()?;
        (!command.is_full && command.rest().contains('\n')).then_some(command.due)
    }

    /// Returns what to print of the running command.
    pub(super) fn more(&mut self, paint: Paint) -> String {
        let Some(command) = &mut self.command else {
            return String::new();
        };
        let text = command.lines(paint);
        if command.has_title {
            self.shown.insert(command.call.clone());
        }
        text
    }

    /// Returns the last printed line, if no more of them is shown.
    pub(super) fn last_line(&self) -> Option<&str> {
        let command = self.command.as_ref().filter(|it| it.is_full)?;
        command
            .output
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
    }

    /// Returns whether the output of a call has been shown.
    pub(super) fn has_shown(&self, call: &str) -> bool {
        self.shown.iter().any(|shown| shown.0 == call)
    }

    /// Returns the rest of a call whose output is on the screen, and how it ended.
    fn end(
        &mut self,
        part: &Part,
        paint: Paint,
        output: Option<&str>,
        outcome: impl Fn(&str) -> String,
    ) -> String {
        let Some(mut command) = self.command.take_if(|command| command.part == part.id) else {
            return String::new();
        };
        let PartKind::Tool(call) = &part.kind else {
            return String::new();
        };
        if !command.has_title {
            return String::new();
        }
        if let Some(output) = output {
            command.take(output);
        }
        let mut text = command.lines(paint);
        let left = command.rest();
        if !command.is_full && !left.is_empty() {
            text.push_str(&format!("{left}\n"));
        } else if command.is_full && command.output.get(..command.printed).is_none() {
            text.push_str("… and more lines\n");
        } else if !left.is_empty() {
            text.push_str(&format!("… {} more lines\n", left.lines().count()));
        }
        text + &outcome(&call.tool)
    }
}

impl Command {
    /// Returns `None` for a tool that runs no command.
    fn of(part: &Part, call: &ToolPart, ran: Millis) -> Option<Self> {
        let text = call.state.input().get("command")?.as_str()?;
        Some(Self {
            part: part.id.clone(),
            call: call.call_id.clone(),
            text: text.to_owned(),
            due: Instant::now() + QUICK.saturating_sub(Duration::from_millis(ran)),
            output: String::new(),
            printed: 0,
            lines: 0,
            has_title: false,
            is_full: false,
        })
    }

    /// Sets the output so far.
    fn take(&mut self, output: &str) {
        let shown = self.output.get(..self.printed);
        if !shown.is_some_and(|shown| output.starts_with(shown)) {
            self.is_full = true;
            self.printed = usize::MAX;
        }
        output.clone_into(&mut self.output);
    }

    /// Returns what is not yet on the screen.
    fn rest(&self) -> &str {
        self.output.get(self.printed..).unwrap_or_default()
    }

    /// Returns the whole lines that are not yet on the screen, after the command itself, up to the limit.
    fn lines(&mut self, paint: Paint) -> String {
        let mut text = String::new();
        while !self.is_full
            && let Some(end) = self.rest().find('\n')
        {
            if self.lines == SHOWN_LINES {
                self.is_full = true;
                break;
            }
            if !std::mem::replace(&mut self.has_title, true) {
                text.push_str(&format!("{} {}\n", paint.bold("$"), question(&self.text)));
            }
            text.push_str(self.rest().get(..=end).unwrap_or_default());
            self.printed += end + 1;
            self.lines += 1;
        }
        text
    }
}

/// Returns a command's output.
fn printed(metadata: &Value) -> Option<&str> {
    metadata.get("output")?.as_str()
}

fn took(time: &PartTime, paint: Paint) -> String {
    let end = time.end.unwrap_or(time.start);
    paint.dim(&format!("  {} ms", end.saturating_sub(time.start)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn part(id: u32, state: Value) -> Part {
        let part = json!({ "id": format!("prt_{id}"), "sessionID": "ses_1", "messageID": "msg_1", "type": "tool", "tool": "bash",
            "callID": format!("c{id}"), "state": state });
        serde_json::from_value(part).unwrap()
    }

    fn running(id: u32, output: &str) -> Part {
        let state = json!({ "status": "running", "input": { "command": "make" }, "metadata": { "output": output },
            "time": { "start": 0 } });
        part(id, state)
    }

    fn ended(id: u32, output: &str) -> Part {
        let state = json!({ "status": "completed", "input": { "command": "make" }, "output": output, "title": "make",
            "metadata": { "output": output, "exit": 2 }, "time": { "start": 0, "end": 1500 } });
        part(id, state)
    }

    /// Shows parts, each reported this many milliseconds after its start.
    fn shown(parts: &[(u64, Part)]) -> (LiveOutput, Vec<String>) {
        let mut live = LiveOutput::default();
        let texts = parts
            .iter()
            .map(|(at, part)| live.on(part, *at, false, Paint::off()))
            .collect();
        (live, texts)
    }

    #[test]
    fn lines_are_shown_as_they_come() {
        let parts = [
            (600, running(1, "one\ntw")),
            (700, running(1, "one\ntwo\n")),
            // Another command waits.
            (800, running(2, "other\n")),
            (1500, ended(1, "one\ntwo\nthree")),
            (1600, running(2, "other\nlast\n")),
        ];
        let (live, texts) = shown(&parts);
        assert_eq!(
            texts,
            [
                "$ make\none\n",
                "two\n",
                "",
                "three\n  exit 2  1500 ms\n",
                "$ make\nother\nlast\n"
            ]
        );
        assert!(live.has_shown("c1") && live.has_shown("c2"));
    }

    #[test]
    fn a_quick_command_is_not_shown_here() {
        let (live, texts) = shown(&[(0, running(1, "one\n")), (9, ended(1, "one\n"))]);
        assert_eq!(texts, ["", ""]);
        assert!(!live.has_shown("c1"));
    }

    #[test]
    fn what_came_early_is_due_later() {
        let (mut live, texts) = shown(&[(0, running(1, "one\n"))]);
        assert_eq!(texts, [""]);
        assert!(live.due().unwrap() > Instant::now());
        assert_eq!(live.more(Paint::off()), "$ make\none\n");
        assert_eq!(live.due(), None);
    }

    #[test]
    fn no_more_lines_than_fit() {
        let all: String = (0..50).map(|n| format!("line {n}\n")).collect();
        let (live, texts) = shown(&[(600, running(1, &all))]);
        assert_eq!(texts[0].lines().count(), SHOWN_LINES + 1);
        assert_eq!(live.last_line(), Some("line 49"));
        let (_, texts) = shown(&[(600, running(1, &all)), (700, ended(1, &all))]);
        assert_eq!(texts[1], "… 10 more lines\n  exit 2  1500 ms\n");
        // The reported output has lost its start.
        let (_, texts) = shown(&[(600, running(1, "a\n")), (700, ended(1, "...\n\nz\n"))]);
        assert_eq!(texts[1], "… and more lines\n  exit 2  1500 ms\n");
    }
}

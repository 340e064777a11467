//! What stays told of a command that failed, whatever a hook makes of its output (issue 5, item 6: failure to success).

use outrigger_protocol::tool::ToolOutput;
use serde_json::Value;

/// How a bundled tool begins what it says of a command.
const NOTE: &str = "\n\n<shell_metadata>";

/// The line about a failed command; `None` for one that went well, and for what is no command.
pub(super) fn note(output: &ToolOutput) -> Option<String> {
    let exit = output.metadata.get("exit")?;
    if exit.as_f64() == Some(0.0) {
        return None;
    }
    let said = output
        .output
        .rfind(NOTE)
        .and_then(|at| output.output.get(at..));
    let code = match exit {
        Value::Number(code) => format!("The command failed: exit code {code}."),
        _ => "The command did not end by itself.".to_owned(),
    };
    Some(said.map_or_else(
        || format!("{NOTE}\n{code}\n</shell_metadata>"),
        str::to_owned,
    ))
}

/// Puts the line behind what hooks have rewritten, where they have taken it away.
pub(super) fn keep(note: Option<String>, before: &str, mut output: ToolOutput) -> ToolOutput {
    if let Some(note) = note
        && output.output != before
        && !output.output.contains(note.trim())
    {
        output.output.push_str(&note);
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_by_table() {
        let made = |output: &str, exit: &Value| ToolOutput {
            title: String::new(),
            output: output.to_owned(),
            metadata: json!({ "exit": exit }),
            attachments: None,
        };
        let timeout = "x\n\n<shell_metadata>\ntoo late\n</shell_metadata>";
        for (before, exit, after, want) in [
            ("FAILED", json!(0), "fine", "fine"),
            ("FAILED", json!(3), "FAILED", "FAILED"),
            (
                "FAILED",
                json!(3),
                "fine",
                "fine\n\n<shell_metadata>\nThe command failed: exit code 3.\n</shell_metadata>",
            ),
            (
                timeout,
                Value::Null,
                "fine",
                "fine\n\n<shell_metadata>\ntoo late\n</shell_metadata>",
            ),
            (timeout, Value::Null, timeout, timeout),
        ] {
            let noted = note(&made(before, &exit));
            let kept = keep(noted, before, made(after, &exit));
            assert_eq!(kept.output, want, "{before} {exit}");
        }
        let mut plain = made("x", &json!(1));
        plain.metadata = json!({});
        assert_eq!(note(&plain), None);
    }
}

//! Output of the tool `task`: the answer of a subagent, wrapped for the model.

use crate::id::SessionId;

const BEGIN: &str = "<task_result>\n";
const END: &str = "\n</task_result>";

/// Returns the output for the model, as OpenCode writes it.
#[must_use]
pub fn format(session: &SessionId, answer: &str) -> String {
    format!("<task id=\"{session}\" state=\"completed\">\n{BEGIN}{answer}{END}\n</task>")
}

/// Returns the answer of the subagent without what is around it; all of an output that has another form.
#[must_use]
pub fn answer(output: &str) -> &str {
    output
        .split_once(BEGIN)
        .and_then(|(_, rest)| rest.rsplit_once(END))
        .map_or(output, |(answer, _)| answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_read_from_what_is_written() {
        let session = SessionId("ses_child".into());
        for text in ["done", "", "a\n</task_result>\nb", "<task_result>\nquoted"] {
            assert_eq!(answer(&format(&session, text)), text);
        }
        assert_eq!(answer("another form"), "another form");
    }
}

//! Permission questions at the terminal.

use std::io::{BufRead as _, IsTerminal as _};

use outrigger_agent::Agent;
use outrigger_protocol::permission::{PermissionRequest, Reply};

use crate::progress::Line;
use crate::view::Paint;

/// A person is at both ends: they can read the question and answer it.
pub(crate) fn person_is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Puts a question and passes the answer on, without holding up what else goes on.
pub(crate) fn ask(agent: &Agent, line: &Line, request: &PermissionRequest) {
    line.wait_for(None);
    let paint = Paint::for_stderr();
    let always = if request.always.is_empty() {
        String::new()
    } else {
        format!(", [a]lways ({})", request.always.join(", "))
    };
    let what = format!("{} ({})", request.permission, request.patterns.join(", "));
    line.say(&format!("{} allow {what}? [y]es, [n]o{always}: ", paint.bold("?")));
    let (agent, id) = (agent.clone(), request.id.clone());
    // Reading a line cannot be given up: the thread stays until the person answers or the program ends.
    std::thread::spawn(move || {
        let mut text = String::new();
        // The end of input is an answer too, and it is no.
        let read = std::io::stdin().lock().read_line(&mut text).unwrap_or(0);
        let reply = if read == 0 { Reply::Reject } else { meaning(&text) };
        let _ = agent.answer(&id, reply);
    });
}

fn meaning(text: &str) -> Reply {
    match text.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Reply::Once,
        "a" | "always" => Reply::Always,
        _ => Reply::Reject,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        for (text, want) in [("y\n", Reply::Once), ("YES\n", Reply::Once), ("a\n", Reply::Always), ("\n", Reply::Reject), ("yep\n", Reply::Reject)] {
            assert_eq!(meaning(text), want, "{text:?}");
        }
    }
}

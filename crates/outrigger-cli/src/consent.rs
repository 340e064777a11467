//! What a person is asked before there is an agent: whether to fetch a program, and whom to trust.

use std::io::BufRead as _;

use outrigger_agent::FolderQuestion;
use outrigger_plugins::TrustQuestion;

use crate::terminal::progress::Line;
use crate::terminal::{self, name};

/// Whether a program may be fetched from npm. A plain thread reads the answer: a user who leaves instead of answering must not
/// be waited for.
pub(crate) async fn may_fetch(line: Line, what: String) -> bool {
    line.say(&format!(
        "? a plugin needs {}, which is not here; fetch it from npm (about 40 MB, once)? [y/N] ",
        name(&what)
    ));
    said_yes().await
}

/// Whether a plugin is to be trusted as it is now (issue 5).
pub(crate) async fn may_trust(line: Line, question: TrustQuestion) -> bool {
    let TrustQuestion {
        plugin,
        spec,
        reason,
        details,
    } = question;
    line.say(&format!(
        "plugin {} ({}): {}\n{}? start it, and trust it as it is now? [y/N] ",
        name(&plugin),
        name(&spec),
        name(&reason),
        terminal::question(&details)
    ));
    said_yes().await
}

/// Whether the settings of the folder are to count (issue 18).
pub(crate) async fn may_trust_folder(line: Line, asked: FolderQuestion) -> bool {
    line.say(&terminal::question(&asked.summary));
    loop {
        line.say("? trust this folder, as long as this stays as it is? [y]es, [N]o, [d]etails: ");
        match typed().await.as_deref().map(str::trim) {
            Some("y" | "Y" | "yes") => return true,
            Some("d" | "D" | "details") => line.say(&terminal::question(&asked.details)),
            _ => return false,
        }
    }
}

async fn said_yes() -> bool {
    let text = typed().await;
    text.is_some_and(|text| matches!(text.trim(), "y" | "Y" | "yes"))
}

/// A line of the terminal; `None` at its end.
async fn typed() -> Option<String> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = std::io::stdin().lock().read_line(&mut text).unwrap_or(0);
        let _ = sender.send((read > 0).then_some(text));
    });
    receiver.await.ok().flatten()
}

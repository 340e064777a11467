//! Questions to the user before there is an agent: whether to download a program, and what to trust.

use std::io::BufRead as _;
use std::path::Path;

use outrigger_agent::{FolderQuestion, FolderSection};
use outrigger_plugins::TrustQuestion;
use outrigger_terminal::{Frame, brief, prompt};

use crate::terminal::progress::Line;
use crate::terminal::{self, err_size, name};

/// Asks whether a program may be downloaded from npm. A plain thread reads the answer: the process must not wait for a user
/// who quits instead.
pub(crate) async fn may_fetch(line: Line, what: String) -> bool {
    line.say(&format!(
        "? a plugin needs {}, which is not here; fetch it from npm (about 40 MB, once)? [y/N] ",
        name(&what)
    ));
    said_yes().await
}

/// Asks whether a file named on the command line is attached to the prompt.
pub(crate) async fn may_attach(line: &Line, path: &Path, why: &str) -> bool {
    line.say(&format!(
        "? {}: {}; send it to the model? [y/N] ",
        name(&path.display().to_string()),
        name(why)
    ));
    said_yes().await
}

/// Asks whether to trust a plugin with its current content.
pub(crate) async fn may_trust(line: Line, question: TrustQuestion) -> bool {
    Sheet::of_plugin(question).asks(&line).await
}

/// Asks whether to apply the settings of the folder.
pub(crate) async fn may_trust_folder(line: Line, asked: FolderQuestion) -> bool {
    Sheet::of_folder(&asked).asks(&line).await
}

/// A question with more details than fit on the screen.
pub(crate) struct Sheet {
    /// Our own first line.
    pub(crate) head: String,
    pub(crate) bounded: Frame,
    pub(crate) whole: Frame,
    pub(crate) what: String,
    short: &'static str,
    /// The key that shows all.
    view: &'static str,
}

impl Sheet {
    /// Asks whether to trust a plugin with its current content.
    pub(crate) fn of_plugin(question: TrustQuestion) -> Self {
        let TrustQuestion {
            plugin,
            spec,
            reason,
            details,
        } = question;
        let frame = Frame::new()
            .with("plugin", plugin)
            .with("from", spec)
            .with("because", reason)
            .with("files", details);
        Self {
            head: String::new(),
            bounded: frame.clone(),
            whole: frame,
            what: "start it, and trust it as it is now".to_owned(),
            short: "start and trust it",
            view: "[v]iew",
        }
    }

    /// Asks whether to apply the settings of a folder.
    pub(crate) fn of_folder(asked: &FolderQuestion) -> Self {
        Self {
            head: format!("{}, as long as this stays as it is:\n", asked.head),
            bounded: folder_summary(asked),
            whole: folder_details(asked),
            what: format!("trust this folder: {}", summary(asked)),
            short: "trust this folder",
            view: "[d]etails",
        }
    }

    async fn asks(&self, line: &Line) -> bool {
        terminal::hold(true);
        let answer = self.answer(line).await;
        terminal::hold(false);
        answer
    }

    async fn answer(&self, line: &Line) -> bool {
        let (size, head) = (err_size(), &self.head);
        line.say(&format!(
            "{head}{}",
            self.bounded.bounded(size.less(head), "").text
        ));
        let mut next = 0;
        loop {
            let size = err_size();
            line.say(&prompt(
                &self.what,
                self.short,
                &["[y]es", "[N]o", self.view],
                size,
            ));
            let typed = typed().await;
            match typed.as_deref().map(str::trim) {
                Some("y" | "Y" | "yes") => return true,
                Some("d" | "D" | "details" | "v" | "V" | "view") => {
                    let pages = self.whole.pages(size);
                    line.say(pages.get(next).map(String::as_str).unwrap_or_default());
                    next = (next + 1) % pages.len().max(1);
                    if next > 0 {
                        line.say(&format!("page {next} of {}\n", pages.len()));
                    }
                }
                _ => return false,
            }
        }
    }
}

/// Returns how many entries of each kind a folder has.
pub(crate) fn summary(asked: &FolderQuestion) -> String {
    let counts: Vec<String> = asked.sections.iter().map(count).collect();
    counts.join(", ")
}

fn count(section: &FolderSection) -> String {
    let count = section.entries.len();
    let title = match count {
        1 => section.title.trim_end_matches('s'),
        _ => section.title,
    };
    format!("{count} {title}")
}

/// Maximum number of names shown in a section; the rest is counted.
const MAX_NAMED: usize = 6;
/// Maximum columns of a name.
const MAX_NAME: usize = 60;

fn folder_summary(asked: &FolderQuestion) -> Frame {
    let mut frame = Frame::new();
    for section in &asked.sections {
        let names = section.entries.iter().take(MAX_NAMED).map(|entry| {
            let name = brief(&entry.name, MAX_NAME);
            match entry.mark {
                "" => name,
                mark => format!("{mark}: {name}"),
            }
        });
        let mut text = names.collect::<Vec<_>>().join(", ");
        if section.entries.len() > MAX_NAMED {
            text.push_str(&format!(" and {} more", section.entries.len() - MAX_NAMED));
        }
        frame.add(section.title, text);
    }
    frame
}

/// Returns every entry in full.
pub(crate) fn folder_details(asked: &FolderQuestion) -> Frame {
    let mut frame = Frame::new();
    for section in &asked.sections {
        for entry in &section.entries {
            let mark = match entry.mark {
                "" => String::new(),
                mark => format!("{mark}: "),
            };
            let (place, value) = (&entry.place, &entry.value);
            let value = value.replace('\n', "\n  ");
            frame.add(section.title, format!("{mark}{place}:\n  {value}"));
        }
    }
    frame
}

async fn said_yes() -> bool {
    let text = typed().await;
    text.is_some_and(|text| matches!(text.trim(), "y" | "Y" | "yes"))
}

/// Reads a line of the terminal; `None` at its end.
async fn typed() -> Option<String> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = std::io::stdin().lock().read_line(&mut text).unwrap_or(0);
        let _ = sender.send((read > 0).then_some(text));
    });
    receiver.await.ok().flatten()
}

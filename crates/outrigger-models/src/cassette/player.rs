//! Replay.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use outrigger_protocol::model::{ModelRequest, StreamEvent, Usage};
use outrigger_stdx::sync::lock;
use serde_json::Value;

use super::diff::first_difference;
use super::normal::{DIR, directory_names, view};
use super::{Entry, FORM, Head};
use crate::error::ModelError;

/// The title if none was recorded.
const NO_TITLE: &str = "Replayed conversation";

/// A cassette and its playback position.
#[derive(Debug)]
pub(crate) struct Player {
    path: PathBuf,
    compare_system: bool,
    turns: Vec<Entry>,
    asides: Vec<Entry>,
    state: Mutex<Played>,
}

#[derive(Debug, Default)]
struct Played {
    turns: Vec<bool>,
    asides: usize,
}

impl Player {
    pub(crate) fn load(path: PathBuf) -> Result<Self, ModelError> {
        let error = |message: String| ModelError::Cassette {
            path: path.clone(),
            message,
        };
        let text = outrigger_files::read_to_string(&path, 4 * outrigger_files::DATA)
            .map_err(|e| error(format!("cannot read it: {e}")))?;
        let mut lines = text
            .lines()
            .enumerate()
            .filter(|(_, l)| !l.trim().is_empty());
        let head: Head = lines
            .next()
            .and_then(|(_, line)| serde_json::from_str(line).ok())
            .ok_or_else(|| error("the first line is not a cassette header".into()))?;
        if head.cassette != FORM {
            return Err(error(format!(
                "has format {}, and this version reads format {FORM}",
                head.cassette
            )));
        }
        let (mut turns, mut asides) = (Vec::new(), Vec::new());
        for (number, line) in lines {
            let entry: Entry = serde_json::from_str(line)
                .map_err(|e| error(format!("line {}: {e}", number + 1)))?;
            if entry.is_aside() {
                asides.push(entry)
            } else {
                turns.push(entry)
            }
        }
        Ok(Self {
            path,
            compare_system: head.compare_system,
            state: Mutex::new(Played {
                turns: vec![false; turns.len()],
                asides: 0,
            }),
            turns,
            asides,
        })
    }

    /// Returns the events of the response. Requests come in the recorded order; for concurrent subagents, a
    /// later recorded request that matches exactly is also accepted.
    pub(crate) fn answer(
        &self,
        request: &ModelRequest,
        directory: &Path,
    ) -> Result<Vec<StreamEvent>, ModelError> {
        let mut state = lock(&self.state);
        if request.tools.is_empty() {
            let found = self.asides.get(state.asides);
            state.asides += 1;
            return Ok(found.map_or_else(no_title, |e| replayed(&e.events, directory)));
        }
        let names = directory_names(directory);
        let got = view(request, &names, self.compare_system);
        let mut difference = None;
        for (at, (entry, played)) in self.turns.iter().zip(&mut state.turns).enumerate() {
            if *played {
                continue;
            }
            let wanted = view(&entry.request, &[], self.compare_system);
            match first_difference(&wanted, &got) {
                None => {
                    *played = true;
                    return Ok(replayed(&entry.events, directory));
                }
                Some(found) if difference.is_none() => difference = Some((at, found)),
                Some(_) => {}
            }
        }
        let path = self.path.clone();
        Err(match difference {
            Some((at, (pointer, wanted, got))) => ModelError::CassetteMismatch {
                path,
                request: at + 1,
                pointer,
                wanted,
                got,
            },
            None => ModelError::CassetteExhausted {
                path,
                request: self.turns.len() + 1,
                recorded: self.turns.len(),
            },
        })
    }
}

fn no_title() -> Vec<StreamEvent> {
    vec![
        StreamEvent::Started,
        StreamEvent::TextStart { index: 0 },
        StreamEvent::TextDelta {
            index: 0,
            text: NO_TITLE.into(),
        },
        StreamEvent::TextEnd { index: 0 },
        StreamEvent::Finished {
            reason: "stop".into(),
            usage: Usage::default(),
        },
    ]
}

// Inserts the directory, and splits texts into words so that a replay streams.
fn replayed(events: &[StreamEvent], directory: &Path) -> Vec<StreamEvent> {
    let plain = directory.to_string_lossy();
    let quoted = Value::from(plain.as_ref()).to_string();
    let escaped = quoted.trim_matches('"');
    let mut out = Vec::new();
    for event in events {
        match event {
            StreamEvent::TextDelta { index, text } => {
                let text = text.replace(DIR, &plain);
                out.extend(
                    text.split_inclusive(' ')
                        .map(|word| StreamEvent::TextDelta {
                            index: *index,
                            text: word.to_owned(),
                        }),
                );
            }
            StreamEvent::ReasoningDelta { index, text } => out.push(StreamEvent::ReasoningDelta {
                index: *index,
                text: text.replace(DIR, &plain),
            }),
            StreamEvent::ToolEnd {
                call_id,
                tool,
                raw,
                metadata,
            } => out.push(StreamEvent::ToolEnd {
                call_id: call_id.clone(),
                tool: tool.clone(),
                raw: raw.replace(DIR, escaped),
                metadata: metadata.clone(),
            }),
            other => out.push(other.clone()),
        }
    }
    out
}

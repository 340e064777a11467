//! Recording.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use futures_util::stream::unfold;
use outrigger_protocol::model::{ModelRequest, StreamEvent};
use outrigger_stdx::sync::lock;
use serde_json::Value;

use super::normal::{directory_names, hide_directory, map_text};
use super::{Entry, FORM, Head};
use crate::error::ModelError;
use crate::secret::Secrets;
use crate::transport::client::USER_AGENT;
use crate::transport::stream::{ModelStream, StreamItem};

/// Appends answered requests to a cassette. A failed response is not recorded.
#[derive(Debug)]
pub(crate) struct Recorder {
    path: PathBuf,
    // Two responses that end at the same moment must not mix their lines.
    lock: Mutex<()>,
}

impl Recorder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            lock: Mutex::new(()),
        }
    }

    /// Wraps a stream to record it. Its line is in the file when it has finished; if that cannot be written, the
    /// stream ends with that error, because an incomplete recording is useless.
    pub(crate) fn wrap(
        self: &Arc<Self>,
        stream: ModelStream,
        request: &ModelRequest,
        model: &str,
        directory: &Path,
        secrets: Secrets,
    ) -> ModelStream {
        let entry = Entry {
            model: model.to_owned(),
            // Headers may contain keys.
            request: ModelRequest {
                headers: Vec::new(),
                ..request.clone()
            },
            events: Vec::new(),
        };
        let (recorder, names) = (Arc::clone(self), directory_names(directory));
        let state = (stream, Some(entry), recorder, names, secrets);
        Box::pin(unfold(
            state,
            |(mut stream, mut entry, recorder, names, secrets)| async move {
                let mut item = stream.next().await?;
                if let (Ok(StreamItem::Event(event)), Some(open)) = (&item, &mut entry) {
                    push(&mut open.events, event);
                    if matches!(event, StreamEvent::Finished { .. })
                        && let Err(error) = recorder.write(open, &names, &secrets)
                    {
                        item = Err(error);
                        entry = None;
                    }
                }
                Some((item, (stream, entry, recorder, names, secrets)))
            },
        ))
    }

    fn write(&self, entry: &Entry, names: &[String], secrets: &Secrets) -> Result<(), ModelError> {
        let error = |message: String| ModelError::Cassette {
            path: self.path.clone(),
            message,
        };
        let mut value = serde_json::to_value(entry).map_err(|e| error(e.to_string()))?;
        map_text(&mut value, &|text| {
            secrets.scrub_exact(&hide_directory(text, names))
        });
        let _guard = lock(&self.lock);
        let failed = |e: std::io::Error| error(format!("cannot write it: {e}"));
        if let Some(parent) = self.path.parent().filter(|p| !p.as_os_str().is_empty()) {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path)
            .map_err(failed)?;
        let mut text = String::new();
        if file.metadata().map_err(failed)?.len() == 0 {
            let head = Head {
                cassette: FORM,
                program: USER_AGENT.to_owned(),
                compare_system: false,
            };
            text.push_str(&line(&head).map_err(error)?);
        }
        text.push_str(&line::<Value>(&value).map_err(error)?);
        file.write_all(text.as_bytes()).map_err(failed)
    }
}

fn line<T: serde::Serialize>(value: &T) -> Result<String, String> {
    let mut text = serde_json::to_string(value).map_err(|e| e.to_string())?;
    text.push('\n');
    Ok(text)
}

// Deltas of one block are merged, so that the directory's name is complete when it is replaced.
fn push(events: &mut Vec<StreamEvent>, event: &StreamEvent) {
    match (events.last_mut(), event) {
        (
            Some(StreamEvent::TextDelta {
                index: at,
                text: last,
            }),
            StreamEvent::TextDelta { index, text },
        )
        | (
            Some(StreamEvent::ReasoningDelta {
                index: at,
                text: last,
            }),
            StreamEvent::ReasoningDelta { index, text },
        ) if at == index => {
            last.push_str(text);
        }
        _ => events.push(event.clone()),
    }
}

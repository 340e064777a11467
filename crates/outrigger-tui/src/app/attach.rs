//! Insertions into the prompt: pasted texts, images, and the result of the user's editor.

use outrigger_protocol::message::PartKind;
use outrigger_protocol::session::PartInput;
use serde_json::json;

use super::App;
use crate::render::theme::Role;
use crate::state::attachments::{Image, image_path};
use crate::state::effect::Effect;

impl App {
    /// Handles pasted text.
    pub(crate) fn paste(&mut self, text: &str, now: u64) -> Vec<Effect> {
        if self.asking.takes_key(now) {
            if let Some(words) = &mut self.asking.words {
                words.insert(text);
            }
            return Vec::new();
        }
        if let Some(picker) = &mut self.picker {
            picker
                .filter
                .insert(text.lines().next().unwrap_or_default());
            picker.narrow();
            return Vec::new();
        }
        if let Some(path) = image_path(text) {
            return vec![Effect::Image(path, text.to_owned())];
        }
        self.vi_inserts();
        let text = self.attachments.fold(text);
        self.editor.insert(&text);
        Vec::new()
    }

    /// Handles a pasted file after it was read.
    pub(crate) fn image(&mut self, pasted: &str, image: Option<Image>) {
        self.vi_inserts();
        match image {
            Some(image) => {
                let mark = self.attachments.image(image);
                self.editor.insert(&format!("{mark} "));
            }
            None => self.editor.insert(pasted),
        }
    }

    /// Returns the parts of a prompt for its images.
    pub(crate) fn images_of(&mut self, prompt: &str) -> Vec<PartInput> {
        self.attachments
            .take_images(prompt)
            .into_iter()
            .map(|image| {
                let file =
                    json!({ "mime": image.mime, "filename": image.name, "url": image.url() });
                PartInput {
                    id: None,
                    kind: PartKind::File(file.as_object().cloned().unwrap_or_default()),
                }
            })
            .collect()
    }

    /// Opens the prompt in the user's editor.
    pub(crate) fn edit_outside(&mut self) -> Vec<Effect> {
        let text = self.attachments.unfold(self.editor.text());
        vec![Effect::Edit(text)]
    }

    /// Handles the result of the user's editor.
    pub(crate) fn edited(&mut self, text: Result<String, String>) {
        match text {
            // Editors end a file with a newline.
            Ok(text) => self.editor.set(text.strip_suffix('\n').unwrap_or(&text)),
            Err(why) => self.say(&why, Role::Bad),
        }
    }

    /// Deletes the mark before the cursor as a whole.
    pub(crate) fn delete_mark(&mut self) -> bool {
        let (before, _) = self.editor.around();
        let Some(mark) = self.attachments.at_end_of(before) else {
            return false;
        };
        let from = before.len() - mark.len();
        self.editor.replace_from(from, "");
        true
    }

    fn vi_inserts(&mut self) {
        if let Some(vi) = &mut self.vi {
            vi.insert();
        }
    }
}

//! Attachments of a prompt: long pasted texts, and images. A mark in the prompt represents each.

/// A pasted text with this many lines is folded, ...
const FOLDED_LINES: usize = 6;
/// ... or with this many bytes.
const FOLDED_BYTES: usize = 1000;
/// Extensions of files that may be images.
const ENDINGS: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];

/// An image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The name of its file.
    pub name: String,
    /// Its type.
    pub mime: &'static str,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Image {
    /// Creates an image if its first bytes identify a format that models read.
    #[must_use]
    pub fn of(path: &str, bytes: Vec<u8>) -> Option<Self> {
        let mime = match bytes.as_slice() {
            [0x89, b'P', b'N', b'G', ..] => "image/png",
            [0xff, 0xd8, 0xff, ..] => "image/jpeg",
            [b'G', b'I', b'F', b'8', ..] => "image/gif",
            [
                b'R',
                b'I',
                b'F',
                b'F',
                _,
                _,
                _,
                _,
                b'W',
                b'E',
                b'B',
                b'P',
                ..,
            ] => "image/webp",
            _ => return None,
        };
        let name = path.rsplit('/').next().unwrap_or(path).to_owned();
        Some(Self { name, mime, bytes })
    }

    /// Encodes it as a data URL.
    #[must_use]
    pub fn url(&self) -> String {
        use base64::Engine as _;
        let data = base64::engine::general_purpose::STANDARD.encode(&self.bytes);
        format!("data:{};base64,{data}", self.mime)
    }
}

/// Marks and what they represent.
#[derive(Debug, Default)]
pub struct Attachments {
    texts: Vec<(String, String)>,
    images: Vec<(String, Image)>,
}

impl Attachments {
    /// Returns the insertion for a pasted text: itself, or a mark.
    pub fn fold(&mut self, text: &str) -> String {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let lines = text.trim_end_matches('\n').split('\n').count();
        if lines < FOLDED_LINES && text.len() < FOLDED_BYTES {
            return text;
        }
        let what = match lines {
            1 => format!("pasted {} characters", text.chars().count()),
            lines => format!("pasted {lines} lines"),
        };
        let mark = self.mark(&what);
        self.texts.push((mark.clone(), text));
        mark
    }

    /// Returns the mark of a new image.
    pub fn image(&mut self, image: Image) -> String {
        let mark = self.mark(&format!(
            "image {}",
            super::super::render::text::inline(&image.name)
        ));
        self.images.push((mark.clone(), image));
        mark
    }

    /// Returns an unused mark.
    fn mark(&self, what: &str) -> String {
        let is_free = |mark: &String| !self.marks().any(|it| it == mark);
        let mark = |n: usize| match n {
            1 => format!("[{what}]"),
            n => format!("[{what} #{n}]"),
        };
        (1..).map(mark).find(is_free).unwrap_or_default()
    }

    fn marks(&self) -> impl Iterator<Item = &str> {
        self.texts
            .iter()
            .map(|(mark, _)| mark.as_str())
            .chain(self.images.iter().map(|(mark, _)| mark.as_str()))
    }

    /// Returns the mark with which a text ends.
    #[must_use]
    pub fn at_end_of(&self, text: &str) -> Option<&str> {
        self.marks().find(|mark| text.ends_with(mark))
    }

    /// Replaces the marks of texts in a prompt.
    #[must_use]
    pub fn unfold(&self, prompt: &str) -> String {
        let mut out = String::new();
        let mut rest = prompt;
        loop {
            let next = self
                .texts
                .iter()
                .filter_map(|(mark, text)| Some((rest.find(mark.as_str())?, mark, text)));
            let Some((at, mark, text)) = next.min_by_key(|(at, ..)| *at) else {
                out.push_str(rest);
                return out;
            };
            let (before, after) = rest.split_at_checked(at).unwrap_or((rest, ""));
            out.push_str(before);
            out.push_str(text);
            rest = after.strip_prefix(mark.as_str()).unwrap_or_default();
        }
    }

    /// Takes the images whose marks are in a prompt.
    pub fn take_images(&mut self, prompt: &str) -> Vec<Image> {
        let all = std::mem::take(&mut self.images);
        let (taken, kept) = all
            .into_iter()
            .partition::<Vec<_>, _>(|(mark, _)| prompt.contains(mark.as_str()));
        self.images = kept;
        taken.into_iter().map(|(_, image)| image).collect()
    }
}

/// Returns the path in a pasted text, if that may be an image: terminals write the path of a file that is dropped on them, some quoted,
/// some with a backslash before blanks, some as a URL.
#[must_use]
pub fn image_path(pasted: &str) -> Option<String> {
    let text = pasted.trim();
    if text.contains('\n') || text.len() > 4096 {
        return None;
    }
    let quoted = ['\'', '"']
        .iter()
        .find_map(|it| text.strip_prefix(*it)?.strip_suffix(*it));
    let path = match (quoted, text.strip_prefix("file://")) {
        (Some(path), _) => path.to_owned(),
        (None, Some(address)) => decoded(address),
        (None, None) => text.replace('\\', ""),
    };
    let lower = path.to_lowercase();
    let is_image = ENDINGS.iter().any(|it| lower.ends_with(it));
    let is_path = ["/", "~/", "./", "../"]
        .iter()
        .any(|it| path.starts_with(it));
    (is_image && is_path).then_some(path)
}

/// Decodes percent-encoding.
fn decoded(address: &str) -> String {
    let bytes = percent_encoding::percent_decode_str(address);
    bytes.decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_folded_is_sent_whole() {
        let mut attachments = Attachments::default();
        assert_eq!(attachments.fold("one\r\ntwo"), "one\ntwo");
        let long = "line\n".repeat(120);
        let (first, second) = (
            attachments.fold(&long),
            attachments.fold(&long.replace('l', "[pasted 120 lines]")),
        );
        assert_eq!(
            (first.as_str(), second.as_str()),
            ("[pasted 120 lines]", "[pasted 120 lines #2]")
        );
        let prompt = format!("see {first} and {second}.");
        let whole = attachments.unfold(&prompt);
        assert!(
            whole.starts_with("see line\n") && whole.ends_with("]ine\n."),
            "{whole}"
        );
        assert_eq!(
            whole.matches("[pasted 120 lines]").count(),
            120,
            "what is in a pasted text stays"
        );
        assert_eq!(
            attachments.at_end_of("see [pasted 120 lines]"),
            Some("[pasted 120 lines]")
        );
    }

    #[test]
    fn paths_of_images() {
        for (pasted, path) in [
            ("/tmp/a.png", Some("/tmp/a.png")),
            ("'/tmp/a b.JPG' ", Some("/tmp/a b.JPG")),
            ("/tmp/a\\ b.webp", Some("/tmp/a b.webp")),
            ("file:///tmp/a%20b.gif", Some("/tmp/a b.gif")),
            ("file:///tmp/a%+1.gif", Some("/tmp/a%+1.gif")),
            ("a.png", None),
            ("/tmp/a.txt", None),
            ("see\n/tmp/a.png", None),
        ] {
            assert_eq!(image_path(pasted).as_deref(), path, "{pasted}");
        }
    }
}

//! Collects the output of a command: a bounded tail in memory, all of it in a file once it is too long.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use outrigger_stdx::text::ceil_char_boundary;

use crate::host::Limits;
use crate::output::{create, tail};

/// Output as it arrives.
pub(crate) struct Capture<'a> {
    limits: &'a Limits,
    artifacts: &'a Path,
    call: &'a str,
    /// The last bytes; all of them until `total` is larger than `keep`.
    held: VecDeque<u8>,
    keep: usize,
    total: u64,
    lines: usize,
    file: Option<(File, PathBuf)>,
    lost: Option<String>,
}

/// The collected output.
pub(crate) struct Captured {
    /// The end of the output, within the limits.
    pub(crate) text: String,
    /// There is more than `text`.
    pub(crate) truncated: bool,
    /// The file with all of it.
    pub(crate) path: Option<PathBuf>,
    /// Why it is incomplete.
    pub(crate) lost: Option<String>,
}

impl<'a> Capture<'a> {
    pub(crate) fn new(limits: &'a Limits, artifacts: &'a Path, call: &'a str) -> Self {
        Self {
            limits,
            artifacts,
            call,
            held: VecDeque::new(),
            keep: limits.max_bytes + 4096,
            total: 0,
            lines: 1,
            file: None,
            lost: None,
        }
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let fits = self.total + bytes.len() as u64 <= self.keep as u64;
        self.lines += bytes.iter().filter(|b| **b == b'\n').count();
        let few = self.lines <= self.limits.max_lines;
        if (!fits || !few) && self.file.is_none() && self.lost.is_none() {
            self.spill();
        }
        self.save(bytes);
        self.total += bytes.len() as u64;
        self.held.extend(bytes);
        let over = self.held.len().saturating_sub(self.keep);
        self.held.drain(..over);
    }

    // Until here everything is in memory: write it to the file first.
    fn spill(&mut self) {
        match create(self.artifacts, self.call) {
            Ok(file) => self.file = Some(file),
            Err(error) => self.lost = Some(error.to_string()),
        }
        let (a, b) = self.held.as_slices();
        let so_far = [a, b].concat();
        self.save(&so_far);
    }

    fn save(&mut self, bytes: &[u8]) {
        let Some((file, _)) = self.file.as_mut().filter(|_| self.lost.is_none()) else {
            return;
        };
        if self.total + bytes.len() as u64 > self.limits.artifact_bytes {
            self.lost = Some(format!(
                "only the first {} bytes are kept",
                self.limits.artifact_bytes
            ));
        } else if let Err(error) = file.write_all(bytes) {
            self.lost = Some(error.to_string());
        }
    }

    fn held_text(&self) -> String {
        let (a, b) = self.held.as_slices();
        let bytes = [a, b].concat();
        // The tail may start inside a character.
        let begin = if self.total > bytes.len() as u64 {
            bytes
                .iter()
                .take(4)
                .take_while(|b| **b & 0xC0 == 0x80)
                .count()
        } else {
            0
        };
        String::from_utf8_lossy(bytes.get(begin..).unwrap_or_default()).into_owned()
    }

    /// Returns the last `most` bytes for display, as OpenCode shows them while a command runs.
    pub(crate) fn preview(&self, most: usize) -> String {
        let text = self.held_text();
        if self.total <= most as u64 && text.len() <= most {
            return text;
        }
        let from = ceil_char_boundary(&text, text.len().saturating_sub(most));
        format!("...\n\n{}", &text[from..])
    }

    pub(crate) fn finish(self) -> Captured {
        let text = self.held_text();
        let fits =
            self.total <= self.limits.max_bytes as u64 && self.lines <= self.limits.max_lines;
        if fits && text.len() <= self.limits.max_bytes {
            return Captured {
                text,
                truncated: false,
                path: None,
                lost: None,
            };
        }
        let mut this = self;
        if this.file.is_none() && this.lost.is_none() {
            this.spill();
        }
        Captured {
            text: tail(&text, this.limits).to_owned(),
            truncated: true,
            path: this.file.map(|(_, path)| path),
            lost: this.lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_megabytes_stay_bounded_and_are_all_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let limits = Limits::default();
        let mut capture = Capture::new(&limits, dir.path(), "c");
        let line = format!("{}\n", "x".repeat(999));
        for _ in 0..100_000 {
            capture.add(line.as_bytes());
            assert!(capture.held.len() <= capture.keep);
        }
        assert!(capture.held.capacity() < 1024 * 1024);
        let got = capture.finish();
        assert!(got.truncated && got.lost.is_none());
        assert!(got.text.len() <= limits.max_bytes && got.text.len() > limits.max_bytes - 1001);
        assert_eq!(
            std::fs::metadata(got.path.unwrap()).unwrap().len(),
            100_000_000
        );
    }

    #[test]
    fn limits_count_lines_and_bytes_and_the_file_has_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let limits = Limits {
            max_lines: 3,
            max_bytes: 100,
            artifact_bytes: 50,
            ..Limits::default()
        };
        let got = |pieces: &[&str]| {
            let mut capture = Capture::new(&limits, dir.path(), "c");
            pieces
                .iter()
                .for_each(|piece| capture.add(piece.as_bytes()));
            let got = capture.finish();
            let kept = got.path.map(|path| std::fs::read_to_string(path).unwrap());
            (got.text, got.truncated, kept, got.lost.is_some())
        };
        assert_eq!(got(&["a\n", "b\n"]), ("a\nb\n".into(), false, None, false));
        assert_eq!(
            got(&["a\nb\n", "c\nd"]),
            ("b\nc\nd".into(), true, Some("a\nb\nc\nd".into()), false)
        );
        let (text, truncated, _, lost) = got(&["ä".repeat(4000).as_str()]);
        assert_eq!((text, truncated, lost), ("ä".repeat(50), true, true));
    }
}

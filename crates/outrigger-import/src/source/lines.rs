//! JSON lines files, with a limit per line.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use outrigger_protocol::Millis;
use serde_json::Value;

use crate::error::{ImportError, Problem};

/// Maximum bytes of a file.
const MAX_FILE: u64 = 1 << 30;
/// Maximum bytes of a line.
const MAX_LINE: u64 = 64 << 20;

/// A JSON lines file.
pub(crate) struct Lines {
    path: PathBuf,
    reader: BufReader<std::io::Take<File>>,
    number: usize,
    is_over: bool,
}

impl Lines {
    /// Opens a regular file for reading.
    pub(crate) fn open(path: &Path) -> Result<Self, ImportError> {
        let file = outrigger_files::open(path).map_err(|error| ImportError::read(path, error))?;
        Ok(Self {
            path: path.to_owned(),
            reader: BufReader::new(file.take(MAX_FILE)),
            number: 0,
            is_over: false,
        })
    }

    /// Returns the next line, unparsed; one that is not text or too long is a problem. A last line without a line end is still being
    /// written and is skipped.
    fn text(&mut self) -> Option<Result<String, Problem>> {
        if self.is_over {
            return None;
        }
        let mut line = Vec::new();
        self.number += 1;
        let read = (&mut self.reader)
            .take(MAX_LINE)
            .read_until(b'\n', &mut line);
        match read {
            Ok(0) => {
                self.is_over = true;
                (self.reader.get_ref().limit() == 0).then(|| {
                    Err(self.problem("the file is larger than 1 GiB; the rest is skipped"))
                })
            }
            Ok(_) if line.last() == Some(&b'\n') => {
                let text = String::from_utf8(line);
                Some(text.map_err(|_| self.problem("the line is not UTF-8 text")))
            }
            Ok(_) if line.len() as u64 >= MAX_LINE => {
                self.skip();
                Some(Err(self.problem("the line is longer than 64 MiB")))
            }
            Ok(_) => {
                self.is_over = true;
                let text = String::from_utf8(line).ok();
                let is_whole = |text: &String| serde_json::from_str::<Value>(text).is_ok();
                text.filter(is_whole).map(Ok)
            }
            Err(error) => {
                self.is_over = true;
                Some(Err(self.problem(&error.to_string())))
            }
        }
    }

    /// Skips the rest of a line that is too long.
    fn skip(&mut self) {
        loop {
            let Ok(available) = self.reader.fill_buf() else {
                return;
            };
            if available.is_empty() {
                return;
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(available.len(), |end| end + 1);
            self.reader.consume(used);
            if end.is_some() {
                return;
            }
        }
    }

    fn problem(&self, message: &str) -> Problem {
        Problem::new(&self.path, self.number, message)
    }

    /// Iterates over the lines, skipping invalid ones.
    pub(crate) fn texts(mut self) -> impl Iterator<Item = String> {
        std::iter::from_fn(move || self.text()).filter_map(Result::ok)
    }
}

impl Iterator for Lines {
    type Item = Result<Value, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let text = match self.text()? {
                Ok(text) if text.trim().is_empty() => continue,
                Ok(text) => text,
                Err(problem) => return Some(Err(problem)),
            };
            let value = serde_json::from_str(&text);
            return Some(value.map_err(|error| self.problem(&format!("no JSON: {error}"))));
        }
    }
}

/// Returns the time of a line, in the form of both programs.
pub(crate) fn at(line: &Value) -> Option<Millis> {
    let text = line.get("timestamp")?.as_str()?;
    let time: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(time.as_millisecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_none_is_named_and_the_rest_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        std::fs::write(
            &path,
            b"{\"n\":1}\nnonsense\n\n\xff\xfe\n{\"n\":2}\n{\"n\":3}\n{\"n\":4",
        )
        .unwrap();
        let (mut read, mut wrong) = (Vec::new(), Vec::new());
        for line in Lines::open(&path).unwrap() {
            match line {
                Ok(value) => read.push(value["n"].as_u64().unwrap()),
                Err(problem) => wrong.push((problem.place, problem.message)),
            }
        }
        assert_eq!(read, [1, 2, 3]);
        assert_eq!(wrong[0].0, "2");
        assert_eq!(wrong[1], ("4".into(), "the line is not UTF-8 text".into()));
        assert_eq!(wrong.len(), 2);
    }
}

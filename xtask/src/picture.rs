//! `cargo xtask picture`: the README's picture, `docs/demo.svg`. It shows a terminal with `outrigger demo` as text in an SVG: a run
//! in tmux, from the failing test to the answer. Times are omitted, so that it changes only if the output does.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::sh::{self, command};
use crate::{Result, failed, usage};

const FILE: &str = "docs/demo.svg";
const TMUX: [&str; 4] = ["-L", "outrigger-picture", "-f", "/dev/null"];
const COLUMNS: usize = 90;
const TIMEOUT: Duration = Duration::from_secs(60);

/// The line after the end of the picture, and the lines between which it is.
const LAST: &str = "Where to look next";
const FROM: &str = "── The test, before";
const UNTIL: &str = "── The plugin";

const WIDTH: f32 = 8.43;
const HEIGHT: f32 = 19.0;
const MARGIN: f32 = 16.0;
const TEXT: &str = "#c9d1d9";
/// The eight colours of a terminal, bright or not; bright black is grey.
const COLOURS: [&str; 8] = [
    "#484f58", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#76e3ea", TEXT,
];
const GREY: &str = "#8b949e";

pub(crate) fn run(arguments: &[String]) -> Result {
    let bin = match arguments {
        [] => sh::root().join("target/debug/outrigger"),
        [option, path] if option == "--bin" => PathBuf::from(path),
        _ => return usage("picture takes --bin PATH"),
    };
    if !bin.is_file() {
        return failed(format!("there is no {}: cargo build", bin.display()));
    }
    let screen = shown(&bin)?;
    let lines: Vec<String> = screen
        .lines()
        .map(|line| without_time(line.trim_end()))
        .skip_while(|line| !line.contains(FROM))
        .take_while(|line| !line.contains(UNTIL))
        .collect();
    if lines.is_empty() {
        return failed(format!("the demo did not show its turn:\n{screen}"));
    }
    let text = svg(&lines);
    let path = sh::root().join(FILE);
    std::fs::write(&path, text).or_else(|error| failed(format!("{}: {error}", path.display())))?;
    println!("picture: {FILE}");
    Ok(())
}

/// Returns the terminal's screen at the end of the demo, with its colours.
fn shown(bin: &std::path::Path) -> Result<String> {
    let tmux = |arguments: &[&str]| {
        let mut tmux = command("tmux");
        tmux.args(TMUX).args(arguments);
        tmux
    };
    let columns = COLUMNS.to_string();
    let line = format!("'{}' demo; sleep 60", bin.display());
    let session = ["new-session", "-d", "-x", &columns, "-y", "200", &line];
    sh::check(&mut tmux(&session))?;
    let begun = Instant::now();
    let screen = loop {
        let screen = sh::output(&mut tmux(&["capture-pane", "-e", "-p"]))?;
        if screen.contains(LAST) || begun.elapsed() > TIMEOUT {
            break screen;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    sh::check(&mut tmux(&["kill-server"]))?;
    Ok(screen)
}

/// Removes the duration at the end of a line.
fn without_time(line: &str) -> String {
    let Some((before, after)) = line.rsplit_once(" ms") else {
        return line.to_owned();
    };
    let head = before.trim_end_matches(|it: char| it.is_ascii_digit());
    if head.len() < before.len() && head.ends_with("  ") {
        format!("{}{after}", head.trim_end())
    } else {
        line.to_owned()
    }
}

/// A piece of a line with one style.
#[derive(Debug, PartialEq)]
struct Piece {
    column: usize,
    text: String,
    colour: &'static str,
    is_bold: bool,
}

/// The current style; it continues across line ends.
#[derive(Clone, Copy)]
struct Style {
    colour: &'static str,
    is_bold: bool,
}

const PLAIN: Style = Style {
    colour: TEXT,
    is_bold: false,
};

impl Style {
    /// Applies one code of a sequence (SGR).
    fn take(&mut self, code: &str) {
        let colour = |at: usize| COLOURS.get(at).copied().unwrap_or(TEXT);
        match code.parse::<usize>() {
            Ok(1) => self.is_bold = true,
            Ok(22) => self.is_bold = false,
            Ok(code @ 30..=37) => self.colour = colour(code - 30),
            Ok(39) => self.colour = TEXT,
            Ok(49) => {}
            Ok(90) => self.colour = GREY,
            Ok(code @ 91..=97) => self.colour = colour(code - 90),
            _ => *self = PLAIN,
        }
    }
}

/// Splits a line into pieces.
fn pieces(line: &str, style: &mut Style) -> Vec<Piece> {
    let mut found = Vec::new();
    let mut column = 0;
    for (index, part) in line.split("\u{1b}[").enumerate() {
        let text = match part.split_once('m') {
            Some((codes, text)) if index > 0 => {
                codes.split(';').for_each(|code| style.take(code));
                text
            }
            _ => part,
        };
        if !text.trim().is_empty() {
            found.push(Piece {
                column,
                text: text.to_owned(),
                colour: style.colour,
                is_bold: style.is_bold,
            });
        }
        column += text.chars().count();
    }
    found
}

#[expect(clippy::cast_precision_loss, reason = "columns and rows of a screen")]
fn svg(lines: &[String]) -> String {
    let width = (COLUMNS as f32).mul_add(WIDTH, 2.0 * MARGIN);
    let height = (lines.len() as f32).mul_add(HEIGHT, 2.0 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\">\n\
         <title>outrigger demo in a terminal</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>\n\
         <g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"14\">\n"
    );
    let mut style = PLAIN;
    for (row, line) in lines.iter().enumerate() {
        let y = (row as f32 + 0.75).mul_add(HEIGHT, MARGIN);
        for piece in pieces(line, &mut style) {
            let x = (piece.column as f32).mul_add(WIDTH, MARGIN);
            let bold = if piece.is_bold {
                " font-weight=\"bold\""
            } else {
                ""
            };
            let text = piece.text.replace('&', "&amp;").replace('<', "&lt;");
            // Consecutive plain blanks would be collapsed.
            let text = text.replace(' ', "\u{a0}");
            let colour = piece.colour;
            out.push_str(&format!(
                "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\"{bold}>{text}</text>\n"
            ));
        }
    }
    out.push_str("</g>\n</svg>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_of_a_terminal_become_pieces() {
        let piece = |column, text: &str, colour, is_bold| Piece {
            column,
            text: text.to_owned(),
            colour,
            is_bold,
        };
        assert_eq!(
            pieces(
                "a \u{1b}[1;92mok\u{1b}[0m  \u{1b}[90mdim\u{1b}[39m!",
                &mut PLAIN.clone()
            ),
            [
                piece(0, "a ", TEXT, false),
                piece(2, "ok", COLOURS[2], true),
                piece(6, "dim", GREY, false),
                piece(9, "!", TEXT, false),
            ]
        );
    }

    #[test]
    fn times_are_left_out() {
        for (line, want) in [
            ("Read a.js  12 ms", "Read a.js"),
            (
                "Read a.js  \u{1b}[90m12 ms\u{1b}[39m",
                "Read a.js  \u{1b}[90m12 ms\u{1b}[39m",
            ),
            ("within 12 ms", "within 12 ms"),
            ("plain", "plain"),
        ] {
            assert_eq!(without_time(line), want);
        }
    }
}

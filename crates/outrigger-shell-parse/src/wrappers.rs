//! Programs that start another program named by their arguments. One table; a form that is not in it is a doubt.

mod launchers;

use crate::strict::is_keyword;
use crate::variables::{self, Effect};
use crate::{Doubt, UNKNOWN, Word, find, git};

/// What a wrapper starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Inner {
    /// A program and its arguments.
    Words(Vec<Word>),
    /// A program and its arguments, in a folder that is unknown before it runs.
    Anywhere(Vec<Word>),
    /// A line for a shell.
    Line(String),
}

/// The syntax of a wrapper's arguments up to the program that it starts.
struct Wrapper {
    names: &'static [&'static str],
    /// One-letter options without a value.
    flags: &'static str,
    /// One-letter options with a value, in the same word or the next one.
    values: &'static str,
    /// Long options, with `=` at the end if a value follows in the same word.
    long: &'static [&'static str],
    /// Number of words before the program.
    positional: usize,
    /// `NAME=value` may come before the program.
    assigns: bool,
}

const PLAIN: Wrapper = Wrapper {
    names: &[],
    flags: "",
    values: "",
    long: &[],
    positional: 0,
    assigns: false,
};

const TABLE: &[Wrapper] = &[
    Wrapper {
        names: &["env", "genv"],
        flags: "i0v",
        values: "u",
        long: &["--ignore-environment", "--null", "--debug", "--unset="],
        assigns: true,
        ..PLAIN
    },
    Wrapper {
        names: &["nice", "gnice"],
        flags: "0123456789",
        values: "n",
        long: &["--adjustment="],
        ..PLAIN
    },
    Wrapper {
        names: &[
            "nohup",
            "gnohup",
            "command",
            "exec",
            "builtin",
            "noglob",
            "nocorrect",
            "-",
            "busybox",
            "toybox",
            "catchsegv",
        ],
        ..PLAIN
    },
    Wrapper {
        names: &["setsid"],
        flags: "cfw",
        long: &["--ctty", "--fork", "--wait"],
        ..PLAIN
    },
    Wrapper {
        names: &["stdbuf", "gstdbuf"],
        values: "ioe",
        long: &["--input=", "--output=", "--error="],
        ..PLAIN
    },
    Wrapper {
        names: &["timeout", "gtimeout"],
        flags: "fpv",
        values: "ks",
        long: &[
            "--foreground",
            "--preserve-status",
            "--verbose",
            "--kill-after=",
            "--signal=",
        ],
        positional: 1,
        ..PLAIN
    },
    // In zsh, `time -p x` runs the program `-p`.
    Wrapper {
        names: &["time"],
        ..PLAIN
    },
    Wrapper {
        names: &["gtime"],
        flags: "pv",
        ..PLAIN
    },
    Wrapper {
        names: &["ionice"],
        flags: "t",
        values: "cn",
        long: &["--ignore", "--class=", "--classdata="],
        ..PLAIN
    },
    Wrapper {
        names: &["chrt"],
        flags: "abfior",
        positional: 1,
        ..PLAIN
    },
    Wrapper {
        names: &["taskset"],
        flags: "c",
        positional: 1,
        ..PLAIN
    },
    Wrapper {
        names: &["sudo"],
        flags: "nEHSkPb",
        values: "ugp",
        long: &["--user=", "--group=", "--non-interactive", "--preserve-env"],
        assigns: true,
        ..PLAIN
    },
    Wrapper {
        names: &["doas"],
        flags: "n",
        values: "u",
        ..PLAIN
    },
    Wrapper {
        names: &["xargs", "gxargs"],
        flags: "0rtpx",
        values: "nPLIdsaE",
        long: &[
            "--null",
            "--no-run-if-empty",
            "--max-args=",
            "--max-procs=",
            "--max-lines=",
            "--delimiter=",
            "--arg-file=",
        ],
        ..PLAIN
    },
];

const SHELLS: &[&str] = &["sh", "bash", "dash", "ash", "zsh", "ksh", "ksh93", "mksh"];

/// Returns what a command starts. Empty for one that starts nothing named by its arguments.
pub(crate) fn unfold(words: &[Word]) -> Result<Vec<Inner>, Doubt> {
    let Some(name) = words.first().and_then(Word::known).map(base) else {
        return Ok(Vec::new());
    };
    let arguments = words.get(1..).unwrap_or_default();
    let doubt = || Doubt::Wrapper(name.to_owned());
    if launchers::starts_another(name, arguments) || git::starts_another(name, arguments) {
        return Err(doubt());
    }
    if SHELLS.contains(&name) {
        return shell(arguments).ok_or_else(doubt);
    }
    if matches!(name, "find" | "gfind" | "bfs") {
        return find::read(arguments).ok_or_else(doubt);
    }
    if matches!(name, "fd" | "fdfind") {
        return if find::fd_runs(arguments) {
            Err(doubt())
        } else {
            Ok(Vec::new())
        };
    }
    let Some(wrapper) = TABLE.iter().find(|it| it.names.contains(&name)) else {
        return Ok(Vec::new());
    };
    if name == "command"
        && arguments
            .first()
            .is_some_and(|it| matches!(it.value.as_str(), "-v" | "-V"))
    {
        return Ok(Vec::new());
    }
    let (mut inner, replaced) = wrapper.inner(arguments).ok_or_else(doubt)?;
    if inner.is_empty() && matches!(name, "xargs" | "gxargs") {
        inner.push(Word {
            raw: "echo".to_owned(),
            value: "echo".to_owned(),
        });
    }
    if inner.is_empty() {
        return Ok(Vec::new());
    }
    // `time` is a bash keyword; parsing restarts after it.
    let first = inner.first().map_or("", |word| word.raw.as_str());
    if name == "time" && begins_anew(first) {
        return Err(doubt());
    }
    if matches!(name, "xargs" | "gxargs") {
        fill(&mut inner, replaced.as_deref());
    }
    if matches!(name, "busybox" | "toybox")
        && inner.first().is_some_and(|it| it.value.starts_with('-'))
    {
        return Ok(Vec::new());
    }
    Ok(vec![Inner::Words(inner)])
}

/// Returns whether a word is a keyword, or sets a variable, where a command starts.
fn begins_anew(word: &str) -> bool {
    is_keyword(word)
        || word.starts_with('{')
        || variables::assigns_in_zsh(word)
        || variables::assigned(word).is_some()
}

/// Returns the name of a program without its folder.
fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

impl Wrapper {
    /// Returns the program to start with its arguments, and the value of `-I`.
    fn inner(&self, arguments: &[Word]) -> Option<(Vec<Word>, Option<String>)> {
        let mut words = arguments.iter();
        let mut replaced = None;
        let mut rest = words.as_slice();
        while let Some(word) = words.next() {
            let text = word.known()?;
            if text == "--" {
                rest = words.as_slice();
                break;
            }
            // Once, after all options: `env - - x` starts `-`.
            if text == "-" && self.assigns {
                rest = words.as_slice();
                break;
            }
            if !text.starts_with('-') || text == "-" {
                break;
            }
            if text.starts_with("--") {
                let (name, value) = text
                    .split_once('=')
                    .map_or((text, None), |(n, v)| (n, Some(v)));
                let fits = |it: &&&str| {
                    it.strip_suffix('=')
                        .map_or(value.is_none() && **it == name, |it| {
                            value.is_some() && it == name
                        })
                };
                self.long.iter().find(fits)?;
            } else {
                let option = self.letters(text)?;
                let value = match option {
                    Some((_, "")) => words.next()?.known()?,
                    Some((_, value)) => value,
                    None => "",
                };
                if matches!(option, Some(('I', _))) {
                    replaced = Some(value.to_owned());
                }
            }
            rest = words.as_slice();
        }
        // A duration, a priority, a set of processors.
        let digit = |word: &Word| word.value.starts_with(|c: char| c.is_ascii_digit());
        let (numbers, mut rest) = rest.split_at(self.positional.min(rest.len()));
        if !numbers.iter().all(digit) {
            return None;
        }
        while let Some((first, more)) = rest.split_first().filter(|_| self.assigns) {
            let Some(name) = first.value.split_once('=').map(|(name, _)| name) else {
                break;
            };
            if !variables::is_name(name) || variables::effect(name) == Effect::Runs {
                return None;
            }
            rest = more;
        }
        Some((rest.to_vec(), replaced))
    }

    /// Reads `-abc`. Returns `None` for a letter that is not in the table, otherwise the last letter that takes a value, with
    /// that value (empty if it is the next word).
    fn letters<'a>(&self, text: &'a str) -> Option<Option<(char, &'a str)>> {
        for (at, letter) in text.char_indices().skip(1) {
            if self.values.contains(letter) {
                let value = text.get(at + letter.len_utf8()..).unwrap_or_default();
                return Some(Some((letter, value)));
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(None)
    }
}

/// Adds what `xargs` adds to the words of a command: in place of a text, or at their end.
pub(crate) fn fill(words: &mut Vec<Word>, replaced: Option<&str>) {
    match replaced {
        Some(text) if !text.is_empty() => {
            for word in words {
                word.value = word.value.replace(text, &UNKNOWN.to_string());
            }
        }
        _ => words.push(Word {
            raw: "…".to_owned(),
            value: UNKNOWN.to_string(),
        }),
    }
}

/// Parses `sh -c LINE`. A script that a shell reads from a file is its own program.
fn shell(arguments: &[Word]) -> Option<Vec<Inner>> {
    let mut takes_line = false;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let text = word.known()?;
        match text {
            "--login" | "--norc" | "--noprofile" | "--posix" => {}
            "--" => return line_or_script(takes_line, words.next()),
            _ if text.starts_with('-') && text.len() > 1 => {
                let letters = text.get(1..)?;
                if !letters.bytes().all(|b| b"celuxvo".contains(&b)) {
                    return None;
                }
                takes_line |= letters.contains('c');
                if letters.contains('o') {
                    let option = words.next()?.known()?;
                    if !matches!(option, "pipefail" | "errexit" | "nounset" | "xtrace") {
                        return None;
                    }
                }
            }
            _ if text.starts_with(['-', '+']) => return None,
            _ => return line_or_script(takes_line, Some(word)),
        }
    }
    line_or_script(takes_line, None)
}

fn line_or_script(takes_line: bool, word: Option<&Word>) -> Option<Vec<Inner>> {
    // Without a word it reads its input.
    let text = word?.known()?;
    if takes_line {
        return Some(vec![Inner::Line(text.to_owned())]);
    }
    let is_input = text.starts_with("/dev/") || text.starts_with("/proc/") || text == "-";
    (!is_input).then(Vec::new)
}

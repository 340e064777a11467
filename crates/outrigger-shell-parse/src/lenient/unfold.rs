//! The commands of a line, with those that wrappers, `eval` and `trap` start.

use super::{Doubt, Reader};
use crate::strict::{MAX_DEPTH, wrapped};
use crate::variables::assigned;
use crate::wrappers::{self, Inner};
use crate::{Command, Word};

/// Maximum number of commands of one line; deny rules are not matched against further ones.
const MAX_COMMANDS: usize = 1000;

/// Words before a command that `time` and `coproc` start; the shell's grammar begins anew there.
const BEFORE: &[&str] = &[
    "if", "then", "elif", "else", "while", "until", "do", "!", "{", "time", "coproc", "-p", "--",
];

/// Shells that read some of the syntax of bash in another way.
const POSIX: &[&str] = &["sh", "dash", "ash", "ksh", "mksh"];

/// What the reader found in a line.
#[derive(Default)]
pub(crate) struct Found {
    /// The commands, in the order in which they start, including those that wrappers start.
    pub(crate) commands: Vec<Command>,
    /// There may be more: an error, a limit, or a program whose name is not known.
    pub(crate) missed: bool,
    /// There may be more if another shell than bash or zsh runs it.
    pub(crate) differs: bool,
    /// Words that belong to no command.
    pub(crate) lists: Vec<Word>,
    doubt: Doubt,
}

/// Returns the commands found.
pub(crate) fn read(source: &str) -> Found {
    let mut found = Found::default();
    found.differs = found.collect(source, 0);
    found.missed |= found.doubt.missed || !found.doubt.values.are_safe();
    found.lists = std::mem::take(&mut found.doubt.lists);
    found
}

impl Found {
    /// Returns whether other shells than bash and zsh read the line in another way.
    fn collect(&mut self, source: &str, depth: usize) -> bool {
        let mut reader = Reader::new(source, 0);
        // What was found before an error is used.
        self.missed |= reader.list(None).is_none();
        let differs = reader.doubt.differs;
        self.doubt.merge(reader.doubt);
        let mut found = reader.found;
        found.sort_by_key(|(at, _)| *at);
        for (_, command) in found {
            self.unfold(command, depth);
        }
        differs
    }

    fn unfold(&mut self, command: Command, depth: usize) {
        if self.commands.len() >= MAX_COMMANDS || depth > MAX_DEPTH {
            self.missed = true;
            return;
        }
        let program = command.words.first();
        self.missed |= program.is_some_and(|it| !is_named(it));
        self.doubt.command(&command.words);
        let anew = begun_anew(&command.words);
        let inner = if anew.is_empty() {
            wrappers::unfold(&command.words)
        } else {
            Ok(Vec::new())
        };
        self.missed |= inner.is_err();
        let name = command.program().and_then(|it| it.rsplit('/').next());
        let is_posix = name.is_some_and(|it| POSIX.contains(&it));
        let evaluated = evaluated(&command.words);
        self.commands.push(command);
        for words in anew {
            self.unfold(wrapped(words), depth + 1);
        }
        for inner in inner.unwrap_or_default() {
            match inner {
                Inner::Line(line) => {
                    let differs = self.collect(&line, depth + 1);
                    self.missed |= is_posix && differs;
                }
                Inner::Words(words) | Inner::Anywhere(words) => {
                    self.unfold(wrapped(words), depth + 1);
                }
            }
        }
        if let Some(line) = evaluated {
            // What a variable adds to it may be a command.
            self.missed |= line.contains(crate::UNKNOWN);
            self.collect(&line, depth + 1);
        }
    }
}

/// Returns whether a word names one program: nothing in it is expanded but a quoted folder.
pub(super) fn is_named(program: &Word) -> bool {
    let raw = program.raw.as_str();
    let name = program.value.rsplit('/').next().unwrap_or_default();
    let is_below = program.value.contains('/') && !name.is_empty();
    if program.known().is_none() {
        return is_below && program.is_one() && !name.contains(crate::UNKNOWN);
    }
    let is_plain = !raw.contains(['{', '*', '?']) && !raw.starts_with('~');
    // Of the user's own home folder.
    let is_home = raw.starts_with("~/") && !raw.contains(['{', '*', '?']);
    is_plain || is_home || raw.starts_with(['\'', '"'])
}
/// Returns the commands that the keywords `time` and `coproc` start, without what stands before them. The first word after `coproc` may
/// be a name.
fn begun_anew(words: &[Word]) -> Vec<Vec<Word>> {
    let Some((first, rest)) = words.split_first() else {
        return Vec::new();
    };
    let starts: &[usize] = match first.raw.as_str() {
        "time" => &[0],
        "coproc" => &[0, 1],
        _ => return Vec::new(),
    };
    starts
        .iter()
        .filter_map(|start| rest.get(*start..))
        .map(|words| {
            let is_before =
                |it: &&Word| BEFORE.contains(&it.raw.as_str()) || assigned(&it.raw).is_some();
            let before = words.iter().take_while(is_before).count();
            words.get(before..).unwrap_or_default().to_vec()
        })
        .filter(|words| !words.is_empty())
        .collect()
}

/// Returns the line given to `eval` and `trap`, or any other whose words form one.
/// Returns the arguments after a `--` at their beginning.
pub(super) fn operands(arguments: &[Word]) -> &[Word] {
    match arguments.split_first() {
        Some((first, rest)) if first.known() == Some("--") => rest,
        _ => arguments,
    }
}

fn evaluated(words: &[Word]) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    let arguments = operands(arguments);
    match program.known()? {
        "eval" => {
            let values: Vec<&str> = arguments.iter().map(|word| word.value.as_str()).collect();
            Some(values.join(" "))
        }
        "trap" => arguments.first().map(|it| it.value.clone()),
        _ => None,
    }
}

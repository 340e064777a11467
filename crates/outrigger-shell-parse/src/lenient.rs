//! Finds commands in a line that the strict reader does not support, well enough to match them against a deny rule. It
//! knows most of the grammar and none of its corner cases.

mod ansi;
mod word;

use crate::strict::{MAX_DEPTH, wrapped};
use crate::variables::{assigned, is_name};
use crate::wrappers::{self, Inner};
use crate::{Command, File, UNKNOWN, Word};

/// Maximum nesting of substitutions; a model has no honest reason to go deeper.
const NESTED: usize = 32;
/// Maximum number of commands of one line; deny rules are not matched against further ones.
const MAX_COMMANDS: usize = 1000;

/// Builtins after which a name may run something else than a program of that name, or that run what their options name.
const REDEFINE: &[&str] = &[
    "alias",
    "bind",
    "enable",
    "fc",
    "hash",
    "mapfile",
    "readarray",
];
/// Words before a command that `time` and `coproc` start; the shell's grammar begins anew there.
const BEFORE: &[&str] = &[
    "if", "then", "elif", "else", "while", "until", "do", "!", "{", "time", "coproc", "-p", "--",
];

/// What the reader found in a line.
#[derive(Default)]
pub(crate) struct Found {
    /// The commands, in the order in which they start, including those that wrappers start.
    pub(crate) commands: Vec<Command>,
    /// There may be more: an error, a limit, or a program whose name is not known.
    pub(crate) missed: bool,
}

/// Returns the commands found.
pub(crate) fn read(source: &str) -> Found {
    let mut found = Found::default();
    found.collect(source, 0);
    found
}

impl Found {
    fn collect(&mut self, source: &str, depth: usize) {
        let mut reader = Reader::new(source, 0);
        // What was found before an error is used.
        self.missed |= reader.list(None).is_none();
        let mut found = reader.found;
        found.sort_by_key(|(at, _)| *at);
        for (_, command) in found {
            self.unfold(command, depth);
        }
    }

    fn unfold(&mut self, command: Command, depth: usize) {
        if self.commands.len() >= MAX_COMMANDS || depth > MAX_DEPTH {
            self.missed = true;
            return;
        }
        let program = command.words.first();
        self.missed |= program.is_some_and(|it| !is_named(it))
            || command.program().is_some_and(|it| REDEFINE.contains(&it));
        let anew = begun_anew(&command.words);
        let inner = if anew.is_empty() {
            wrappers::unfold(&command.words)
        } else {
            Ok(Vec::new())
        };
        self.missed |= inner.is_err();
        let evaluated = evaluated(&command.words);
        self.commands.push(command);
        for words in anew {
            self.unfold(wrapped(words), depth + 1);
        }
        for inner in inner.unwrap_or_default() {
            match inner {
                Inner::Line(line) => self.collect(&line, depth + 1),
                Inner::Words(words) | Inner::Anywhere(words) => {
                    self.unfold(wrapped(words), depth + 1);
                }
            }
        }
        if let Some(line) = evaluated {
            self.collect(&line, depth + 1);
        }
    }
}

/// Returns whether a word names one program: nothing in it is expanded.
fn is_named(program: &Word) -> bool {
    let is_plain = !program.raw.contains(['{', '*', '?']) && !program.raw.starts_with('~');
    program.known().is_some() && (is_plain || program.raw.starts_with(['\'', '"']))
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
fn evaluated(words: &[Word]) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    match program.known()? {
        "eval" => {
            let values: Vec<&str> = arguments.iter().map(|word| word.value.as_str()).collect();
            Some(values.join(" "))
        }
        "trap" => arguments.first().map(|it| it.value.clone()),
        _ => None,
    }
}

/// Returns whether a text assigns an element of an array: `NAME[…]=`.
fn assigns_element(text: &str) -> bool {
    let parts = text.split_once('[').zip(text.split_once("]"));
    let is_assigned = |after: &str| after.starts_with('=') || after.starts_with("+=");
    parts.is_some_and(|((name, _), (_, after))| is_name(name) && is_assigned(after))
}

struct Reader<'a> {
    src: &'a str,
    at: usize,
    depth: usize,
    found: Vec<(usize, Command)>,
    heredocs: Vec<(String, bool)>,
}

// The first word of a command, which decides how it is handled.
#[derive(Clone, Copy, PartialEq)]
enum CommandKind {
    Command,
    /// Words of `for`, `case`, `[ … ]` and the like: searched for substitutions, not a command.
    Silent,
}

#[derive(Default)]
struct OpenCommand {
    start: Option<usize>,
    simple: Command,
    taken: Option<CommandKind>,
}

// The position of a list in `case … esac`.
#[derive(Default)]
struct Cases {
    depth: usize,
    // The next item is a pattern, not a command.
    pattern: bool,
}

impl<'a> Reader<'a> {
    fn new(src: &'a str, depth: usize) -> Self {
        Self {
            src,
            at: 0,
            depth,
            found: Vec::new(),
            heredocs: Vec::new(),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.src.as_bytes().get(self.at).copied()
    }
    fn rest(&self) -> &'a str {
        self.src.get(self.at..).unwrap_or("")
    }
    fn starts(&self, text: &str) -> bool {
        self.rest().starts_with(text)
    }

    // Reads commands up to `until` (`)` of a subshell or substitution) or the end.
    fn list(&mut self, until: Option<u8>) -> Option<()> {
        self.depth += 1;
        if self.depth > NESTED {
            return None;
        }
        let mut open = OpenCommand::default();
        let read = self.commands(until, &mut open);
        if read.is_none() {
            self.close(&mut open);
        }
        read
    }

    fn commands(&mut self, until: Option<u8>, open: &mut OpenCommand) -> Option<()> {
        let mut cases = Cases::default();
        loop {
            if std::mem::take(&mut cases.pattern) {
                self.case_pattern()?;
            }
            let Some(c) = self.peek() else {
                self.close(open);
                self.depth -= 1;
                return (until.is_none() && self.heredocs.is_empty()).then_some(());
            };
            match c {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\\' if self.starts("\\\n") => self.at += 2,
                b'\n' => {
                    self.close(open);
                    self.at += 1;
                    self.skip_heredocs()?;
                }
                b'#' => {
                    self.close(open);
                    self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                }
                b';' | b'|' => {
                    self.close(open);
                    cases.pattern = cases.depth > 0 && (self.starts(";;") || self.starts(";&"));
                    let ends = [";;&", ";;", ";&"].into_iter().find(|op| self.starts(op));
                    self.at += ends.map_or(1, str::len);
                }
                b'&' if self.starts("&>") => self.redirect(open)?,
                b'&' => {
                    self.close(open);
                    self.at += 1;
                }
                b'<' | b'>' => self.redirect(open)?,
                b')' => {
                    self.close(open);
                    self.depth -= 1;
                    self.at += 1;
                    return (until == Some(b')')).then_some(());
                }
                b'(' => self.parenthesis(open)?,
                _ => self.word_of(open, &mut cases)?,
            }
        }
    }

    fn parenthesis(&mut self, open: &mut OpenCommand) -> Option<()> {
        if self.starts("((") && open.simple.words.is_empty() {
            self.at += 2;
            return self.scan("))");
        }
        self.at += 1;
        match open.simple.words.len() {
            0 => self.list(Some(b')')),
            // `name() …` defines a function: the name is not a command, and its body's commands are found as they come.
            1 if self.rest().trim_start().starts_with(')') => {
                self.at += self.rest().find(')')? + 1;
                *open = OpenCommand::default();
                Some(())
            }
            // `a=(1 2)` or something unknown.
            _ => None,
        }
    }

    fn word_of(&mut self, open: &mut OpenCommand, cases: &mut Cases) -> Option<()> {
        let start = self.at;
        let word = self.word()?;
        // `2>file`: a number directly before a redirection belongs to it.
        if word.raw.bytes().all(|b| b.is_ascii_digit()) && matches!(self.peek(), Some(b'<' | b'>'))
        {
            begin(open, start);
            return Some(());
        }
        if open.simple.words.is_empty() && open.taken.is_none() {
            match word.raw.as_str() {
                "if" | "then" | "elif" | "else" | "fi" | "while" | "until" | "do" | "done"
                | "!" | "{" | "}" => return Some(()),
                "case" => {
                    cases.depth += 1;
                    open.taken = Some(CommandKind::Silent);
                }
                "esac" => {
                    cases.depth = cases.depth.checked_sub(1)?;
                    return Some(());
                }
                "for" | "select" | "function" | "[[" => open.taken = Some(CommandKind::Silent),
                raw if assigned(raw).is_some() || assigns_element(raw) => {
                    begin(open, start);
                    return if self.starts("(") {
                        self.array()
                    } else {
                        Some(())
                    };
                }
                _ => open.taken = Some(CommandKind::Command),
            }
        }
        // `case x in` ends here: patterns and commands follow. The same for `function f {`.
        let head = open.simple.words.first().map(|word| word.raw.as_str());
        match (head, word.raw.as_str()) {
            (Some("case"), "in") => {
                *open = OpenCommand::default();
                cases.pattern = true;
                return Some(());
            }
            (Some("function"), "{") => {
                *open = OpenCommand::default();
                return Some(());
            }
            _ => {}
        }
        begin(open, start);
        open.simple.words.push(word);
        Some(())
    }

    // Reads `(a b c)` after `NAME=`.
    fn array(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            match self.peek()? {
                b')' => {
                    self.at += 1;
                    return Some(());
                }
                b' ' | b'\t' | b'\n' => self.at += 1,
                _ => {
                    let before = self.at;
                    self.word()?;
                    if self.at == before {
                        return None;
                    }
                }
            }
        }
    }

    // Reads `a|b)` of a case arm, if there is another arm.
    fn case_pattern(&mut self) -> Option<()> {
        let text = self.rest();
        self.at += text.len() - text.trim_start().len();
        if self.starts("esac") {
            return Some(());
        }
        if self.starts("(") {
            self.at += 1;
        }
        loop {
            match self.peek()? {
                b')' => {
                    self.at += 1;
                    return Some(());
                }
                b' ' | b'\t' | b'|' => self.at += 1,
                _ => {
                    let before = self.at;
                    self.word()?;
                    if self.at == before {
                        return None;
                    }
                }
            }
        }
    }

    fn close(&mut self, open: &mut OpenCommand) {
        let done = std::mem::take(open);
        let simple = done.simple;
        let said = !simple.words.is_empty() || !simple.files.is_empty();
        if !said || done.taken == Some(CommandKind::Silent) {
            return;
        }
        let start = done.start.unwrap_or(self.at);
        let text = self.src.get(start..self.at).unwrap_or("").trim().to_owned();
        self.found.push((start, Command { text, ..simple }));
    }

    fn redirect(&mut self, open: &mut OpenCommand) -> Option<()> {
        begin(open, self.at);
        if self.starts("<(") || self.starts(">(") {
            let start = self.at;
            self.at += 2;
            self.list(Some(b')'))?;
            let raw = self.src.get(start..self.at)?.to_owned();
            open.simple.words.push(Word {
                raw,
                value: UNKNOWN.to_string(),
            });
            return Some(());
        }
        // The longer ones, and `>!`, belong to zsh.
        let operator = [
            "&>>|", "&>>", "<<<", "<<-", ">>&|", ">>&", ">>|", "&>|", ">&|", "&>", "<<", ">>",
            "<&", ">&", ">|", "<>", "<", ">",
        ]
        .into_iter()
        .find(|op| self.starts(op))?;
        self.at += operator.len();
        if operator.contains('>') && self.starts("!") {
            let file = self.forced();
            open.simple.files.extend(file);
        }
        self.skip_blanks();
        let target = self.word()?;
        if target.raw.is_empty() {
            return None;
        }
        match operator {
            "<<" | "<<-" => {
                let quoted = target.raw.contains(['\'', '"', '\\']);
                self.heredocs.push((target.value, quoted));
            }
            "<<<" => {}
            "<&" | ">&" if target.raw.bytes().all(|b| b.is_ascii_digit() || b == b'-') => {}
            _ => {
                let written = operator != "<";
                open.simple.files.push(File {
                    name: target,
                    written,
                });
            }
        }
        Some(())
    }

    // Reads zsh's `>!file` and `>! file`, which other shells read as the file `!file` or `!`: both are recorded.
    fn forced(&mut self) -> Option<File> {
        let at = self.at;
        self.at += 1;
        self.skip_blanks();
        let name = self.word();
        self.at = at;
        let name = name.filter(|name| !name.raw.is_empty())?;
        Some(File {
            name,
            written: true,
        })
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    // Reads the bodies of here-documents that start on this line. Substitutions in them are commands too.
    fn skip_heredocs(&mut self) -> Option<()> {
        for (end, quoted) in std::mem::take(&mut self.heredocs) {
            let from = self.at;
            loop {
                let line = self.rest().split_inclusive('\n').next()?;
                let body = self.src.get(from..self.at)?;
                self.at += line.len();
                if line.trim_end_matches('\n').trim_start_matches('\t') == end {
                    if !quoted {
                        self.nested(from, body, |inner| inner.scan_all())?;
                    }
                    break;
                }
            }
        }
        Some(())
    }

    fn nested(
        &mut self,
        place: usize,
        text: &str,
        read: impl FnOnce(&mut Reader<'_>) -> Option<()>,
    ) -> Option<()> {
        let mut inner = Reader::new(text, self.depth);
        read(&mut inner)?;
        let found = inner.found.into_iter().map(|(_, simple)| (place, simple));
        self.found.extend(found);
        Some(())
    }
}

fn begin(open: &mut OpenCommand, at: usize) {
    open.start.get_or_insert(at);
}

#[cfg(test)]
mod tests;

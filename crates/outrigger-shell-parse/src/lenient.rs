//! Finds commands in a line that the strict reader does not support, well enough to match them against a deny rule. It
//! knows most of the grammar and none of its corner cases.

mod ansi;
mod arithmetic;
mod compound;
mod condition;
mod effects;
mod unfold;
mod values;
mod word;

pub(crate) use unfold::read;

use compound::declares_associative;

use crate::lexer::ends;
use crate::variables::{assigned, is_name};
use crate::{Command, File, Word, builtins};
use values::Values;

/// Maximum nesting of substitutions; a model has no honest reason to go deeper.
const NESTED: usize = 32;

/// What a reader found out about a line, besides its commands.
#[derive(Debug, Default)]
struct Doubt {
    /// It may run something that is not among the commands.
    missed: bool,
    /// It may do so in a shell that does not have all the syntax of bash.
    differs: bool,
    values: Values,
    /// It assigns an array, of which `declare` expands a value once more.
    has_arrays: bool,
    /// Arrays whose subscripts are texts, wherever they were declared.
    associative: Vec<String>,
    /// Words that belong to no command.
    lists: Vec<Word>,
}

impl Doubt {
    fn merge(&mut self, other: Self) {
        self.missed |= other.missed;
        self.differs |= other.differs;
        self.has_arrays |= other.has_arrays;
        self.values.merge(other.values);
        self.associative.extend(other.associative);
        self.lists.extend(other.lists);
    }
}

/// Returns the name and the subscript of an assigned element of an array: `NAME[…]=`.
fn element(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once('[')?;
    let (subscript, after) = rest.split_once(']')?;
    let is_assigned = after.starts_with('=') || after.starts_with("+=");
    (is_name(name) && is_assigned).then_some((name, subscript))
}

/// Words with which the body of a function begins.
const COMPOUND: &[&str] = &[
    "{", "[[", "if", "for", "while", "until", "case", "select", "time", "!",
];

struct Reader<'a> {
    src: &'a str,
    at: usize,
    depth: usize,
    found: Vec<(usize, Command)>,
    heredocs: Vec<HereDocument>,
    doubt: Doubt,
}

struct HereDocument {
    end: String,
    /// The shell expands nothing in it.
    quoted: bool,
    /// `<<-`: its lines may start with TABs.
    indented: bool,
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
            doubt: Doubt::default(),
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
        // The text of a here-document begins after the end of its own line.
        let pending = std::mem::take(&mut self.heredocs);
        let from = self.at;
        let mut open = OpenCommand::default();
        let read = self.commands(until, &mut open);
        if read.is_none() {
            self.close(&mut open);
        }
        let is_split = self
            .src
            .get(from..self.at)
            .is_none_or(|it| it.contains('\n'));
        self.doubt.missed |= !self.heredocs.is_empty() || !pending.is_empty() && is_split;
        self.heredocs = pending;
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
                    self.skip_comment();
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

    fn word_of(&mut self, open: &mut OpenCommand, cases: &mut Cases) -> Option<()> {
        let start = self.at;
        let word = self.word()?;
        // `2>file`: a number directly before a redirection belongs to it.
        if word.raw.bytes().all(|b| b.is_ascii_digit()) && matches!(self.peek(), Some(b'<' | b'>'))
        {
            // dash takes several digits for an argument.
            self.doubt.differs |= word.raw.len() > 1;
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
                "[[" => return self.condition(),
                "for" | "select" | "function" => open.taken = Some(CommandKind::Silent),
                raw if assigned(raw).is_some() || element(raw).is_some() => {
                    begin(open, start);
                    let read = self.assignment(raw, false);
                    self.doubt.lists.push(word);
                    return read;
                }
                _ => open.taken = Some(CommandKind::Command),
            }
        }
        self.next_word(open, cases, word, start)
    }

    // Handles a word after the first one, or the first one of a command.
    fn next_word(
        &mut self,
        open: &mut OpenCommand,
        cases: &mut Cases,
        word: Word,
        start: usize,
    ) -> Option<()> {
        let words = &open.simple.words;
        match (words.first().map(|it| it.raw.as_str()), word.raw.as_str()) {
            // `case x in` ends here: patterns and commands follow.
            (Some("case"), "in") => {
                *open = OpenCommand::default();
                cases.pattern = true;
                return Some(());
            }
            // Without a list.
            (Some("for" | "select"), "do") if words.len() == 2 => {
                self.close(open);
                return Some(());
            }
            // After the name of a function, any command.
            (Some("function"), next) if words.len() == 2 => {
                self.doubt.missed |= !COMPOUND.contains(&next);
                self.close(open);
                self.at = start;
                return Some(());
            }
            (Some(program), raw)
                if builtins::declares(program) && self.starts("(") && assigned(raw).is_some() =>
            {
                self.assignment(raw, declares_associative(words))?;
            }
            _ => {}
        }
        begin(open, start);
        open.simple.words.push(word);
        Some(())
    }

    fn close(&mut self, open: &mut OpenCommand) {
        let done = std::mem::take(open);
        let simple = done.simple;
        let said = !simple.words.is_empty() || !simple.files.is_empty();
        if done.taken == Some(CommandKind::Silent) {
            self.silent(&simple.words);
            self.doubt.lists.extend_from_slice(&simple.words);
        }
        if !said || done.taken == Some(CommandKind::Silent) {
            return;
        }
        if declares_associative(&simple.words) {
            let names = simple
                .words
                .iter()
                .filter_map(|it| it.raw.split('=').next());
            self.doubt.associative.extend(names.map(str::to_owned));
        }
        let start = done.start.unwrap_or(self.at);
        let text = self.src.get(start..self.at).unwrap_or("").trim().to_owned();
        self.found.push((start, Command { text, ..simple }));
    }

    fn redirect(&mut self, open: &mut OpenCommand) -> Option<()> {
        begin(open, self.at);
        if self.starts("<(") || self.starts(">(") {
            let word = self.process()?;
            // It is a part of a longer word.
            self.doubt.missed |= !self.rest().chars().next().is_none_or(ends);
            open.simple.words.push(word);
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
        if self.starts("<(") || self.starts(">(") {
            // Its commands are found; it is no file.
            return self.process().map(|_| ());
        }
        let target = self.word()?;
        if target.raw.is_empty() {
            return None;
        }
        match operator {
            "<<" | "<<-" => {
                let quoted = target.raw.contains(['\'', '"', '\\']);
                self.heredocs.push(HereDocument {
                    end: target.value,
                    quoted,
                    indented: operator == "<<-",
                });
            }
            "<<<" => self.doubt.differs = true,
            "<&" | ">&" if is_descriptor(&target.raw) => {}
            _ => {
                // bash expands it twice, and ends it after a `-`.
                let is_plain = |it: &str| crate::unquoted(it).as_deref() == Some(it);
                self.doubt.missed |= operator.ends_with('&')
                    && (!is_plain(&target.raw) || target.raw.starts_with('-'));
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
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.starts("\\\n") => self.at += 2,
                _ => return,
            }
        }
    }

    // Reads the bodies of here-documents that start on this line. Substitutions in them are commands too.
    fn skip_heredocs(&mut self) -> Option<()> {
        for document in std::mem::take(&mut self.heredocs) {
            let from = self.at;
            let mut is_continued = false;
            loop {
                let line = self.rest().split_inclusive('\n').next()?;
                let body = self.src.get(from..self.at)?;
                self.at += line.len();
                let text = line.trim_end_matches('\n');
                let tabs: &[char] = if document.indented { &['\t'] } else { &[] };
                if !is_continued && text.trim_start_matches(tabs) == document.end {
                    if !document.quoted {
                        self.nested(from, body, |inner| inner.scan_all())?;
                    }
                    break;
                }
                let backslashes = text.bytes().rev().take_while(|b| *b == b'\\').count();
                is_continued = !document.quoted && backslashes % 2 == 1;
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
        inner.doubt.associative.clone_from(&self.doubt.associative);
        let read = read(&mut inner);
        self.doubt.merge(inner.doubt);
        let found = inner.found.into_iter().map(|(_, simple)| (place, simple));
        self.found.extend(found);
        read
    }
}

/// Returns whether a text is `-`, or a number with or without it.
fn is_descriptor(text: &str) -> bool {
    let number = text.strip_suffix('-').unwrap_or(text);
    number.bytes().all(|b| b.is_ascii_digit())
}

fn begin(open: &mut OpenCommand, at: usize) {
    open.start.get_or_insert(at);
}

#[cfg(test)]
mod tests;

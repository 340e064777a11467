//! Reading a shell command far enough to know which programs it runs, so that permission rules can be asked for each of them. Not a
//! shell: what it cannot read is asked for as a whole.

mod prefix;

pub(crate) use prefix::prefix;

// Substitutions nest; a model has no honest reason to go deeper.
const DEEPEST: usize = 32;

/// A simple command within a command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Simple {
    /// As written, redirections included.
    pub(crate) text: String,
    /// Words without assignments and redirections.
    pub(crate) words: Vec<Word>,
    /// Files that its redirections write to or read from.
    pub(crate) files: Vec<Word>,
    /// One of them is written to.
    pub(crate) writes: bool,
}

/// A word.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Word {
    /// As written.
    pub(crate) raw: String,
    /// Without quotes; `None` when it depends on a variable, a substitution or a wildcard.
    pub(crate) value: Option<String>,
}

/// The simple commands of a command line, those in substitutions included, in the order in which they begin. `None` when it cannot be
/// read with certainty.
pub(crate) fn commands(source: &str) -> Option<Vec<Simple>> {
    let mut reader = Reader::new(source, 0);
    reader.list(None)?;
    let mut found = reader.found;
    found.sort_by_key(|(at, _)| *at);
    Some(found.into_iter().map(|(_, simple)| simple).collect())
}

/// The commands of a command line without assignments and redirections, and once more as they were written where that differs.
/// `None` when it cannot be read with certainty.
#[must_use]
pub fn commands_of(line: &str) -> Option<Vec<String>> {
    let both = commands(line)?.into_iter().flat_map(|simple| {
        let words: Vec<&str> = simple.words.iter().map(|word| word.raw.as_str()).collect();
        let bare = words.join(" ");
        let written = (bare != simple.text).then_some(simple.text);
        std::iter::once(bare).chain(written)
    });
    Some(both.collect())
}

struct Reader<'a> {
    src: &'a str,
    at: usize,
    depth: usize,
    found: Vec<(usize, Simple)>,
    heredocs: Vec<(String, bool)>,
}

// What a command began with, which decides how it is taken.
#[derive(Clone, Copy, PartialEq)]
enum Taken {
    Command,
    /// Words of `for`, `case`, `[ … ]` and the like: looked through for substitutions, not a command.
    Silent,
}

#[derive(Default)]
struct Open {
    start: Option<usize>,
    simple: Simple,
    taken: Option<Taken>,
}

// Where a list stands in `case … esac`.
#[derive(Default)]
struct Cases {
    depth: usize,
    // The next thing is a pattern, not a command.
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

    // Commands up to `until` (`)` of a subshell or substitution) or the end.
    fn list(&mut self, until: Option<u8>) -> Option<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let mut open = Open::default();
        let mut cases = Cases::default();
        loop {
            if std::mem::take(&mut cases.pattern) {
                self.case_pattern()?;
            }
            let Some(c) = self.peek() else {
                self.close(&mut open);
                self.depth -= 1;
                return (until.is_none() && self.heredocs.is_empty()).then_some(());
            };
            match c {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\\' if self.starts("\\\n") => self.at += 2,
                b'\n' => {
                    self.close(&mut open);
                    self.at += 1;
                    self.skip_heredocs()?;
                }
                b'#' => {
                    self.close(&mut open);
                    self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                }
                b';' | b'|' => {
                    self.close(&mut open);
                    cases.pattern = cases.depth > 0 && (self.starts(";;") || self.starts(";&"));
                    let ends = [";;&", ";;", ";&"].into_iter().find(|op| self.starts(op));
                    self.at += ends.map_or(1, str::len);
                }
                b'&' if self.starts("&>") => self.redirect(&mut open)?,
                b'&' => {
                    self.close(&mut open);
                    self.at += 1;
                }
                b'<' | b'>' => self.redirect(&mut open)?,
                b')' => {
                    self.close(&mut open);
                    self.depth -= 1;
                    self.at += 1;
                    return (until == Some(b')')).then_some(());
                }
                b'(' => self.parenthesis(&mut open)?,
                _ => self.word_of(&mut open, &mut cases)?,
            }
        }
    }

    fn parenthesis(&mut self, open: &mut Open) -> Option<()> {
        if self.starts("((") && open.simple.words.is_empty() {
            self.at += 2;
            return self.scan("))");
        }
        self.at += 1;
        match open.simple.words.len() {
            0 => self.list(Some(b')')),
            // `name() …` defines a function: the name is no command, its body's are found as they come.
            1 if self.rest().trim_start().starts_with(')') => {
                self.at += self.rest().find(')')? + 1;
                *open = Open::default();
                Some(())
            }
            // `a=(1 2)` or something unknown.
            _ => None,
        }
    }

    fn word_of(&mut self, open: &mut Open, cases: &mut Cases) -> Option<()> {
        let start = self.at;
        let word = self.word()?;
        // `2>file`: a number right before a redirection belongs to it.
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
                    open.taken = Some(Taken::Silent);
                }
                "esac" => {
                    cases.depth = cases.depth.checked_sub(1)?;
                    return Some(());
                }
                "for" | "select" | "function" | "[[" | "[" | "export" | "declare" | "local"
                | "readonly" | "typeset" | "unset" => open.taken = Some(Taken::Silent),
                raw if is_assignment(raw) => {
                    begin(open, start);
                    if self.starts("(") {
                        self.at += 1;
                        return self.scan(")");
                    }
                    return Some(());
                }
                _ => open.taken = Some(Taken::Command),
            }
        }
        // `case x in` ends here: what follows are patterns and commands. So does `function f {`.
        let head = open.simple.words.first().map(|word| word.raw.as_str());
        match (head, word.raw.as_str()) {
            (Some("case"), "in") => {
                *open = Open::default();
                cases.pattern = true;
                return Some(());
            }
            (Some("function"), "{") => {
                *open = Open::default();
                return Some(());
            }
            _ => {}
        }
        begin(open, start);
        open.simple.words.push(word);
        Some(())
    }

    // `a|b)` of a case arm, if there is another arm.
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

    fn close(&mut self, open: &mut Open) {
        let done = std::mem::take(open);
        let simple = done.simple;
        let said = !simple.words.is_empty() || !simple.files.is_empty();
        if !said || done.taken == Some(Taken::Silent) {
            return;
        }
        let start = done.start.unwrap_or(self.at);
        let text = self.src.get(start..self.at).unwrap_or("").trim().to_owned();
        self.found.push((start, Simple { text, ..simple }));
    }

    fn redirect(&mut self, open: &mut Open) -> Option<()> {
        begin(open, self.at);
        if self.starts("<(") || self.starts(">(") {
            let start = self.at;
            self.at += 2;
            self.list(Some(b')'))?;
            let raw = self.src.get(start..self.at)?.to_owned();
            open.simple.words.push(Word { raw, value: None });
            return Some(());
        }
        let operator = [
            "&>>", "<<<", "<<-", "&>", "<<", ">>", "<&", ">&", ">|", "<>", "<", ">",
        ]
        .into_iter()
        .find(|op| self.starts(op))?;
        self.at += operator.len();
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        let target = self.word()?;
        if target.raw.is_empty() {
            return None;
        }
        match operator {
            "<<" | "<<-" => {
                let quoted = target.raw.contains(['\'', '"', '\\']);
                self.heredocs.push((target.value?, quoted));
            }
            "<<<" => {}
            "<&" | ">&" if target.raw.bytes().all(|b| b.is_ascii_digit() || b == b'-') => {}
            _ => {
                open.simple.writes |= operator != "<";
                open.simple.files.push(target);
            }
        }
        Some(())
    }

    // The bodies of here-documents that begin at this line. Substitutions in them are commands too.
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

    fn word(&mut self) -> Option<Word> {
        let start = self.at;
        let mut value = Some(String::new());
        while let Some(c) = self.peek() {
            match c {
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'|' | b'&' | b'<' | b'>' | b'(' | b')' => {
                    break;
                }
                b'\'' => {
                    let inner = self.src.get(self.at + 1..)?;
                    let end = inner.find('\'')?;
                    push(&mut value, inner.get(..end)?);
                    self.at += end + 2;
                }
                b'"' => self.double_quoted(&mut value)?,
                b'\\' => {
                    let next = self.rest().chars().nth(1)?;
                    if next != '\n' {
                        push(&mut value, next.encode_utf8(&mut [0; 4]));
                    }
                    self.at += 1 + next.len_utf8();
                }
                b'$' | b'`' => {
                    let from = self.at;
                    self.dollar()?;
                    let raw = self.src.get(from..self.at)?;
                    expand(&mut value, raw);
                }
                b'*' | b'?' | b'[' => {
                    value = None;
                    self.at += 1;
                }
                _ => {
                    let c = self.rest().chars().next()?;
                    push(&mut value, c.encode_utf8(&mut [0; 4]));
                    self.at += c.len_utf8();
                }
            }
        }
        let raw = self.src.get(start..self.at)?.to_owned();
        Some(Word { raw, value })
    }

    fn double_quoted(&mut self, value: &mut Option<String>) -> Option<()> {
        self.at += 1;
        loop {
            let c = self.rest().chars().next()?;
            match c {
                '"' => {
                    self.at += 1;
                    return Some(());
                }
                '\\' => {
                    let next = self.rest().chars().nth(1)?;
                    if !matches!(next, '$' | '`' | '"' | '\\' | '\n') {
                        push(value, "\\");
                    }
                    push(value, next.encode_utf8(&mut [0; 4]));
                    self.at += 1 + next.len_utf8();
                }
                '$' | '`' => {
                    let from = self.at;
                    self.dollar()?;
                    let raw = self.src.get(from..self.at)?;
                    expand(value, raw);
                }
                other => {
                    push(value, other.encode_utf8(&mut [0; 4]));
                    self.at += other.len_utf8();
                }
            }
        }
    }

    // `$name`, `${…}`, `$(…)`, `$((…))`, `$'…'` or a back-quoted command.
    fn dollar(&mut self) -> Option<()> {
        if self.starts("`") {
            let inner = self.src.get(self.at + 1..)?;
            let mut end = None;
            let mut escaped = false;
            for (i, b) in inner.bytes().enumerate() {
                match b {
                    b'`' if !escaped => {
                        end = Some(i);
                        break;
                    }
                    b'\\' => escaped = !escaped,
                    _ => escaped = false,
                }
            }
            let end = end?;
            let text = inner.get(..end)?.replace("\\`", "`");
            let place = self.at + 1;
            self.at += end + 2;
            return self.nested(place, &text, |reader| reader.list(None));
        }
        if self.starts("$((") {
            self.at += 3;
            return self.scan("))");
        }
        if self.starts("$(") {
            self.at += 2;
            return self.list(Some(b')'));
        }
        if self.starts("${") {
            self.at += 2;
            return self.scan("}");
        }
        if self.starts("$'") {
            let inner = self.src.get(self.at + 2..)?;
            let mut escaped = false;
            let end = inner.bytes().position(|b| {
                let ends = b == b'\'' && !escaped;
                escaped = b == b'\\' && !escaped;
                ends
            })?;
            self.at += end + 3;
            return Some(());
        }
        self.at += 1;
        let name = self
            .rest()
            .bytes()
            .take_while(|b| b.is_ascii_alphanumeric() || *b == b'_');
        self.at += name.count();
        Some(())
    }

    // Text up to `end` in which only substitutions matter.
    fn scan(&mut self, end: &str) -> Option<()> {
        loop {
            if self.starts(end) {
                self.at += end.len();
                return Some(());
            }
            self.scan_one()?;
        }
    }
    fn scan_all(&mut self) -> Option<()> {
        while self.peek().is_some() {
            self.scan_one()?;
        }
        Some(())
    }
    fn scan_one(&mut self) -> Option<()> {
        match self.peek()? {
            b'$' | b'`' => self.dollar(),
            b'\\' => {
                self.at += 1;
                self.at += self.rest().chars().next().map_or(0, char::len_utf8);
                Some(())
            }
            _ => {
                self.at += self.rest().chars().next()?.len_utf8();
                Some(())
            }
        }
    }
}

fn begin(open: &mut Open, at: usize) {
    open.start.get_or_insert(at);
}

fn push(value: &mut Option<String>, text: &str) {
    if let Some(value) = value {
        value.push_str(text);
    }
}

// `$HOME` is as good as `~`; any other variable is unknown.
fn expand(value: &mut Option<String>, raw: &str) {
    if matches!(raw, "$HOME" | "${HOME}") && value.as_deref() == Some("") {
        push(value, "~");
    } else if raw != "$" {
        *value = None;
    }
}

fn is_assignment(raw: &str) -> bool {
    raw.split_once('=').is_some_and(|(name, _)| {
        let name = name.strip_suffix('+').unwrap_or(name);
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests;

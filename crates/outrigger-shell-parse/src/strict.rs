//! The reader whose result is authoritative: it supports a small language that bash, dash, ksh and zsh read alike. Anything
//! outside it is a doubt.

use crate::folders::Walk;
use crate::lexer::ends;
use crate::variables::{self, Effect};
use crate::{Command, Doubt, File, UNKNOWN, Word, builtins, word, wrappers};

/// Maximum nesting of commands (`sh -c "sh -c …"`); a model has no honest reason to go deeper.
pub(crate) const MAX_DEPTH: usize = 8;

/// Words that are not commands where a command is expected, including those of zsh and ksh.
const KEYWORDS: &[&str] = &[
    "if",
    "then",
    "elif",
    "else",
    "fi",
    "for",
    "while",
    "until",
    "do",
    "done",
    "select",
    "case",
    "esac",
    "in",
    "function",
    "coproc",
    "repeat",
    "foreach",
    "end",
    "always",
    "nocorrect",
    "noglob",
    "-",
    "!",
    "{",
    "}",
    "[[",
    "]]",
];

/// Words of conditions and loops that precede a command, and those that end them.
const OPENERS: &[&str] = &["if", "then", "elif", "else", "while", "until", "do"];
const CLOSERS: &[&str] = &["fi", "done"];

pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

/// Reads a line that starts in the current state of `walk`.
pub(crate) fn read(source: &str, depth: usize, walk: Walk) -> Result<Vec<Command>, Doubt> {
    if depth > MAX_DEPTH {
        return Err(Doubt::Depth);
    }
    if source
        .chars()
        .any(|c| c.is_control() && c != '\n' && c != '\t')
    {
        return Err(Doubt::Control);
    }
    let mut reader = Reader {
        source,
        depth,
        at: 0,
        found: Vec::new(),
        draft: Draft::default(),
        body: None,
        walk,
        loops: false,
    };
    reader.line()?;
    Ok(reader.found)
}

/// The command that is being read.
#[derive(Default)]
struct Draft {
    start: Option<usize>,
    /// End of its last word or redirection.
    end: usize,
    command: Command,
    /// Effects of its assignments.
    assigned: Vec<Effect>,
    /// Nothing may follow: `a &> b c` is `a & > b c` to dash.
    sealed: bool,
    /// It ends a condition or a loop, including its redirections.
    closes: bool,
    /// `! command`: what follows after `&&` runs if it failed.
    negated: bool,
}

/// A here-document whose text starts on the next line.
struct Body {
    end: String,
    /// The shell expands nothing in it.
    literal: bool,
}

struct Reader<'a> {
    source: &'a str,
    depth: usize,
    at: usize,
    found: Vec<Command>,
    draft: Draft,
    body: Option<Body>,
    walk: Walk,
    /// It contains a loop: its first commands run again, wherever the last ones changed to.
    loops: bool,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.source.get(self.at..).unwrap_or_default()
    }

    fn starts(&self, text: &str) -> bool {
        self.rest().starts_with(text)
    }

    fn line(&mut self) -> Result<(), Doubt> {
        while let Some(c) = self.rest().chars().next() {
            match c {
                ' ' | '\t' => self.at += 1,
                '\\' if self.starts("\\\n") && self.body.is_none() => self.at += 2,
                '\n' => {
                    self.close()?;
                    self.walk.part();
                    self.at += 1;
                    self.here_document()?;
                }
                '#' if self.body.is_none() => {
                    self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                }
                '#' => return Err(Doubt::HereDocument),
                ';' if self.starts(";;") || self.starts(";&") => {
                    return Err(Doubt::Keyword(";;".to_owned()));
                }
                '&' if self.starts("&>") => self.redirect()?,
                // An operator of zsh.
                '&' if self.starts("&!") => return Err(Doubt::Exclamation),
                ';' | '|' | '&' => {
                    self.close()?;
                    if !self.starts("&&") {
                        self.walk.part();
                    }
                    let double = ["||", "&&", "|&"].iter().any(|it| self.starts(it));
                    self.at += if double { 2 } else { 1 };
                }
                '<' | '>' => self.redirect()?,
                '(' | ')' => return Err(Doubt::Parenthesis),
                _ => self.word()?,
            }
        }
        self.close()?;
        if self.loops {
            self.forget_folders();
        }
        match self.body {
            None => Ok(()),
            Some(_) => Err(Doubt::Unfinished),
        }
    }

    /// If the line may change to any folder, no command of it has a known folder.
    fn forget_folders(&mut self) {
        let here = Walk::begin().here();
        if self.found.iter().any(|command| command.folders != here) || self.walk.has_moved() {
            for command in &mut self.found {
                command.folders = None;
            }
        }
    }

    /// Reads a word and records its end in the draft.
    fn next_word(&mut self) -> Result<Word, Doubt> {
        let (word, length) = word::read(self.rest())?;
        self.at += length;
        if self.body.is_some() && word.raw.contains('\n') {
            return Err(Doubt::HereDocument);
        }
        if self.starts("(") {
            return Err(Doubt::Parenthesis);
        }
        Ok(word)
    }

    fn word(&mut self) -> Result<(), Doubt> {
        let start = self.at;
        // `! command`: only inverts its exit code.
        let fresh = self.draft.start.is_none();
        if fresh && ["! ", "!\t"].iter().any(|it| self.starts(it)) {
            self.draft.negated = true;
            self.at += 1;
            return Ok(());
        }
        if self.draft.sealed {
            return Err(Doubt::Redirection);
        }
        if fresh && self.keyword() {
            return Ok(());
        }
        let word = self.next_word()?;
        let begins = *self.draft.start.get_or_insert(start);
        debug_assert!(begins <= start);
        // `2>file`: the number belongs to the redirection.
        let operates = ["<", ">", "&>"].iter().any(|it| self.starts(it));
        if is_number(&word.raw) && operates {
            // With more digits it is an argument to dash, and before `&>` to all shells but zsh.
            return if word.raw.len() == 1 && !self.starts("&") {
                Ok(())
            } else {
                Err(Doubt::Redirection)
            };
        }
        self.draft.end = self.at;
        let draft = &mut self.draft;
        if draft.command.words.is_empty() {
            if KEYWORDS.contains(&word.raw.as_str()) {
                return Err(Doubt::Keyword(word.raw));
            }
            // zsh runs `a` for `{a}`.
            if word.raw.starts_with('{') {
                return Err(Doubt::Braces);
            }
            if variables::assigns_in_zsh(&word.raw) {
                return Err(Doubt::Variable(word.raw));
            }
            if let Some(name) = variables::assigned(&word.raw) {
                let effect = variables::effect(name);
                let plain = effect == Effect::Own || builtins::is_literal(&word);
                if effect == Effect::Runs || !plain {
                    return Err(Doubt::Variable(name.to_owned()));
                }
                draft.assigned.push(effect);
                draft.command.assigned.push(word);
                return Ok(());
            }
        }
        let declares = draft.command.program().is_some_and(builtins::declares);
        let word = if declares { word } else { with_home(word) };
        draft.command.words.push(word);
        Ok(())
    }

    /// Reads a word of a condition or a loop that precedes a command or ends it. A shell that finds it out of place runs nothing
    /// of the line.
    fn keyword(&mut self) -> bool {
        let after = |word: &&&str| {
            let rest = self.rest().strip_prefix(**word)?;
            Some(rest.chars().next())
        };
        let opens =
            |word: &&&str| after(word).is_some_and(|c| matches!(c, Some(' ' | '\t' | '\n')));
        let closes =
            |word: &&&str| after(word).is_some_and(|c| c.is_none_or(|c| c != '(' && ends(c)));
        let opener = OPENERS.iter().find(opens);
        let closer = CLOSERS.iter().find(closes);
        let Some(word) = opener.or(closer) else {
            return false;
        };
        self.at += word.len();
        self.loops |= matches!(*word, "while" | "until");
        // Only redirections and operators follow.
        self.draft.sealed = closer.is_some();
        self.draft.closes = closer.is_some();
        true
    }

    fn redirect(&mut self) -> Result<(), Doubt> {
        self.draft.start.get_or_insert(self.at);
        let operators = [
            "&>>", "<<<", "<<-", "&>", "<<", ">>", "<&", ">&", ">|", "<>", "<", ">",
        ];
        let operator = operators
            .into_iter()
            .find(|it| self.starts(it))
            .ok_or(Doubt::Redirection)?;
        self.at += operator.len();
        // `>!`, `>&|`, `<(` and other extensions.
        if self.rest().starts_with(['!', '|', '&', '<', '>', '(', ')']) {
            return Err(Doubt::Redirection);
        }
        while self.rest().starts_with([' ', '\t']) {
            self.at += 1;
        }
        if self.rest().chars().next().is_none_or(ends) {
            return Err(Doubt::Redirection);
        }
        let name = self.next_word()?;
        self.draft.end = self.at;
        let known = name.known().ok_or(Doubt::Redirection)?;
        match operator {
            "<<" => return self.begin_body(&name),
            "<<-" | "<<<" => return Err(Doubt::HereDocument),
            "<&" | ">&" if known == "-" || is_number(known) => return Ok(()),
            // `2>&1-` moves a descriptor. bash expands `>&file` twice, including what is in quotes.
            "<&" | ">&" => return Err(Doubt::Redirection),
            _ => {}
        }
        // Not files: bash opens a connection for these.
        if known.is_empty() || known.contains("/dev/tcp/") || known.contains("/dev/udp/") {
            return Err(Doubt::Redirection);
        }
        self.draft.sealed |= operator.starts_with('&');
        let written = operator != "<";
        self.draft.command.files.push(File { name, written });
        Ok(())
    }

    /// Reads `<<EOF`, `<<'EOF'` or `<<"EOF"`, one per line.
    fn begin_body(&mut self, name: &Word) -> Result<(), Doubt> {
        let quoted = ['\'', '"'].iter().find_map(|quote| {
            let inner = name.raw.strip_prefix(*quote)?.strip_suffix(*quote)?;
            Some(inner)
        });
        let end = quoted.unwrap_or(&name.raw);
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        if self.body.is_some() || end.is_empty() || !end.bytes().all(plain) {
            return Err(Doubt::HereDocument);
        }
        self.body = Some(Body {
            end: end.to_owned(),
            literal: quoted.is_some(),
        });
        Ok(())
    }

    /// Reads the text of a here-document, if one starts here.
    fn here_document(&mut self) -> Result<(), Doubt> {
        let Some(body) = self.body.take() else {
            return Ok(());
        };
        loop {
            let rest = self.rest();
            let line = rest.split_inclusive('\n').next().ok_or(Doubt::Unfinished)?;
            self.at += line.len();
            let text = line.strip_suffix('\n').unwrap_or(line);
            if text == body.end {
                return Ok(());
            }
            if !body.literal && text.contains(['$', '`', '\\']) {
                return Err(Doubt::HereDocument);
            }
        }
    }

    fn close(&mut self) -> Result<(), Doubt> {
        let draft = std::mem::take(&mut self.draft);
        let Some(start) = draft.start else {
            return Ok(());
        };
        let mut command = draft.command;
        let text = self.source.get(start..draft.end.max(start));
        command.text = text.unwrap_or_default().trim().to_owned();
        // zsh runs its own program for redirections alone: `< file` prints the file.
        let alone = draft.assigned.is_empty() && !draft.closes;
        let prints = command.words.is_empty() && alone;
        let mut more = judged(command, &draft.assigned, self.depth, &mut self.walk)?;
        if let Some(first) = more.first_mut().filter(|_| prints) {
            first.inert = false;
        }
        self.walk
            .after(more.first().map_or(&[], |it| &it.words), true);
        if draft.negated {
            self.walk.part();
        }
        self.found.extend(more);
        Ok(())
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Replaces the home folder that bash may put after `NAME=` and `:` in an argument.
fn with_home(mut word: Word) -> Word {
    let at = variables::assigned(&word.raw).and_then(|_| {
        let found = [word.value.find("=~"), word.value.find(":~")];
        found.into_iter().flatten().min()
    });
    if let Some(at) = at {
        word.value.truncate(at + 1);
        word.value.push(UNKNOWN);
    }
    word
}

/// Returns the command and those that it starts.
fn judged(
    mut command: Command,
    assigned: &[Effect],
    depth: usize,
    walk: &mut Walk,
) -> Result<Vec<Command>, Doubt> {
    if depth > MAX_DEPTH {
        return Err(Doubt::Depth);
    }
    command.folders = walk.here();
    if command.words.is_empty() {
        command.inert = !assigned.contains(&Effect::Passed) && !command.writes();
        return Ok(vec![command]);
    }
    let program = command.program().ok_or(Doubt::Program)?.to_owned();
    if program.is_empty() || program == "~" {
        return Err(Doubt::Program);
    }
    let inert = builtins::check(&program, &command.words)?;
    command.inert = inert && assigned.is_empty() && !command.writes();
    let inner = wrappers::unfold(&command.words)?;
    command.wraps = !inner.is_empty();
    let mut all = vec![command];
    for inner in inner {
        all.extend(match inner {
            wrappers::Inner::Line(line) => read(&line, depth + 1, walk.nested())?,
            wrappers::Inner::Words(words) => {
                // `time cd x` may be the shell's own, and `nice cd x` is not.
                walk.after(&words, false);
                judged(wrapped(words), &[], depth + 1, walk)?
            }
            wrappers::Inner::Anywhere(words) => {
                judged(wrapped(words), &[], depth + 1, &mut Walk::unknown())?
            }
        });
    }
    Ok(all)
}

/// Creates a command that a wrapper starts.
pub(crate) fn wrapped(words: Vec<Word>) -> Command {
    let raws: Vec<&str> = words.iter().map(|word| word.raw.as_str()).collect();
    Command {
        text: raws.join(" "),
        words,
        ..Command::default()
    }
}

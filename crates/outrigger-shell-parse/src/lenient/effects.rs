//! What commands do to the variables of a line, and what they evaluate.

use super::Doubt;
use super::unfold::operands;
use crate::variables::{self, Effect, is_name};
use crate::{UNKNOWN, Word, builtins, git};

/// Builtins after which a name may run something else than a program of that name, or that run what they are given.
const REDEFINE: &[&str] = &[
    "alias", "bind", "compgen", "complete", "enable", "fc", "hash", "repeat", "foreach", "integer",
    "float", "vared",
];

/// Words of the grammar after `time` and `coproc`, where they are not read as such.
const COMPOUND: &[&str] = &["[[", "case", "for", "function", "select"];

/// Variables that change what programs do, but whose values are no command lines.
const EVERYDAY: &[&str] = &[
    "AWS_PROFILE",
    "AWS_REGION",
    "CARGO_BUILD_JOBS",
    "CARGO_INCREMENTAL",
    "CARGO_TARGET_DIR",
    "CARGO_TERM_COLOR",
    "CFLAGS",
    "CXXFLAGS",
    "DOCKER_BUILDKIT",
    "GOARCH",
    "GOFLAGS",
    "GOOS",
    "GOPATH",
    "HOME",
    "IFS",
    "LANG",
    "LC_ALL",
    "LDFLAGS",
    "NODE_ENV",
    "NODE_OPTIONS",
    "PATH",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPATH",
    "PYTHONUNBUFFERED",
    "RUSTFLAGS",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "TERM",
    "TMPDIR",
];

impl Doubt {
    /// Notes what a command assigns and evaluates.
    pub(super) fn command(&mut self, words: &[Word]) {
        let Some((program, arguments)) = words.split_first() else {
            return;
        };
        let Some(name) = program.known() else {
            return;
        };
        self.missed |= REDEFINE.contains(&name) || COMPOUND.contains(&name);
        // `env x=1 sh -c …`, and builtins that declare.
        for word in arguments {
            self.assigned_by_word(word);
        }
        match name {
            "read" => self.targets(arguments, "dinNptu"),
            "mapfile" | "readarray" => self.targets(arguments, "cdnOsu"),
            "getopts" => self.targets(arguments.get(1..).unwrap_or_default(), ""),
            "wait" => self.targets(arguments, ""),
            "unset" => self.missed |= !arguments.iter().all(is_plain),
            "declare" | "local" | "typeset" | "readonly" | "export" => {
                self.declared(name, arguments)
            }
            "let" => {
                for word in arguments {
                    self.evaluated(word);
                }
            }
            "exit" | "return" | "break" | "continue" | "shift" => {
                for word in arguments {
                    self.missed |= !self.values.evaluate_word(&word.raw);
                }
            }
            "printf" => self.printed(arguments),
            "[" | "test" => self.tested(arguments),
            "source" | "." => {
                self.missed |= operands(arguments).first().is_some_and(|it| !is_file(it));
            }
            // It runs its further arguments.
            "jobs" => self.missed |= arguments.iter().any(|it| it.value.contains('x')),
            _ => {}
        }
    }

    fn assigned_by_word(&mut self, word: &Word) {
        let Some((name, value)) = word.value.split_once('=') else {
            return;
        };
        let name = name.strip_suffix('+').unwrap_or(name);
        if !is_name(name) {
            return;
        }
        if word.raw.starts_with(name) {
            self.assigned(&word.raw);
        } else if value.bytes().all(|b| b.is_ascii_digit()) {
            self.values.is_number(name);
        } else {
            self.values.any_value(name);
        }
    }

    /// Notes an assignment, which may make a program or a prompt of the shell run its value.
    pub(super) fn assigned(&mut self, raw: &str) {
        self.values.assign_word(raw);
        let value = raw.split_once('=').map_or("", |(_, value)| value);
        self.missed |=
            variables::assigned(raw).is_some_and(may_start) && !git::PLAIN.contains(&value);
    }

    /// Notes the names that a builtin assigns, after its options: those of `with_value` take the next word.
    fn targets(&mut self, arguments: &[Word], with_value: &str) {
        for name in ["REPLY", "MAPFILE", "OPTARG"] {
            self.values.any_value(name);
        }
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.known() {
                // `mapfile -C` runs a command.
                Some(option) if option.starts_with('-') => {
                    self.missed |= option.contains('C');
                    if option.ends_with(|c| with_value.contains(c)) {
                        words.next();
                    }
                }
                Some(name) if is_name(name) => self.values.any_value(name),
                _ => self.missed = true,
            }
        }
    }

    fn declared(&mut self, program: &str, arguments: &[Word]) {
        let options = arguments.iter().filter(|it| it.value.starts_with('-'));
        let has = |letter: char| options.clone().any(|it| it.value.contains(letter));
        // Another name for a variable, or one whose values are evaluated.
        self.missed |= program != "export" && has('n');
        for word in arguments {
            let name = word.value.split('=').next().unwrap_or_default();
            let name = name.strip_suffix('+').unwrap_or(name);
            if name.starts_with('-') {
                continue;
            }
            self.missed |= is_evaluated_again(word, has('a') || has('A') || self.has_arrays);
            if is_name(name) {
                if has('i') {
                    self.values.evaluate(name);
                }
            } else if program == "export" && name.contains(UNKNOWN) {
                self.values.any_name();
            } else {
                self.missed = true;
            }
        }
    }

    fn evaluated(&mut self, word: &Word) {
        let text = word.known().unwrap_or(&word.raw);
        let assigned = text.split_once('=').filter(|(name, _)| is_name(name));
        if let Some((name, _)) = assigned {
            self.values.is_number(name);
        }
        let text = assigned.map_or(text, |(_, value)| value);
        self.missed |= !self.values.evaluate_word(text);
    }

    /// zsh evaluates the arguments for `%d` and the like.
    fn printed(&mut self, arguments: &[Word]) {
        let Some((format, rest)) = arguments.split_first() else {
            return;
        };
        if format.value.starts_with("-v") {
            let (name, rest) = match format.known() {
                Some("-v") => (rest.first().and_then(Word::known), rest.get(1..)),
                other => (other.and_then(|it| it.get(2..)), Some(rest)),
            };
            match name.filter(|it| is_name(it)) {
                Some(name) => self.values.any_value(name),
                None => self.missed = true,
            }
            return self.printed(rest.unwrap_or_default());
        }
        // It may be an option.
        self.missed |= format.value.starts_with(UNKNOWN) && !rest.is_empty();
        let is_flag = |c: char| c.is_ascii_digit() || "-+ #'.*".contains(c);
        let mut conversions = format.value.replace("%%", "");
        conversions.retain(|c| c != UNKNOWN);
        let is_text = |part: &str| {
            part.trim_start_matches(is_flag)
                .starts_with(['s', 'b', 'q', 'c'])
        };
        if !conversions.split('%').skip(1).all(is_text) {
            for word in rest {
                let is_text = crate::unquoted(&word.raw).is_some_and(|it| !it.contains('['));
                self.missed |= !is_text && !self.values.evaluate_word(&word.raw);
            }
        }
    }

    fn tested(&mut self, arguments: &[Word]) {
        for (at, word) in arguments.iter().enumerate() {
            let next = arguments.get(at + 1);
            let before = at.checked_sub(1).and_then(|at| arguments.get(at));
            if builtins::compares_numbers(&word.raw) {
                for word in before.into_iter().chain(next) {
                    self.missed |= !self.values.evaluate_word(&word.raw);
                }
            } else if matches!(word.raw.as_str(), "-v" | "-R") {
                self.missed |= next.is_some_and(|it| !is_name(&it.raw));
            } else if !word.is_one() && word.raw.contains(['$', '`']) {
                // It may be several words: another test.
                self.split(&word.raw);
            }
        }
    }

    fn split(&mut self, raw: &str) {
        let name = raw.strip_prefix('$').unwrap_or_default();
        let inner = name.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
        match inner.unwrap_or(name) {
            "#" | "?" | "$" | "!" => {}
            name if is_name(name) => self.values.split(name),
            _ => self.missed |= super::values::number(raw).is_none_or(|it| !it.is_empty()),
        }
    }
}

/// Returns whether a variable may make the shell or a program start another one, or run its value as a line.
fn may_start(name: &str) -> bool {
    variables::effect(name) == Effect::Runs && !EVERYDAY.contains(&name)
}

/// Returns whether a word of `declare` has the value of an array that is no literal of the line: bash expands `(…)` in a quoted word
/// or in the value of a variable once more.
fn is_evaluated_again(word: &Word, of_array: bool) -> bool {
    let Some((name, value)) = word.value.split_once('=') else {
        return of_array && word.value.contains(UNKNOWN);
    };
    let raw = word.raw.split_once('=');
    let is_literal = raw.is_some_and(|(before, raw)| before == name && raw.starts_with('('));
    !is_literal && (value.starts_with('(') || of_array && value.starts_with(UNKNOWN))
}

fn is_plain(word: &Word) -> bool {
    word.known().is_some_and(|it| !it.contains('['))
}

/// Returns whether it names a file that is not made by the line itself: `. <(…)`, `. /dev/stdin`.
fn is_file(word: &Word) -> bool {
    let name = word.value.rsplit('/').next().unwrap_or_default();
    let is_known = !name.contains(UNKNOWN) && (word.is_one() || word.known().is_some());
    let is_device = ["/dev/", "/proc/"]
        .iter()
        .any(|it| word.value.starts_with(it));
    is_known && !is_device && name != "stdin" && !name.bytes().all(|b| b.is_ascii_digit())
}

//! Shell builtins: which are harmless, and which run, read or redefine something on their own. Those that evaluate arithmetic run
//! commands: `test -v 'a[$(id)]'`, in zsh `printf %d 'a[$(id)]'`.

use crate::variables::{self, Effect};
use crate::{Doubt, Word};

/// Safe with any arguments.
const PLAIN: &[&str] = &[
    "echo", ":", "true", "false", "pwd", "type", "which", "times",
];

/// Safe with literal arguments only.
const LITERAL: &[&str] = &[
    "cd", "chdir", "pushd", "popd", "dirs", "umask", "ulimit", "exit", "return", "break",
    "continue", "shift", "kill", "bg", "fg", "suspend", "wait", "caller", "logout", "bye",
];

/// Never safe. Some exist in one shell only; elsewhere no program is likely to have that name.
const NEVER: &[&str] = &[
    "alias",
    "autoload",
    "bind",
    "bindkey",
    "builtin",
    "command",
    "compadd",
    "compctl",
    "compdef",
    "compgen",
    "complete",
    "compopt",
    "comparguments",
    "coproc",
    "dot",
    "disable",
    "disown",
    "emulate",
    "enable",
    "eval",
    "exec",
    "fc",
    "float",
    "functions",
    "getln",
    "getopts",
    "hash",
    "help",
    "hist",
    "history",
    "integer",
    "jobs",
    "let",
    "limit",
    "mapfile",
    "nameref",
    "nocorrect",
    "noglob",
    "print",
    "private",
    "pushln",
    "r",
    "read",
    "readarray",
    "rehash",
    "sched",
    "set",
    "setopt",
    "shopt",
    "source",
    "stat",
    "sysopen",
    "sysread",
    "syswrite",
    "trap",
    "unalias",
    "unfunction",
    "unhash",
    "unset",
    "unsetopt",
    "vared",
    "whence",
    "where",
    "zcompile",
    "zed",
    "zf_rm",
    "zformat",
    "zle",
    "zmodload",
    "zparseopts",
    "zpty",
    "zregexparse",
    "zsocket",
    "zstyle",
    "zsystem",
    "ztcp",
    ".",
];

/// Builtins that set variables.
const DECLARE: &[&str] = &["declare", "export", "local", "readonly", "typeset"];

/// Tests of one word, and of two, that check only texts and files.
const UNARY: &[&str] = &[
    "-b", "-c", "-d", "-e", "-f", "-g", "-h", "-k", "-L", "-n", "-p", "-r", "-s", "-S", "-u", "-w",
    "-x", "-z", "-O", "-G", "-N",
];
const BINARY: &[&str] = &["=", "==", "!=", "-nt", "-ot", "-ef"];
const NUMERIC: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

/// Returns whether the command only tests something; an error for what runs, reads or redefines something on its own.
pub(crate) fn check(program: &str, words: &[Word]) -> Result<bool, Doubt> {
    let arguments = words.get(1..).unwrap_or_default();
    let doubt = || Doubt::Builtin(program.to_owned());
    let safe = match program {
        "[" => match arguments.split_last() {
            Some((last, tested)) if last.known() == Some("]") => tests(tested),
            _ => false,
        },
        "test" => tests(arguments),
        "printf" => prints(arguments),
        "command" => looks_up(arguments),
        "stat" | "help" | "r" | "print" | "private" | "float" | "limit" | "where" | "hist" => {
            arguments.iter().all(is_literal)
        }
        "jobs" => arguments.is_empty(),
        "set" => arguments.iter().all(is_flag) && !arguments.is_empty(),
        name if PLAIN.contains(&name) => true,
        "wait" | "kill" => arguments.iter().all(is_process),
        "exit" | "return" | "break" | "continue" | "shift" => arguments.iter().all(is_integer),
        name if LITERAL.contains(&name) => arguments.iter().all(is_literal),
        name if DECLARE.contains(&name) => arguments.iter().all(is_declared),
        name if NEVER.contains(&name) => false,
        _ => return Ok(false),
    };
    if safe {
        Ok(matches!(program, "[" | "test"))
    } else {
        Err(doubt())
    }
}

/// Returns whether a builtin sets variables.
pub(crate) fn declares(program: &str) -> bool {
    DECLARE.contains(&program)
}

/// Returns whether a word of a test compares numbers.
pub(crate) fn compares_numbers(word: &str) -> bool {
    NUMERIC.contains(&word)
}

/// Returns whether it is a known text in which no shell finds an index or an expansion.
pub(crate) fn is_literal(word: &Word) -> bool {
    word.known()
        .is_some_and(|text| !text.contains(['[', '$', '`', '(', '{']))
}

/// Returns whether it is a process, a job, or the name of a signal.
fn is_process(word: &Word) -> bool {
    let plain = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || matches!(b, b'-' | b'%');
    word.raw == "$$" || word.known().is_some_and(|text| text.bytes().all(plain))
}

/// Returns whether it is a number. Not the name of a variable: zsh evaluates its value as arithmetic.
fn is_integer(word: &Word) -> bool {
    let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    matches!(word.raw.as_str(), "$?" | "$#" | "$!") || word.known().is_some_and(number)
}

/// Returns whether it is an option of `set` that only makes a script stop earlier.
fn is_flag(word: &Word) -> bool {
    matches!(
        word.raw.as_str(),
        "-e" | "-u"
            | "-eu"
            | "-ue"
            | "-euo"
            | "-eo"
            | "-o"
            | "pipefail"
            | "errexit"
            | "nounset"
            | "-x"
            | "+e"
            | "+u"
            | "+x"
            | "-ex"
            | "-eux"
            | "-euxo"
    )
}

/// Returns whether it is `command -v name`.
fn looks_up(arguments: &[Word]) -> bool {
    match arguments {
        [option, name] => matches!(option.raw.as_str(), "-v" | "-V") && is_literal(name),
        _ => false,
    }
}

/// Returns whether the format is known and not an option; with conversions other than `%s`, only arguments that no shell
/// evaluates.
fn prints(arguments: &[Word]) -> bool {
    let Some((format, rest)) = arguments.split_first() else {
        return true;
    };
    let Some(text) = format.known() else {
        return false;
    };
    let mut after = text.split('%').skip(1);
    let only_texts = after.all(|part| part.is_empty() || part.starts_with(['s', 'b', 'q']));
    !text.starts_with('-') && (only_texts || rest.iter().all(is_integer))
}

fn is_declared(word: &Word) -> bool {
    let name = variables::assigned(&word.raw)
        .or_else(|| variables::is_name(&word.raw).then_some(word.raw.as_str()));
    name.is_some_and(|name| variables::effect(name) != Effect::Runs) && is_literal(word)
}

/// Returns whether it is a `test` of words that cannot turn out to be another test.
fn tests(words: &[Word]) -> bool {
    let is = |word: &Word, list: &[&str]| list.contains(&word.raw.as_str());
    let one = Word::is_one;
    let words = match words.split_first() {
        Some((not, rest)) if not.value == "!" => rest,
        _ => words,
    };
    match words {
        [operator, word] if is(operator, UNARY) => one(word),
        [left, operator, right] if is(operator, BINARY) => one(left) && one(right),
        [left, operator, right] if is(operator, NUMERIC) => is_integer(left) && is_integer(right),
        [word] => one(word),
        [] => true,
        _ => false,
    }
}

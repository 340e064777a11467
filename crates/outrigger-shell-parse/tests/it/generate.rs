//! Lines that shells and readers may disagree about: generated from a grammar and mutated at random. The same seed yields the same
//! lines.

pub(crate) struct Lines {
    state: u64,
    corpus: Vec<String>,
}

const PLAIN: &[&str] = &[
    "a", "b", "x", "-n", "touch", "git", "1", "2", "y.txt", "status", "--", "-", "ünï", "e", "=",
    "a=b", "E", "é",
];
const PROGRAMS: &[&str] = &[
    "a",
    "b",
    "x",
    "touch",
    "git",
    "ls",
    "cat",
    "rm",
    "echo",
    "printf",
    "true",
    "cd",
    "test",
    "[",
    "grep",
    "sub/touch",
];
const QUOTED: &[&str] = &[
    "a",
    " ",
    "  ",
    "$v",
    "$(touch q)",
    "`touch q`",
    "\\",
    "\n",
    "#",
    ";",
    "touch y",
    "*",
    "~",
    "!",
    "{a,b}",
    "é",
    "\t",
    "E",
    "'",
    "\"",
    "$'",
    "\\n",
];
const EXPANSIONS: &[&str] = &[
    "$v",
    "${v}",
    "$w",
    "$e",
    "$o",
    "$t",
    "$HOME",
    "$?",
    "$$",
    "$#",
    "$@",
    "$1",
    "$",
    "${v:-x}",
    "${v@P}",
    "$(touch q)",
    "`touch q`",
    "$((1))",
    "$'a'",
    "$\"a\"",
    "$[1]",
    "${#v}",
    "${!v}",
    "$v[1]",
    "$-",
    "$(<y)",
    "${v/x/$(touch q)}",
];
const GLOBS: &[&str] = &[
    "*", "?", "[a-z]", "{a,b}", "{1..2}", "{}", "{0}", "~", "~/x", "~root", "~+", "**", "[", "]",
    "!", "!=", "#", "a#", "%", "^", "=", "@{0}", "@", ",", ":",
];
const SEPARATORS: &[&str] = &[
    ";", "; ", " | ", "|", " || ", " && ", "\n", " & ", "&", "\n\n", " |& ", ";\n", " ;", " \\\n",
    "\t;\t", " # x\n", "#", " #",
];
const REDIRECTIONS: &[&str] = &[
    ">",
    "> ",
    ">>",
    "<",
    "2>",
    "2>>",
    "&>",
    "&>>",
    ">|",
    "<>",
    "2>&1",
    ">&2",
    ">&",
    ">&-",
    "1>&2-",
    ">!",
    "<<<",
    "3>",
    "10>",
    "{v}>",
    ">&$o",
    "<&0",
    ">\\\n",
    "> >(cat) ",
    "<(a)",
];
const ASSIGNMENTS: &[&str] = &[
    "v=1", "A=1", "v='a b'", "v=$v", "v=\"$t\"", "PATH=.", "IFS=t", "v+=1", "v=~", "v=*",
    "v=(a b)", "v[0]=1", "RANDOM=v", "Y=", "v=\\\n1", "v={a,b}", "x=touch",
];
const WRAPPERS: &[&str] = &[
    "env",
    "env -i",
    "env -u v",
    "env A=b",
    "env -",
    "env -S",
    "nice",
    "nice -n 5",
    "nice -5",
    "nohup",
    "timeout 5",
    "timeout -s KILL 5s",
    "timeout -k 1 5",
    "setsid",
    "setsid -w",
    "stdbuf -oL",
    "time",
    "time -p",
    "command",
    "exec",
    "builtin",
    "xargs",
    "xargs -n 1",
    "xargs -I{}",
    "xargs -0",
    "ionice -c 3",
    "taskset -c 0",
    "chrt -o 0",
    "env --",
    "!",
    "! !",
    "eval",
    "find . -maxdepth 0 -exec",
    "find -maxdepth 0 -name",
];
const WHOLE: &[&str] = &[
    "[[ $v -eq 0 ]]",
    "[[ -v v ]]",
    "((v))",
    "let v",
    "declare -i i=v",
    "export -p",
    "export A=1",
    "export v",
    "readonly q=1",
    "local v",
    "f() { touch q; }; f",
    "function f { touch q; }",
    "alias a=touch",
    "shopt -s expand_aliases\nalias a=touch\na",
    "for i in a b; do touch $i; done",
    "while a; do touch q; break; done",
    "if a; then touch q; fi",
    "case a in a) touch q;; esac",
    "{ touch q; }",
    "(touch q)",
    "trap 'touch q' EXIT",
    "source y",
    ". y",
    ". ./y",
    "< y",
    "cat < y",
    "cat < $v",
    "cat $v < y",
    "cat *",
    "v=y; cat $v",
    "v=y; cat < $v",
    "read v < y; cat $v",
    "while read v; do cat $v; done < y",
    "mapfile v < y",
    "exec < y",
    "cat $(<y)",
    "echo y | xargs cat",
    "xargs -a y cat",
    "cat <<< \"$(<y)\"",
    "cat - y.txt < y",
    "set -- y; cat $1",
    "bash -c 'cat $1' a y",
    "bash -c '. y'",
    "printf -v v x",
    "printf '%d' $v",
    "printf '%s' $v",
    "test -v $v",
    "[ -n \"$v\" ]",
    "[ $v = a ]",
    "[ a -eq 1 ]",
    "set -e",
    "set -- touch",
    "unset v",
    "read v",
    "coproc touch q",
    "select i in a; do touch q; done",
    "until a; do touch q; break; done",
    "hash -p touch a",
    "cd $v",
    "cd .",
    "umask 22",
    "exit",
    "return",
    "exit $?",
    "true",
    ":",
    "set -o posix",
    "command -v touch",
    "type a",
    "mapfile -C touch v",
    "wait",
    "exec touch q",
    "exec 3>y",
    "v=1",
    "A=1 B=2",
    "test ! -f y",
    "[ ! -f y ]",
    "pwd",
];
/// Words of conditions and loops, in place and out of it. None loops forever: no program fails, and `a` ends the list of `until`.
const KEYWORDS: &[&str] = &[
    "if ", "then ", "else ", "elif ", "fi", "do ", "done", "until ", "if\n", "then\n", "; then ",
    "; fi", "; do ", "; done", "! ", "fi ", "done ", "time ",
];
const INSERTED: &[&str] = &[
    "'",
    "\"",
    "\\",
    "$",
    "`",
    "(",
    ")",
    "{",
    "}",
    "<",
    ">",
    ";",
    "&",
    "|",
    "#",
    "!",
    "*",
    "?",
    "[",
    "]",
    "~",
    "=",
    " ",
    "\t",
    "\n",
    "\\\n",
    "\r",
    "\u{1}",
    "\u{a0}",
    "\u{3000}",
    "$(",
    "${",
    "$'",
    "<<E",
    "<<-E\n\tE",
    "<<'E'\n",
    "\nE\n",
    "touch",
    "&&",
    ">>",
    "!=",
    "{}",
    "a",
    "0",
    "-c",
];

impl Lines {
    pub(crate) fn new(seed: u64, corpus: Vec<String>) -> Self {
        Self {
            state: seed,
            corpus,
        }
    }

    pub(crate) fn next_line(&mut self) -> String {
        let mut line = match self.below(4) {
            0 => self.of_corpus(),
            _ => self.list(2),
        };
        if self.below(3) > 0 {
            for _ in 0..=self.below(3) {
                line = self.changed(&line);
            }
        }
        line
    }

    /// Returns the next number of SplitMix64.
    fn below(&mut self, most: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % most as u64).unwrap()
    }

    fn one(&mut self, list: &[&str]) -> String {
        list[self.below(list.len())].to_owned()
    }

    fn of_corpus(&mut self) -> String {
        let at = self.below(self.corpus.len());
        self.corpus[at].clone()
    }

    fn list(&mut self, depth: usize) -> String {
        let mut line = self.command(depth);
        for _ in 0..self.below(3) {
            line += &self.one(SEPARATORS);
            line += &self.command(depth);
        }
        line
    }

    fn command(&mut self, depth: usize) -> String {
        match self.below(20) {
            0 | 1 => return self.one(WHOLE),
            4 => {
                let (one, two) = (self.command(0), self.command(0));
                return match self.below(2) {
                    0 => format!("if {one}; then {two}; fi"),
                    _ => format!("until true; do {one}; done; if {one}\nthen\n{two}\nelse a; fi"),
                };
            }
            2 if depth > 0 => {
                let line = self.list(depth - 1);
                let shell = self.one(&[
                    "sh -c",
                    "bash -c",
                    "bash -lc",
                    "sh -ec",
                    "env sh -c",
                    "dash -c --",
                    "xargs sh -c",
                ]);
                let quoted = match self.below(3) {
                    0 => format!("\"{line}\""),
                    _ => format!("'{}'", line.replace('\'', "'\\''")),
                };
                return format!("{shell} {quoted}");
            }
            3 => return self.here_document(),
            _ => {}
        }
        let mut words = Vec::new();
        if self.below(6) == 0 {
            words.push(self.one(ASSIGNMENTS));
        }
        if self.below(8) == 0 {
            words.push(self.redirection());
        }
        while self.below(5) == 0 {
            words.push(self.one(WRAPPERS));
        }
        words.push(match self.below(8) {
            0 => self.word(),
            1 => {
                let program = self.one(PROGRAMS);
                self.spelled(&program)
            }
            _ => self.one(PROGRAMS),
        });
        for _ in 0..self.below(4) {
            words.push(self.word());
        }
        if self.below(6) == 0 {
            words.push(self.redirection());
        }
        if self.below(12) == 0 {
            words.push(self.one(&[
                "{} +",
                "{} \\;",
                "\\;",
                "';'",
                ";",
                "{} ';' -exec touch {} +",
            ]));
        }
        let space = self.one(&[" ", " ", " ", "\t", "  ", " \\\n "]);
        words.join(&space)
    }

    fn redirection(&mut self) -> String {
        self.one(REDIRECTIONS) + &self.word()
    }

    fn here_document(&mut self) -> String {
        let operator = self.one(&["<<", "<<", "<< ", "<<-"]);
        let end = self.one(&["E", "'E'", "\"E\"", "\\E", "E''", "$v", "E F"]);
        let more = self.one(&[
            "",
            "",
            " > y",
            " | a",
            "; touch q",
            " && \\\n b",
            " 'a\nb'",
            " # x",
            " <<F",
        ]);
        let body = self.list(0);
        let last = self.one(&["E", "E", "E", "E ", " E", "\tE", "E\n", "'E'", "EE", ""]);
        let after = self.one(&["", "\n", "\ntouch q", "\na"]);
        format!("cat {operator}{end}{more}\n{body}\n{last}{after}")
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        for _ in 0..=self.below(2) {
            word += &match self.below(10) {
                0..=3 => self.one(PLAIN),
                4 => format!("'{}'", self.one(QUOTED).replace('\'', "")),
                5 => format!("\"{}{}\"", self.one(QUOTED), self.one(QUOTED)),
                6 => format!(
                    "\\{}",
                    self.one(&[
                        "a", " ", "\\", "'", "\"", "$", "\n", ";", "*", "`", "é", "#"
                    ])
                ),
                7 | 8 => self.one(EXPANSIONS),
                _ => self.one(GLOBS),
            };
        }
        word
    }

    /// Returns the same word in other quotes.
    fn spelled(&mut self, word: &str) -> String {
        let mut text = String::new();
        for c in word.chars() {
            match self.below(5) {
                0 => text.extend(['\\', c]),
                1 => text.extend(['"', c, '"']),
                2 => text.extend(['\'', c, '\'']),
                _ => text.push(c),
            }
        }
        text
    }

    fn changed(&mut self, line: &str) -> String {
        let mut chars: Vec<char> = line.chars().collect();
        let at = self.below(chars.len() + 1);
        match self.below(7) {
            0 if at < chars.len() => {
                chars.remove(at);
            }
            1 => {
                let end = (at + 1 + self.below(6)).min(chars.len());
                let copy: Vec<char> = chars[at.min(end)..end].to_vec();
                let to = self.below(chars.len() + 1);
                chars.splice(to..to, copy);
            }
            2 => {
                let other: Vec<char> = self.of_corpus().chars().collect();
                let from = self.below(other.len() + 1);
                chars.truncate(at);
                chars.extend(&other[from..]);
            }
            3 => {
                let text = self.one(KEYWORDS);
                chars.splice(at..at, text.chars());
            }
            _ => {
                let text = self.one(INSERTED);
                chars.splice(at..at, text.chars());
            }
        }
        chars.into_iter().collect()
    }
}

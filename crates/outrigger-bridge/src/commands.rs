//! The command registry: which command lines a bridge executes (C9, 5). Strict by default: a line is words, with no shell
//! in it, and one of the rules has to fit all of them.

use crate::BridgeError;

/// A rule: words, of which a `*` at the end of one stands for any rest, and `**` as the last for any further ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRule(Vec<String>);

/// The commands that are executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    rules: Vec<CommandRule>,
    /// Any command line, by a shell.
    shell: bool,
}

impl CommandRule {
    /// Reads a rule, as `git log **`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        match words.first() {
            None => Err("a rule names a command".to_owned()),
            Some(first) if first.contains('*') => {
                Err(format!("{text:?}: the command itself is named in full"))
            }
            Some(_) => Ok(Self(words)),
        }
    }

    /// The command that it names.
    #[must_use]
    pub fn program(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    fn fits(&self, words: &[String]) -> bool {
        let (fixed, any) = match self.0.split_last() {
            Some((last, fixed)) if last == "**" => (fixed, true),
            _ => (self.0.as_slice(), false),
        };
        let enough = if any {
            words.len() >= fixed.len()
        } else {
            words.len() == fixed.len()
        };
        enough
            && fixed
                .iter()
                .zip(words)
                .all(|(rule, word)| match rule.strip_suffix('*') {
                    Some(start) => word.starts_with(start),
                    None => rule == word,
                })
    }
}

impl Commands {
    /// `shell`: any command line is executed, by a shell, and there are no rules.
    #[must_use]
    pub fn new(rules: Vec<CommandRule>, shell: bool) -> Self {
        Self { rules, shell }
    }

    /// The command line to run for this one: the words that were checked, quoted, so that a shell adds nothing to them.
    ///
    /// # Errors
    /// `bridge.command`.
    pub fn admit(&self, line: &str) -> Result<String, BridgeError> {
        if self.shell {
            return Ok(line.to_owned());
        }
        let refuse = |why: String| BridgeError::new("bridge.command", why);
        let words = words(line).map_err(|why| refuse(why.to_owned()))?;
        if !self.rules.iter().any(|rule| rule.fits(&words)) {
            let first = words.first().map_or("", String::as_str);
            return Err(refuse(format!(
                "`{first}` with these arguments is not on the bridge's list of commands"
            )));
        }
        Ok(words
            .iter()
            .map(|word| quoted(word))
            .collect::<Vec<_>>()
            .join(" "))
    }
}

/// As rules of permissions name it, where a shell leaves it as it is; else in quotes.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:=@%+,-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The words of a line in which nothing is for a shell but quotes.
fn words(line: &str) -> Result<Vec<String>, &'static str> {
    const SHELL: &str = "the line has shell syntax in it; the bridge executes plain words only";
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for c in line.chars() {
        if c.is_control() && c != '\t' {
            return Err("the line has control characters in it");
        }
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some('"'), '$' | '`' | '\\') => return Err(SHELL),
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ' | '\t') => words.extend(word.take()),
            (None, c) if ";|&<>()$`\\*?[]{}~#!^".contains(c) => return Err(SHELL),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed");
    }
    words.extend(word);
    match words.first() {
        None => Err("there is no command in it"),
        Some(first) if first.is_empty() || first.contains(['=', '/']) => {
            Err("a command is named by its bare name, without variables before it")
        }
        Some(_) => Ok(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_on_the_list_and_has_no_shell_in_it() {
        let rules = ["git status", "git log **", "cargo test -p *", "echo **"]
            .map(|rule| CommandRule::read(rule).unwrap());
        let commands = Commands::new(rules.into(), false);
        for (line, want) in [
            ("git status", Some("git status")),
            ("  git\tstatus ", Some("git status")),
            ("git log", Some("git log")),
            ("git log -n 3 'a b'", Some("git log -n 3 'a b'")),
            (
                "cargo test -p outrigger-x",
                Some("cargo test -p outrigger-x"),
            ),
            (r#"echo "it's" '$HOME'"#, Some(r"echo 'it'\''s' '$HOME'")),
            ("echo ''", Some("echo ''")),
            ("git status -s", None),
            ("git push", None),
            ("cargo test -p a -- b", None),
            ("/usr/bin/git status", None),
            ("./git status", None),
            ("GIT_DIR=x git status", None),
            ("git status; rm -rf .", None),
            ("git log && rm x", None),
            ("git log | sh", None),
            ("echo $(id)", None),
            ("echo `id`", None),
            ("echo \"$(id)\"", None),
            ("echo $HOME", None),
            ("echo x > file", None),
            ("echo *", None),
            ("echo ~root", None),
            ("echo a\\ b", None),
            ("echo {a,b}", None),
            ("echo a\nrm x", None),
            ("echo 'open", None),
            ("echo \u{0}", None),
            ("", None),
            ("   ", None),
            ("''", None),
        ] {
            let got = commands.admit(line);
            assert_eq!(got.as_deref().ok(), want, "{line:?}");
            if let Err(refusal) = got {
                assert_eq!(refusal.code, "bridge.command");
            }
        }
        assert!(Commands::default().admit("git status").is_err());
        let open = Commands::new(Vec::new(), true);
        assert_eq!(open.admit("a && b").unwrap(), "a && b");
    }

    #[test]
    fn rules_name_a_command() {
        for (text, fits) in [
            ("git *", true),
            ("ls", true),
            ("", false),
            ("* x", false),
            ("g* x", false),
        ] {
            assert_eq!(CommandRule::read(text).is_ok(), fits, "{text}");
        }
    }
}

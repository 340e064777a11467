//! Markdown for any viewer.
//!
//! Messages are quoted, so that no text can imitate a heading or an entry of the file. Outside code `<` is written as `&lt;`: the only
//! HTML is the folded blocks of tool calls. Images become links, and links that execute something become text. Code is written so that
//! every renderer takes the same for it ([`code_spans`](crate::code_spans)).

use std::collections::BTreeSet;
use std::fmt::Write as _;

use outrigger_api::Entry;
use outrigger_protocol::Millis;
use outrigger_protocol::merged::Details;
use outrigger_terminal::{name, safe};
use pulldown_cmark::{Event, Options, Parser, Tag};
use serde_json::Value;
use similar::TextDiff;

use crate::code_spans::{code_ranges, plain_code};
use crate::document::{Document, Exported};

/// Maximum bytes of a file for a diff; larger changes are only named.
const MAX_DIFFED: usize = 1024 * 1024;
/// Maximum characters of the line with a call's subject.
const MAX_ABOUT: usize = 120;
/// What each line of a message begins with.
const QUOTE: &str = "> ";
/// How often a text is parsed until it has no link that executes something. Deeper nested ones are not text that anybody reads.
const MAX_PASSES: usize = 8;

/// Returns the content of the file.
#[must_use]
pub fn markdown(document: &Document) -> String {
    document
        .conversations
        .iter()
        .map(conversation)
        .collect::<Vec<_>>()
        .join("\n---\n\n")
}

fn conversation(exported: &Exported) -> String {
    let of = &exported.conversation;
    let title = match of.title.trim() {
        "" => "Untitled",
        title => title,
    };
    let mut out = format!("# {}\n\n", escaped(&name(title)));
    let mut fact = |label: &str, value: &str| {
        let _ = writeln!(out, "- {label}: {}", code(value));
    };
    fact("Session", of.id.as_str());
    if let Some(parent) = &of.parent_id {
        fact("Subagent of", parent.as_str());
    }
    fact("Folder", &of.directory);
    fact("Begun", &moment(of.time.created));
    if let Some(origin) = &exported.origin {
        fact("Imported from", &origin.to_string());
    }
    let mut speaker = "";
    for entry in &exported.entries {
        let Some(text) = said(entry) else { continue };
        if speaker != entry.message.role {
            speaker = &entry.message.role;
            let who = if speaker == "user" {
                "You"
            } else {
                "Assistant"
            };
            let _ = write!(out, "\n## {who}, {}\n", moment(entry.message.timestamp));
        }
        let _ = write!(out, "\n{text}\n");
    }
    out
}

/// Returns an entry's text; `None` if the page shows none either.
fn said(entry: &Entry) -> Option<String> {
    let message = &entry.message;
    let flag = |key: &str| message.metadata.get(key) == Some(&Value::Bool(true));
    let content = message.content.as_str();
    Some(match message.message_type.as_str() {
        "step" => return None,
        "text" if flag("synthetic") || flag("ignored") => return None,
        "text" if content.trim().is_empty() => return None,
        "text" => inert(&message_text(content)),
        "reasoning" if content.trim().is_empty() => return None,
        "reasoning" => folded("Thought", &inert(&message_text(content))),
        "tool_use" | "tool_result" | "tool_execution" => call(entry),
        "file" => format!("File: {}", code(content)),
        "error" => quoted(&format!("**Error:** {}", escaped(content))),
        _ if content.is_empty() => return None,
        _ => quoted(&escaped(content)),
    })
}

fn call(entry: &Entry) -> String {
    let metadata = &entry.message.metadata;
    let text = |key: &str| metadata.get(key).and_then(Value::as_str);
    let tool = text("tool_name").unwrap_or("tool");
    let input = metadata.get("input").unwrap_or(&Value::Null);
    let argument = |key: &&str| input.get(*key).and_then(Value::as_str);
    let names = [
        "command",
        "filePath",
        "path",
        "pattern",
        "url",
        "query",
        "description",
    ];
    let about = names
        .iter()
        .find_map(argument)
        .or(text("summary"))
        .unwrap_or(&entry.message.content);
    let about: String = name(about.lines().next().unwrap_or_default());
    let about: String = about.chars().take(MAX_ABOUT).collect();
    let failed = metadata.get("is_error") == Some(&Value::Bool(true));
    let mark = if failed { "✗" } else { "✓" };
    // A line of HTML contains no Markdown.
    let title = format!(
        "{mark} <code>{}</code> {}",
        entities(&name(tool)),
        entities(&about)
    );
    let command = argument(&"command").filter(|command| command.contains('\n'));
    let mut body: Vec<String> = command.map(|it| fenced(it, "sh")).into_iter().collect();
    body.extend(outcome(entry, input, failed));
    let body = body.join("\n");
    format!("<details>\n<summary>{title}</summary>\n\n{body}\n</details>")
}

/// Returns the result of a call.
fn outcome(entry: &Entry, input: &Value, failed: bool) -> Vec<String> {
    let metadata = &entry.message.metadata;
    let changes = metadata.get("changes").and_then(Value::as_array);
    let all = metadata
        .get("details")
        .into_iter()
        .chain(changes.into_iter().flatten());
    let details = all.filter_map(|it| serde_json::from_value(it.clone()).ok());
    let mut parts: Vec<String> = details.map(|it| detail(&it)).collect();
    let output = metadata.get("output").map(|output| match output {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    if parts.is_empty() {
        if input.as_object().is_some_and(|fields| !fields.is_empty()) {
            let input = serde_json::to_string_pretty(input).unwrap_or_default();
            parts.push(fenced(&input, "json"));
        }
        parts.extend(output.map(|text| fenced(&text, "")));
    } else if failed {
        parts.extend(output.map(|text| fenced(&text, "")));
    }
    parts
}

fn detail(details: &Details) -> String {
    match details {
        Details::Diff {
            old_content,
            new_content,
            path,
        } => {
            let path = name(path.as_deref().unwrap_or("file"));
            if old_content.len().max(new_content.len()) > MAX_DIFFED {
                return format!("{} changed; it is too large to be shown.\n", code(&path));
            }
            if old_content == new_content {
                return fenced(new_content, "text");
            }
            let diff = TextDiff::from_lines(old_content.as_str(), new_content.as_str());
            let text = diff.unified_diff().header(&path, &path).to_string();
            fenced(&text, "diff")
        }
        Details::FileList { files } => files
            .iter()
            .map(|file| format!("- {}\n", code(file)))
            .collect(),
        Details::CommandOutput {
            stdout,
            stderr,
            exit_code,
        } => {
            let texts = [stdout, stderr].into_iter().filter(|text| !text.is_empty());
            let mut out: String = texts.map(|text| fenced(text, "text")).collect();
            if let Some(exit) = exit_code.filter(|exit| *exit != 0) {
                let _ = writeln!(out, "\nExit code {exit}");
            }
            out
        }
    }
}

fn folded(title: &str, body: &str) -> String {
    format!("<details>\n<summary>{title}</summary>\n\n{body}\n\n</details>")
}

/// Puts a text in a fence that is longer than any run of backticks in it.
fn fenced(text: &str, language: &str) -> String {
    let text = safe(text, false);
    let fence = "`".repeat((longest_run(&text) + 1).max(3));
    let end = if text.ends_with('\n') || text.is_empty() {
        ""
    } else {
        "\n"
    };
    format!("{fence}{language}\n{text}{end}{fence}\n")
}

/// Formats inline code.
fn code(text: &str) -> String {
    let text = name(text);
    let mark = "`".repeat(longest_run(&text) + 1);
    if text.starts_with('`') || text.ends_with('`') || text.is_empty() {
        format!("{mark} {text} {mark}")
    } else {
        format!("{mark}{text}{mark}")
    }
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default()
}

fn quoted(text: &str) -> String {
    text.trim_end()
        .lines()
        .map(|line| match line {
            "" => ">".to_owned(),
            line => format!("> {line}"),
        })
        .collect::<Vec<_>>()
        .join("\n")
}

/// Escapes a text for HTML.
fn entities(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Escapes a text for Markdown.
fn escaped(text: &str) -> String {
    let text = safe(text, false);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// Quotes a message, without HTML and images, and with plain code.
fn message_text(content: &str) -> String {
    quoted(&plain_code(&safe(content, false)))
}

/// Removes links to anything but the web from Markdown, as it is in the file: a text that is quoted afterwards may be parsed
/// differently.
fn inert(text: &str) -> String {
    let mut text = text.to_owned();
    // An escape changes the rest: `\[a][b]` leaves `[b]`, which may be a link itself.
    for _ in 0..MAX_PASSES {
        match escaped_links(&text) {
            Some(escaped) => text = escaped,
            None => return text,
        }
    }
    // Unlike a backslash, an entity does not depend on the characters before it.
    text.replace('[', "&#91;").replace('<', "&lt;")
}

/// Escapes what a parser finds; `None` if it finds nothing.
fn escaped_links(text: &str) -> Option<String> {
    let parser = Parser::new_ext(text, Options::ENABLE_TABLES);
    let definitions = parser.reference_definitions().iter();
    // Another message may refer to a definition.
    let definitions = definitions.filter(|(_, definition)| !is_web(&definition.dest));
    let mut links: BTreeSet<usize> = definitions.map(|(_, it)| it.span.start).collect();
    for (event, range) in parser.into_offset_iter() {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. })
                if !is_web(&dest_url) =>
            {
                links.insert(range.start);
            }
            _ => {}
        }
    }
    let code = code_ranges(text, QUOTE);
    let is_code = |at: usize| {
        let behind = code.partition_point(|range| range.end <= at);
        code.get(behind).is_some_and(|range| range.contains(&at))
    };
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match c {
            '!' | '[' if links.contains(&at) && !is_code(at) => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    (out.len() != text.len()).then_some(out)
}

fn is_web(address: &str) -> bool {
    let address = address.to_ascii_lowercase();
    let schemes = ["http://", "https://", "mailto:"];
    schemes.iter().any(|scheme| address.starts_with(scheme))
}

fn moment(at: Millis) -> String {
    let time = i64::try_from(at).unwrap_or_default();
    let time = jiff::Timestamp::from_millisecond(time).unwrap_or_default();
    time.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_of_a_text_stays_without_html_pictures_and_links_that_run() {
        for (text, shown) in [
            ("**bold** and `<b>` stay", "**bold** and `<b>` stay"),
            ("<script>x</script>", "&lt;script>x&lt;/script>"),
            ("```\n<b>\n```", "```\n<b>\n```"),
            ("[a](https://x.y)", "[a](https://x.y)"),
            ("[a](javascript:x)", "\\[a](javascript:x)"),
            ("[a](JaVaScript:x)", "\\[a](JaVaScript:x)"),
            ("![a](https://x.y/z.png)", "&#33;[a](https://x.y/z.png)"),
            (
                "![a](data:image/svg+xml,x)",
                "&#33;\\[a](data:image/svg+xml,x)",
            ),
            ("```rs\n<b>", "&#96;&#96;&#96;rs\n&lt;b>"),
            ("~~~ rs\n<b>\n```\n~~~~ \t", "````rs\n<b>\n```\n````"),
            ("a | `b|<c>` `<d>", "a | &#96;b|&lt;c>&#96; &#96;&lt;d>"),
            ("<javascript:x>", "&lt;javascript:x>"),
            ("\u{1b}[2J\u{202e}x", "␛[2J\\u202ex"),
        ] {
            assert_eq!(inert(&plain_code(&safe(text, false))), shown);
        }
    }

    /// Parses texts as they are in a file, one after another, and returns what a viewer would open or run.
    fn live(texts: &[&str]) -> Vec<String> {
        let texts = texts.iter().map(|text| inert(&message_text(text)));
        let file = texts.collect::<Vec<_>>().join("\n\n");
        let events = Parser::new_ext(&file, Options::all());
        events
            .filter_map(|event| match event {
                Event::Start(Tag::Link { dest_url, .. }) if !is_web(&dest_url) => {
                    Some(dest_url.to_string())
                }
                Event::Start(Tag::Image { dest_url, .. }) => Some(dest_url.to_string()),
                Event::Html(html) | Event::InlineHtml(html) => Some(html.to_string()),
                _ => None,
            })
            .collect()
    }

    /// Escaping one link may make another one of what is left.
    #[test]
    fn no_link_that_runs_is_left_in_the_file() {
        let nested = |n: usize| format!("{}a{}", "[".repeat(n), "](javascript:x)".repeat(n));
        for texts in [
            &["[click][x] [x] [x][] ![img][x]\n\n[x]: javascript:alert(1)"] as &[&str],
            &["[a [b](javascript:alert(2)) c](javascript:alert(3))"],
            &["[x]: javascript:1\n[x]: file:///etc/passwd", "[click][x]"],
            &["[click][x]", "- a\n\n  [x]: <javascript:1>\n  'title'"],
            &["[![a][y]][x]\n\n[x]: javascript:1\n[y]: data:image/png,x"],
            &["[a](&#106;avascript:1) [b]( javascript:1) [c](<javascript:1>)"],
            // In a quote this is no code.
            &["\t<script>x</script>"],
            &["a\n\n \t<b onclick=x>"],
            &[&nested(3)],
            &[&nested(40)],
        ] {
            assert_eq!(live(texts), Vec::<String>::new(), "{texts:?}");
        }
        // What is for reading stays.
        let text = "[a][x] and `[b](javascript:1)`\n\n[x]: https://x.y\n\n- a\n  ```\n  <b>\n  ```";
        assert_eq!(inert(&message_text(text)), quoted(text));
    }

    const HOSTILE: [&str; 34] = [
        "```",
        "````",
        "~~~",
        "`",
        "``",
        "\n",
        "\n",
        "\n\n",
        " ",
        "    ",
        "\t",
        " \t ",
        "\\",
        "> ",
        "- ",
        "1. ",
        "|",
        "-|-\n",
        "x",
        "info",
        "<img src=x onerror=alert(1)>",
        "<!--",
        "-->",
        "<pre>",
        "</details>",
        "![i](http://x/p)",
        "![a][b]",
        "[b]: http://x/p",
        "[a](",
        ")",
        "\r",
        "\u{2028}",
        "\u{a0}",
        "\u{b}",
    ];

    /// Returns what is neither in a block of plain fences nor in a span of one line.
    fn outside_of_code(text: &str) -> String {
        let mut out = String::new();
        let mut at = 0;
        for range in code_ranges(text, QUOTE) {
            out.push_str(&text[at..range.start]);
            at = range.end;
        }
        out + &text[at..]
    }

    /// A closing fence may be followed by blanks and tabs, which this parser takes for content.
    #[test]
    fn no_renderer_takes_text_for_code_that_another_runs() {
        let hostile = "<img src=x onerror=alert(1)> ![i](http://x/p)";
        for before in [
            "```\nx\n``` \t \n",
            "``` a`b\n",
            "- ```\n",
            "1. a\n\n   ```\n   x\n\n",
            "\t```\n",
            "`a\n\n",
        ] {
            let file = inert(&message_text(&format!("{before}{hostile}")));
            assert!(!file.contains("<img") && !file.contains("!["), "{file}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_html_and_no_image_of_any_text_is_left(
            picks in proptest::collection::vec(0..HOSTILE.len(), 0..24),
        ) {
            let text: String = picks.iter().map(|at| HOSTILE[*at]).collect();
            proptest::prop_assert_eq!(live(&[&text]), Vec::<String>::new(), "{:?}", text);
            let file = inert(&message_text(&text));
            let outside = outside_of_code(&file);
            for mark in ["<", "![", "```", "~~~"] {
                proptest::prop_assert!(!outside.contains(mark), "{:?}: {}", text, file);
            }
        }
    }

    #[test]
    fn nothing_of_a_text_ends_what_it_stands_in() {
        assert_eq!(fenced("a", "sh"), "```sh\na\n```\n");
        assert_eq!(fenced("````\nb\n", ""), "`````\n````\nb\n`````\n");
        assert_eq!(quoted("# You\n\n</details>"), "> # You\n>\n> </details>");
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(escaped("<b> *x* [y](z)"), "&lt;b&gt; \\*x\\* \\[y\\](z)");
    }
}

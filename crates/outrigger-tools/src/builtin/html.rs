//! Converts web pages to Markdown or plain text.

use htmd::HtmlToMarkdown;
use htmd::options::{BulletListMarker, HrStyle, Options};

// Elements whose content is not displayed.
const UNSEEN: &[&str] = &[
    "script", "style", "noscript", "iframe", "object", "embed", "template", "svg", "head",
];
// Elements that do not start a new line.
const INLINE: &[&str] = &[
    "a", "abbr", "b", "bdi", "bdo", "button", "cite", "code", "data", "del", "dfn", "em", "font",
    "i", "input", "ins", "kbd", "label", "mark", "q", "s", "samp", "small", "span", "strong",
    "sub", "sup", "time", "tt", "u", "var", "wbr",
];
// Elements that often or always lack an end tag: they do not nest.
const FLAT: &[&str] = &[
    "area", "base", "br", "col", "dd", "dt", "embed", "hr", "img", "input", "li", "link", "meta",
    "option", "p", "param", "source", "td", "th", "tr", "track", "wbr",
];
// The converter is recursive; a page nested deeper than any real one would exhaust the stack.
const MAX_DEPTH: i64 = 300;

/// Converts a page to Markdown, or to plain text if that fails.
pub(super) fn markdown(page: &str) -> String {
    if depth(page) > MAX_DEPTH {
        return plain(page);
    }
    let converter = HtmlToMarkdown::builder()
        .skip_tags(vec![
            "script", "style", "meta", "link", "template", "iframe", "object", "embed", "svg",
        ])
        .options(Options {
            hr_style: HrStyle::Dashes,
            bullet_list_marker: BulletListMarker::Dash,
            ..Options::default()
        })
        .build();
    converter.convert(page).unwrap_or_else(|_| plain(page))
}

/// Returns the displayed text. Block elements start a new line.
pub(super) fn plain(page: &str) -> String {
    let mut out = String::new();
    let mut hidden: Option<String> = None;
    for piece in pieces(page) {
        match piece {
            Piece::Text(text) if hidden.is_none() => out.push_str(&decode(text)),
            Piece::Text(_) => {}
            Piece::Tag { name, closes } => {
                match &hidden {
                    Some(outer) if closes && *outer == name => hidden = None,
                    Some(_) => {}
                    None if !closes && UNSEEN.contains(&name.as_str()) => {
                        hidden = Some(name.clone())
                    }
                    None => {}
                }
                if !INLINE.contains(&name.as_str()) {
                    out.push('\n');
                }
            }
        }
    }
    let lines = out
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

enum Piece<'a> {
    Text(&'a str),
    Tag { name: String, closes: bool },
}

// Splits a page, well enough for text: comments are dropped, tags are separated from text.
fn pieces(page: &str) -> Vec<Piece<'_>> {
    let mut out = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        let (text, tag) = rest.split_at(at);
        if !text.is_empty() {
            out.push(Piece::Text(text));
        }
        if tag.starts_with("<!--") {
            rest = tag
                .find("-->")
                .and_then(|end| tag.get(end + 3..))
                .unwrap_or("");
            continue;
        }
        let closes = tag.starts_with("</");
        let name: String = tag
            .trim_start_matches(['<', '/'])
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '-')
            .collect();
        let Some(end) = tag_end(tag).filter(|_| !name.is_empty() || tag.starts_with("<!")) else {
            out.push(Piece::Text("<"));
            rest = tag.get(1..).unwrap_or("");
            continue;
        };
        rest = tag.get(end..).unwrap_or("");
        let name = name.to_lowercase();
        if !closes && matches!(name.as_str(), "script" | "style") {
            // Their content is not markup: continue at the end tag.
            let lower = rest.to_ascii_lowercase();
            let to = lower.find(&format!("</{name}")).unwrap_or(rest.len());
            rest = rest.get(to..).unwrap_or("");
        }
        if !name.is_empty() {
            out.push(Piece::Tag { name, closes });
        }
    }
    if !rest.is_empty() {
        out.push(Piece::Text(rest));
    }
    out
}

// Returns the end of a tag; `>` in a quoted value does not end it.
fn tag_end(tag: &str) -> Option<usize> {
    let mut quote = None;
    for (at, b) in tag.bytes().enumerate() {
        match (quote, b) {
            (None, b'>') => return Some(at + 1),
            (None, b'"' | b'\'') => quote = Some(b),
            (Some(q), b) if q == b => quote = None,
            _ => {}
        }
    }
    None
}

fn depth(page: &str) -> i64 {
    let (mut now, mut most) = (0i64, 0i64);
    for piece in pieces(page) {
        if let Piece::Tag { name, closes } = piece
            && !FLAT.contains(&name.as_str())
        {
            now = (now + if closes { -1 } else { 1 }).max(0);
            most = most.max(now);
        }
    }
    most
}

fn decode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let entity = rest[1..].split_once(';').map(|(name, _)| name);
        match entity.filter(|name| name.len() <= 10).and_then(character) {
            Some(c) => {
                out.push(c);
                rest = rest.split_once(';').map_or("", |(_, behind)| behind);
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn character(entity: &str) -> Option<char> {
    if let Some(code) = entity.strip_prefix('#') {
        let number = match code.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => code.parse().ok()?,
        };
        return char::from_u32(number).filter(|c| *c != '\0');
    }
    Some(match entity {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "ndash" => '–',
        "mdash" => '—',
        "hellip" => '…',
        "copy" => '©',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<html><head><title>T</title><style>.x{}</style><script>var a='<p>'</script></head><body><h1>Head</h1><p>Para <b>bold</b> <a href=\"/l?a>b\">link</a> &amp; more</p><ul><li>one</li><li>two<ul><li>n</li></ul></li></ul><!-- <p>no</p> --><pre><code class=\"language-js\">x = 1\ny = 2</code></pre><hr><blockquote>q</blockquote><ol><li>1st</li></ol></body></html>";

    #[test]
    fn markdown_as_opencode_makes_it() {
        insta::assert_snapshot!(markdown(PAGE), @r"
        T

        # Head

        Para **bold** [link](/l?a>b) & more

        -   one
        -   two
            -   n

        ```js
        x = 1
        y = 2
        ```

        - - -

        > q

        1.  1st
        ");
    }

    #[test]
    fn plain_text_is_what_a_reader_sees() {
        insta::assert_snapshot!(plain(PAGE), @r"
        Head
        Para bold link & more
        one
        two
        n
        x = 1
        y = 2
        q
        1st
        ");
        assert_eq!(
            plain("a < b &lt;c&gt; &#228;&#x41; &nope; AT&T"),
            "a < b <c> äA &nope; AT&T"
        );
        assert_eq!(plain("<script>x"), "");
    }

    #[test]
    fn a_page_that_is_nested_without_end_is_no_trouble() {
        assert_eq!(markdown(&"<div>".repeat(200_000)), "");
        assert!(depth(&"<p>x".repeat(5000)) == 0);
    }

    proptest::proptest! {
        #[test]
        fn no_page_panics(page in "[a-z<>/!\"'&;#é -]{0,120}") {
            let _ = (plain(&page), depth(&page));
        }
    }
}

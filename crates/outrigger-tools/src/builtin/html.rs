//! Converts web pages to Markdown or plain text. Pages are strangers' input: everything here takes time that is linear in
//! their size, and the Markdown converter, which is recursive and in parts quadratic, gets what [`balanced`] lets through.

mod balanced;

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
/// Converts a page to Markdown, or to plain text if that fails.
pub(super) fn markdown(page: &str) -> String {
    let Some(page) = balanced::balanced(page) else {
        return plain(page);
    };
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
    converter.convert(&page).unwrap_or_else(|_| plain(&page))
}

/// Returns the displayed text. Block elements start a new line.
pub(super) fn plain(page: &str) -> String {
    let mut out = String::new();
    let mut hidden: Option<String> = None;
    for piece in pieces(page) {
        match piece {
            Piece::Text(text) if hidden.is_none() => out.push_str(&decode(text)),
            Piece::Text(_) => {}
            Piece::Tag { name, closes, .. } => {
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
    out.lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

enum Piece<'a> {
    Text(&'a str),
    Tag {
        name: String,
        closes: bool,
        /// What is between the name and the end.
        attributes: &'a str,
    },
}

// Splits a page, well enough for text: comments are dropped, tags are separated from text.
fn pieces(page: &str) -> Vec<Piece<'_>> {
    let mut out = Vec::new();
    let mut rest = page;
    // After a quote that nothing closes, the rest would be searched to its end from each tag.
    let mut quotes = true;
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
        let inner = tag.get(1..).unwrap_or("");
        let closes = inner.starts_with('/');
        let inner = inner.strip_prefix('/').unwrap_or(inner);
        let length = inner
            .bytes()
            .take_while(|b| b.is_ascii_alphanumeric() || *b == b'-');
        let (name, behind) = inner.split_at(length.count());
        if name.is_empty() && !tag.starts_with("<!") {
            out.push(Piece::Text("<"));
            rest = tag.get(1..).unwrap_or("");
            continue;
        }
        let quoted = if quotes { tag_end(behind) } else { None };
        quotes &= quoted.is_some();
        let Some(end) = quoted.or_else(|| behind.find('>').map(|at| at + 1)) else {
            rest = tag;
            break;
        };
        let attributes = behind.get(..end - 1).unwrap_or("");
        rest = behind.get(end..).unwrap_or("");
        let name = name.to_ascii_lowercase();
        if !closes && matches!(name.as_str(), "script" | "style") {
            // Their content is not markup: continue at the end tag.
            rest = rest.get(end_of(rest, &name)..).unwrap_or("");
        }
        if !name.is_empty() {
            out.push(Piece::Tag {
                name,
                closes,
                attributes,
            });
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

// Returns where the end tag of an element is.
fn end_of(text: &str, name: &str) -> usize {
    let mut ends = text.match_indices("</").map(|(at, _)| at);
    let is_its = |at: &usize| {
        text.get(at + 2..at + 2 + name.len())
            .is_some_and(|it| it.eq_ignore_ascii_case(name))
    };
    ends.find(is_its).unwrap_or(text.len())
}

// Maximum length of the name or number of a character.
const MAX_ENTITY: usize = 10;

fn decode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let mut letters = rest[1..].char_indices().take(MAX_ENTITY + 1);
        let end = letters.find(|(_, c)| *c == ';').map(|(at, _)| at);
        match end.and_then(|end| character(&rest[1..=end])) {
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

    /// Each would overflow the stack, or take hours, if its nesting or its rest were looked at again and again.
    #[test]
    fn a_page_that_is_hostile_is_no_trouble() {
        let tags = |it: &str| it.repeat(200_000 / it.len());
        assert_eq!(markdown(&"<div>".repeat(200_000)), "");
        for unit in [
            "<div></x>",
            "<div></table>",
            "<a x=\"",
            "<a x=\"'>",
            "<script></script>",
            "<script>",
            "<",
            "<!",
            "</",
            "<!--",
            "&",
            "&amp",
            "<b a=1><p>",
            "<li>",
            "<ol><li>",
            "<blockquote>\n",
            "<pre>\n<blockquote>",
            "<table>x<td>",
            "<table><tr><b></table>",
            "x\n",
        ] {
            let page = tags(unit);
            let _ = (plain(&page), markdown(&page));
        }
        for unit in [
            "<b a=1><p>",
            "<li>x",
            "<ol><li>",
            "<table>x<i></i>",
            "<a><table><td></a>",
        ] {
            let _ = markdown(&unit.repeat(6000));
        }
    }

    #[test]
    fn markup_of_the_web_is_read_as_browsers_read_it() {
        for (page, want) in [
            ("<p>one<p>two</x>three</p>", "one\n\ntwothree"),
            (
                "<ul><li>a<li>b<ul><li>c</ul><li>d</ul>",
                "-   a\n-   b\n    -   c\n-   d",
            ),
            (
                "<b>bold <b>more</b> still</b> not",
                "**bold more still** not",
            ),
            ("<p><b>x<div>y</div>", "**x**\n\ny"),
            (
                "<IMG SRC='/a.png' alt=Alt><a href=/x title=\"T\">l</a>",
                "![Alt](/a.png)[l](/x \"T\")",
            ),
            ("a<br>b < c &lt;d&gt;", "a  \nb < c \\<d>"),
            (
                "<table><tr><th>h<th>i<tr><td>1<td>2</table>",
                "| h | i |\n| - | - |\n| 1 | 2 |",
            ),
            ("<section><h2>T</h2><nav>n</nav></section>", "## T\n\nn"),
        ] {
            assert_eq!(markdown(page), want, "{page}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_page_panics(page in "[a-z<>/!\"'&;#é -]{0,120}") {
            let _ = (plain(&page), markdown(&page));
        }
    }
}

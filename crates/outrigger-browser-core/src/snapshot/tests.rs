use alloc::string::ToString;
use alloc::vec;

use proptest::prelude::*;

use super::references::number;
use super::*;

fn node(depth: usize, id: i64, role: &str, name: &str) -> Node {
    Node {
        depth,
        key: Key {
            document: "d1".into(),
            node: id,
        },
        role: role.into(),
        name: name.into(),
        ..Node::default()
    }
}

fn shop() -> Vec<Node> {
    vec![
        node(0, 1, "main", "Shop"),
        node(1, 2, "generic", ""),
        node(2, 3, "heading", "Your cart"),
        node(3, 4, "text", "Your cart"),
        node(2, 5, "paragraph", ""),
        node(3, 6, "text", "Two "),
        node(3, 7, "text", "items"),
        Node {
            value: Some("A\nB".into()),
            states: vec!["focused".into()],
            ..node(2, 8, "textbox", "Code")
        },
        Node {
            actionable: true,
            ..node(2, 9, "generic", "")
        },
        node(3, 10, "text", "More \"here\""),
        Node {
            field: Some(FieldKind::Password),
            ..node(2, 11, "textbox", "Password")
        },
    ]
}

fn snapshot(nodes: Vec<Node>, references: &mut References) -> Snapshot {
    Snapshot::of("http://shop/", "Shop", nodes, references).0
}

#[test]
fn a_page_in_lines() {
    let mut references = References::default();
    let made = snapshot(shop(), &mut references);
    let want = "e1 main \"Shop\"\n e2 heading \"Your cart\"\n \"Two items\"\n e3 textbox \"Code\" = \"A B\" focused\n \
                e4 generic \"More \\\"here\\\"\"\n e5 textbox \"Password\" (password)\n";
    assert_eq!(
        page(&made.lines, 1000, 1),
        Page {
            text: want.into(),
            number: 1,
            of: 1
        }
    );
    let below: Vec<String> = made.below(1).into_iter().map(|it| it.text).collect();
    assert_eq!(below.len(), 6, "{below:?}");
    assert!(made.below(99).is_empty());
}

#[test]
fn blocks_of_text_stay_apart_and_what_says_nothing_of_its_own_is_left_out() {
    let clicked = |depth, id, hint: &str| Node {
        actionable: true,
        hint: hint.into(),
        ..node(depth, id, "generic", "")
    };
    let nodes = vec![
        node(0, 1, "generic", ""),
        node(1, 2, "text", "Click \""),
        node(1, 3, "none", ""),
        node(2, 4, "text", "Like"),
        node(1, 5, "text", "\"."),
        node(0, 6, "generic", ""),
        node(1, 7, "text", "Ada"),
        node(1, 8, "text", "\n"),
        node(1, 9, "text", "12"),
        // Icons show the page's name; a word shows itself; an element around only one of them is omitted.
        clicked(0, 10, "#row"),
        clicked(1, 11, ".star"),
        clicked(0, 12, ".link"),
        node(1, 13, "text", "Massa"),
        clicked(0, 14, "text fill=red"),
        node(1, 15, "text", "7"),
    ];
    let made = snapshot(nodes, &mut References::default());
    let want = "\"Click \\\"Like\\\".\"\n\"Ada 12\"\ne1 generic (.star)\ne2 generic \"Massa\"\ne3 generic \"7\" (text fill=red)\n";
    assert_eq!(page(&made.lines, 1000, 1).text, want);
}

#[test]
fn a_part_is_read_in_full() {
    let long = "word ".repeat(200);
    let nodes = vec![
        node(0, 1, "main", "Shop"),
        Node {
            value: Some(long.clone()),
            ..node(1, 2, "textbox", "Note")
        },
    ];
    let made = snapshot(nodes, &mut References::default());
    assert!(page(&made.lines, 1000, 1).text.ends_with("…\"\n"));
    let below = made.below(2);
    assert_eq!(
        below[0].text,
        format!("textbox \"Note\" = {:?}", long.trim())
    );
}

#[test]
fn references_stay_with_their_elements_and_are_not_used_again() {
    let mut references = References::default();
    snapshot(shop(), &mut references);
    let mut nodes = shop();
    nodes.remove(7);
    nodes.insert(2, node(2, 50, "button", "New"));
    let again = snapshot(nodes, &mut references);
    let shown = page(&again.lines, 1000, 1).text;
    assert!(
        shown.contains("e2 heading")
            && shown.contains("e6 button \"New\"")
            && !shown.contains("e3 "),
        "{shown}"
    );
    assert_eq!(references.key("e3").unwrap().node, 8);
    references.forget("d1");
    assert_eq!(references.key("e3"), None);
    assert_eq!(
        references.of(&Key {
            document: "d2".into(),
            node: 8
        }),
        7
    );
    for (text, want) in [
        ("e12", Some(12)),
        ("[e12]", Some(12)),
        ("ref=e12", Some(12)),
        ("12", None),
        ("e", None),
    ] {
        assert_eq!(number(text), want, "{text}");
    }
}

#[test]
fn changes_are_fewer_words() {
    let mut references = References::default();
    let before = snapshot(shop(), &mut references);
    assert_eq!(changes(&before, &before).unwrap(), "");
    let mut nodes = shop();
    nodes[7].value = Some("C".to_string());
    nodes[6].name = "things".into();
    nodes.pop();
    nodes.push(node(2, 12, "button", "Pay"));
    let after = snapshot(nodes.clone(), &mut references);
    assert_eq!(
        changes(&before, &after).unwrap(),
        "+ \"Two things\"\n~ e3 textbox \"Code\" = \"C\" focused\n+ e6 button \"Pay\"\n- e5 textbox \"Password\" (password)\n- \"Two items\"\n"
    );
    for it in &mut nodes {
        it.key.document = "d2".into();
    }
    assert_eq!(changes(&before, &snapshot(nodes, &mut references)), None);
}

#[test]
fn a_long_page_is_read_by_pages_of_the_budget() {
    let mut references = References::default();
    let nodes = (0..1000)
        .map(|it| node(1, it, "link", &format!("Link number {it} é")))
        .collect();
    let made = snapshot(nodes, &mut references);
    let first = page(&made.lines, 200, 1);
    assert!(first.text.len() <= 200 * BYTES_PER_TOKEN && first.of > 10);
    let all: String = (1..=first.of)
        .map(|it| page(&made.lines, 200, it).text)
        .collect();
    assert_eq!(all, page(&made.lines, 100_000, 1).text);
    assert_eq!(page(&made.lines, 200, 999).number, first.of);
    // A line that is longer than a page is cut.
    let long = Line {
        depth: 0,
        reference: None,
        text: "é".repeat(5000),
        whole: None,
    };
    assert!(page(&[long], 1, 1).text.len() <= MIN_BUDGET * BYTES_PER_TOKEN);
}

proptest! {
    /// Whatever a page is, no page of its snapshot is larger than the budget, and none of its lines is lost.
    #[test]
    fn no_page_exceeds_its_budget(depths in prop::collection::vec((0..30usize, ".{0,40}"), 0..60), budget in 100..400usize) {
        let nodes = depths.iter().enumerate().map(|(id, (depth, name))| {
            node(*depth, i64::try_from(id).unwrap(), if id % 3 == 0 { "text" } else { "button" }, name)
        });
        let made = snapshot(nodes.collect(), &mut References::default());
        let of = page(&made.lines, budget, 1).of;
        let mut count = 0;
        for number in 1..=of {
            let page = page(&made.lines, budget, number);
            prop_assert!(page.text.len() <= budget * BYTES_PER_TOKEN);
            count += page.text.lines().count();
        }
        prop_assert_eq!(count, made.lines.len());
    }
}

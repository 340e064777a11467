use super::*;
use proptest::prelude::*;

const CODE: &str = "function a() {\n  one();\n  two();\n  three();\n}\n\nfunction b() {\n  one();\n  zwei();\n  three();\n}\n";

#[test]
fn rules_in_their_order() {
    let two_blocks = "if (x) {\n  call(1);\n  log();\n}\nif (x) {\n  call(2);\n  log();\n}\n";
    for (name, content, old, new, want) in [
        ("exact", "hi there\n", "hi there", "bye", "bye\n"),
        (
            "exact keeps a dollar",
            "x = 1\n",
            "x = 1",
            "$& $1",
            "$& $1\n",
        ),
        (
            "line-trimmed",
            "  alpha\n  beta\n",
            "alpha\nbeta",
            "gamma",
            "gamma\n",
        ),
        (
            "line-trimmed with line end",
            "f:\n    a()\n    b()\nend\n",
            "a()\nb()\n",
            "    c()\n",
            "f:\n    c()\nend\n",
        ),
        (
            "block anchor",
            CODE,
            "function a() {\n  one();\n  TWO();\n  three();\n}",
            "A",
            &CODE.replace("function a() {\n  one();\n  two();\n  three();\n}", "A"),
        ),
        (
            "block anchor takes the nearer one",
            two_blocks,
            "if (x) {\n  call(2)\n  log();\n}",
            "Z",
            "if (x) {\n  call(1);\n  log();\n}\nZ\n",
        ),
        (
            "white space in a line",
            "foo   bar    baz\nqux\n",
            "foo bar baz",
            "F",
            "F\nqux\n",
        ),
        (
            "white space in part of a line",
            "let x  =   1; // y\n",
            "x = 1",
            "x = 2",
            "let x = 2; // y\n",
        ),
        (
            "white space over lines",
            "a  b\n\tc   d\n",
            "a b\nc d",
            "z",
            "z\n",
        ),
        (
            "indentation",
            "        def f():\n            return 1\n",
            "def f():\n    return 1",
            "pass",
            "pass\n",
        ),
        ("escapes", "a\nb\tc\n", "a\\nb\\tc", "ok", "ok\n"),
        (
            "boundary",
            "hi there\n",
            "\n  hi there  \n",
            "trimmed",
            "trimmed\n",
        ),
        (
            "boundary that both have",
            "a\nhi\nb\n",
            "\n\nhi\n\n",
            "\n\nho\n\n",
            "a\nho\nb\n",
        ),
        (
            "crlf",
            "one\r\ntwo\r\nthree\r\n",
            "one\ntwo",
            "1\n2",
            "1\r\n2\r\nthree\r\n",
        ),
        (
            "crlf in the call, lf in the file",
            "one\ntwo\n",
            "one\r\ntwo",
            "1\r\n2",
            "1\n2\n",
        ),
        (
            "lf part of a mixed file",
            "a\r\nb\nc\nd\r\n",
            "b\nc",
            "x\ny",
            "a\r\nx\ny\nd\r\n",
        ),
        (
            "crlf under a lenient rule",
            "  one\r\n  two\r\n",
            "one\ntwo",
            "1\n2",
            "1\r\n2\r\n",
        ),
        (
            "last line without its end",
            "one\ntwo",
            "two\n",
            "2\n",
            "one\n2\n",
        ),
    ] {
        assert_eq!(
            replace(content, old, new, false).as_deref(),
            Ok(want),
            "{name}"
        );
    }
}

#[test]
fn refusals() {
    for (name, content, old, new, want) in [
        ("identical", "x", "x", "x", NoMatch::Identical),
        ("missing", "x = 1\n", "nothere", "y", NoMatch::Missing),
        ("twice", "x = 1\nx = 1\n", "x = 1", "y", NoMatch::Several),
        (
            "twice under a lenient rule",
            "  a\n  b\nx\n    a\n    b\n",
            "a\nb",
            "z",
            NoMatch::Several,
        ),
        (
            "block whose inside differs",
            "function a() {\n    if (x) {\n        foo();\n        bar();\n    }\n}\n",
            "function a() {\nwrong\nwrong2\n}",
            "N",
            NoMatch::Missing,
        ),
        (
            "two blocks that are as near",
            "s {\n  abc1\n}\ns {\n  abc2\n}\n",
            "s {\n  abc3\n}",
            "N",
            NoMatch::Several,
        ),
        ("white space alone", "a b\n", "\t\n", "x", NoMatch::Missing),
        ("nothing", "a", "", "x", NoMatch::Missing),
        (
            "closing braces only",
            "}\n}\n",
            "\n\n",
            "x",
            NoMatch::Missing,
        ),
    ] {
        assert_eq!(replace(content, old, new, false), Err(want), "{name}");
    }
}

#[test]
fn everywhere() {
    assert_eq!(
        replace("x = 1\nx = 1\n", "x = 1", "y", true).unwrap(),
        "y\ny\n"
    );
    assert_eq!(replace("aaa", "aa", "b", true).unwrap(), "ba");
    assert_eq!(
        replace("  a\n  b\nx\n    a\n    b\n", "a\nb", "z", true).unwrap(),
        "z\nx\nz\n"
    );
}

/// A hostile text would keep a processor busy for minutes.
#[test]
fn the_work_of_looking_for_a_text_is_bounded() {
    let lines = |count: usize, last: &str| {
        (0..count)
            .map(|it| format!("line {}\n", it % 7))
            .chain([last.to_owned()])
            .collect::<String>()
    };
    let begun = std::time::Instant::now();
    for (content, old) in [
        (
            lines(60_000, "z"),
            format!("line 0\n{}", lines(20_000, "line 6")),
        ),
        (
            "{\n  abcdefghij klmnop\n}\n".repeat(1000),
            format!("{{\n{}}}", "  x".repeat(390)),
        ),
    ] {
        assert_eq!(replace(&content, &old, "", false), Err(NoMatch::Missing));
    }
    assert!(begun.elapsed() < std::time::Duration::from_secs(20));
}

#[test]
fn a_large_file_of_braces_is_no_trouble() {
    let content = "  }\n".repeat(20_000);
    assert_eq!(
        replace(&content, "}\nx\ny\n}", "", false),
        Err(NoMatch::Missing)
    );
}

proptest! {
    // The law: exactly one place changes, and nothing around it.
    #[test]
    fn an_exact_text_is_replaced_once_and_the_rest_is_untouched(
        before in "[a-z \n]{0,40}", old in "[A-Z][A-Z\n ]{0,20}[A-Z]", after in "[a-z \n]{0,40}", new in "[0-9\n]{1,20}",
    ) {
        let content = format!("{before}{old}{after}");
        prop_assert_eq!(replace(&content, &old, &new, false).unwrap(), format!("{before}{new}{after}"));
    }

    // Whatever rule is used, the result is the file with one span replaced by the new text.
    #[test]
    fn a_lenient_rule_changes_one_span_too(
        lines in prop::collection::vec("[a-c]{1,3}( [a-c]{1,3})?", 1..12), at in 0usize..12, count in 1usize..5, indent in "[ \t]{0,4}",
    ) {
        let content: String = lines.iter().map(|l| format!("{indent}{l}\n")).collect();
        let at = at % lines.len();
        let old = lines[at..(at + count).min(lines.len())].join("\n");
        if let Ok(result) = replace(&content, &old, "NEW", false) {
            let (head, tail) = result.split_once("NEW").unwrap();
            prop_assert!(content.starts_with(head) && content.ends_with(tail));
            prop_assert!(head.len() + tail.len() < content.len());
        }
    }

    #[test]
    fn no_input_panics(content in "(?s).{0,80}", old in "(?s).{0,30}", new in "(?s).{0,10}", everywhere: bool) {
        let _ = replace(&content, &old, &new, everywhere);
    }
}

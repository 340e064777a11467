//! Where a prompt contains what the shell lines of its slash command printed, so that an export can leave it out.

use std::ops::Range;

use outrigger_protocol::Object;
use serde_json::{Value, json};

/// Key of a text part, and of the task of a subagent: `{length, ranges}`, in bytes. Not a key of OpenCode.
const PRINTED: &str = "outriggerPrinted";

/// Marks the ranges of a part's text, in order. Without any, the part stays as it is.
pub(crate) fn mark(part: &mut Object, text: &str, ranges: &[Range<usize>]) {
    if !ranges.is_empty() {
        let ranges = ranges.iter().map(|range| [range.start, range.end]);
        let ranges: Vec<[usize; 2]> = ranges.collect();
        let printed = json!({ "length": text.len(), "ranges": ranges });
        part.insert(PRINTED.to_owned(), printed);
    }
}

/// Returns the text of a part with something else in the place of what was printed; `None` if nothing was. If somebody changed the
/// text after it was marked, the ranges are unknown, and all of it is replaced.
#[must_use]
pub fn replaced(part: &Object, text: &str, with: &str) -> Option<String> {
    let printed = part.get(PRINTED)?;
    Some(without(printed, text, with).unwrap_or_else(|| with.to_owned()))
}

fn without(printed: &Value, text: &str, with: &str) -> Option<String> {
    if printed["length"].as_u64() != u64::try_from(text.len()).ok() {
        return None;
    }
    let mut out = String::new();
    let mut from = 0;
    for range in printed["ranges"].as_array()? {
        let at = |n: usize| usize::try_from(range[n].as_u64()?).ok();
        let (start, end) = (at(0)?, at(1)?);
        text.get(start..end)?;
        out.push_str(text.get(from..start)?);
        out.push_str(with);
        from = end;
    }
    out.push_str(text.get(from..)?);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_printed_is_replaced_and_nothing_else() {
        let text = "look at äKEY and KEY2.";
        let mut part = Object::new();
        assert_eq!(replaced(&part, text, "-"), None);
        mark(&mut part, text, &[]);
        assert_eq!(part, Object::new());
        mark(&mut part, text, &[8..13, 18..22]);
        assert_eq!(
            replaced(&part, text, "-").as_deref(),
            Some("look at - and -.")
        );
        // Changed by a plugin, or not what we wrote.
        assert_eq!(replaced(&part, "now KEY", "-").as_deref(), Some("-"));
        for ranges in [
            json!([[9, 11]]),
            json!([[5, 2]]),
            json!([[0, 99]]),
            json!(["x"]),
            json!(1),
        ] {
            part[PRINTED] = json!({ "length": text.len(), "ranges": ranges });
            assert_eq!(replaced(&part, text, "-").as_deref(), Some("-"));
        }
    }
}

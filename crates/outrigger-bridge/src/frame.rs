//! Reading frames of a controller (C9, 2): every field is known, and of its type.

use outrigger_protocol::invoke::{Cancel, ControllerFrame, Invoke};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::BridgeError;

/// A frame, or what to answer: with the id, where it could be read.
pub(crate) fn read(text: &str) -> Result<ControllerFrame, (Option<String>, BridgeError)> {
    let refuse = |id: Option<String>, why: String| (id, BridgeError::new("bridge.frame", why));
    let Once(value) = serde_json::from_str(text)
        .map_err(|error| refuse(None, format!("invalid frame: {error}")))?;
    let Value::Object(mut fields) = value else {
        return Err(refuse(None, "the frame is not an object".to_owned()));
    };
    // What is refused is written down, so nobody chooses how long it is.
    let id = fields.get("id").and_then(Value::as_str);
    let id = id.filter(|id| is_id(id)).map(str::to_owned);
    let kind = match fields.remove("type") {
        Some(Value::String(kind)) => kind,
        _ => return Err(refuse(id, "the frame has no `type`".to_owned())),
    };
    let body = Value::Object(fields);
    let wrong = |error: serde_json::Error| refuse(id.clone(), format!("{kind}: {error}"));
    let frame = match kind.as_str() {
        "invoke" => ControllerFrame::Invoke(serde_json::from_value::<Invoke>(body).map_err(wrong)?),
        "cancel" => ControllerFrame::Cancel(serde_json::from_value::<Cancel>(body).map_err(wrong)?),
        other => return Err(refuse(id, format!("there is no frame {other:?}"))),
    };
    let named = match &frame {
        ControllerFrame::Invoke(invoke) => &invoke.id,
        ControllerFrame::Cancel(cancel) => &cancel.id,
    };
    let session = match &frame {
        ControllerFrame::Invoke(invoke) => invoke.session_id.as_deref(),
        ControllerFrame::Cancel(_) => None,
    };
    if !is_id(named) || session.is_some_and(|session| !is_id(session)) {
        let why = "an id, of a call and of a session, has 1 to 128 characters";
        return Err(refuse(None, why.to_owned()));
    }
    Ok(frame)
}

fn is_id(text: &str) -> bool {
    !text.is_empty() && text.len() <= 128 && !text.chars().any(char::is_control)
}

/// A value in which no object has a key twice: what reads it elsewhere might see the other one.
struct Once(Value);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Once(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let Once(value) = map.next_value()?;
            if fields.contains_key(&key) {
                return Err(A::Error::custom(format!("the key {key:?} is there twice")));
            }
            fields.insert(key, value);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_strictly() {
        let long = format!(r#"{{"type":"cancel","id":"{}"}}"#, "x".repeat(129));
        let session = "x".repeat(129);
        let session = format!(
            r#"{{"type":"invoke","id":"1","tool":"read","params":{{}},"sessionId":"{session}"}}"#
        );
        for (text, want) in [
            (
                r#"{"type":"invoke","id":"1","tool":"read","params":{}}"#,
                None,
            ),
            (
                r#"{"type":"invoke","id":"1","tool":"read","params":{},"deadlineMs":5,"sessionId":"s"}"#,
                None,
            ),
            (r#"{"type":"cancel","id":"1"}"#, None),
            ("", Some(None)),
            ("[]", Some(None)),
            (r#"{"id":"1"}"#, Some(Some("1"))),
            (r#"{"type":5,"id":"1"}"#, Some(Some("1"))),
            (r#"{"type":"grant","id":"1"}"#, Some(Some("1"))),
            (
                r#"{"type":"invoke","id":"1","tool":"read"}"#,
                Some(Some("1")),
            ),
            (
                r#"{"type":"invoke","id":"1","tool":"read","params":{},"trusted":true}"#,
                Some(Some("1")),
            ),
            (
                r#"{"type":"invoke","id":"1","tool":"read","params":{},"deadlineMs":-1}"#,
                Some(Some("1")),
            ),
            (
                r#"{"type":"invoke","id":5,"tool":"read","params":{}}"#,
                Some(None),
            ),
            (r#"{"type":"cancel","id":""}"#, Some(None)),
            (r#"{"type":"cancel","id":"1","id":"1"}"#, Some(None)),
            (
                r#"{"type":"invoke","id":"1","tool":"read","params":{"filePath":"a","filePath":"b"}}"#,
                Some(None),
            ),
            (
                r#"{"type":"invoke","id":"1","tool":"read","params":[{"a":1.5,"a":null}]}"#,
                Some(None),
            ),
            (&long, Some(None)),
            (&session, Some(None)),
        ] {
            let got = read(text).err().map(|(id, refusal)| {
                assert_eq!(refusal.code, "bridge.frame");
                id
            });
            assert_eq!(got, want.map(|id| id.map(str::to_owned)), "{text}");
        }
    }
}

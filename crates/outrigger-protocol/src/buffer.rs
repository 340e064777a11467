//! A JSON value that is read before its type is known.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;
use serde::de::value::StrDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error as _, Expected, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde_json::{Error, Value};

/// A value with its strings where they were, if they can be borrowed. Types are read from it as from their text, except that an object is
/// always written as one: serde's other form, a list of its values, is refused.
///
/// Enums with a tag are read by way of it ([`crate::tagged`]), and so is what the kernel in a browser is asked: one form to read each type from
/// is a third of the code of three.
#[derive(Debug)]
pub enum Buffer<'de> {
    /// `null`.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Unsigned(u64),
    /// A negative whole number.
    Signed(i64),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(Cow<'de, str>),
    /// A list.
    List(Vec<Self>),
    /// An object: its fields as they were written, with those that are written twice.
    Fields(Fields<'de>),
}

/// The fields of an object.
pub type Fields<'de> = Vec<(Cow<'de, str>, Buffer<'de>)>;

/// Reads a value as a type.
///
/// # Errors
/// The value is not one of that type.
pub fn from_value<T: for<'de> Deserialize<'de>>(value: Value) -> Result<T, Error> {
    T::deserialize(Buffer::from(value))
}

/// Reads a text as a value of a type.
///
/// # Errors
/// The text is not JSON, or its value is not one of that type.
pub fn from_text<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, Error> {
    let buffer: Buffer<'de> = serde_json::from_slice(text.as_bytes())?;
    T::deserialize(buffer)
}

/// Returns a value in its JSON form. Plain data with string keys can always be written.
#[must_use]
pub fn to_value<T: Serialize + ?Sized>(it: &T) -> Value {
    // In a browser by way of its text: the code that writes types as text is there anyway, and the module is loaded each time that a worker wakes.
    if cfg!(target_arch = "wasm32") {
        let text = serde_json::to_string(it).unwrap_or_default();
        return from_text(&text).unwrap_or_default();
    }
    serde_json::to_value(it).unwrap_or_default()
}

impl Buffer<'_> {
    /// Removes a field of an object, and returns its value.
    #[must_use]
    pub fn take(&mut self, name: &str) -> Option<Self> {
        let Self::Fields(fields) = self else {
            return None;
        };
        let place = fields.iter().position(|(field, _)| field == name)?;
        Some(fields.remove(place).1)
    }

    /// Returns the text that it is.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    fn unexpected(&self) -> Unexpected<'_> {
        match self {
            Self::Null => Unexpected::Unit,
            Self::Bool(it) => Unexpected::Bool(*it),
            Self::Unsigned(it) => Unexpected::Unsigned(*it),
            Self::Signed(it) => Unexpected::Signed(*it),
            Self::Float(it) => Unexpected::Float(*it),
            Self::Text(it) => Unexpected::Str(it),
            Self::List(_) => Unexpected::Seq,
            Self::Fields(_) => Unexpected::Map,
        }
    }

    /// Returns the error of a value of another type than the expected one.
    pub(crate) fn refused(&self, expected: &dyn Expected) -> Error {
        Error::invalid_type(self.unexpected(), expected)
    }
}

impl From<Value> for Buffer<'_> {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(it) => Self::Bool(it),
            Value::Number(it) => match (it.as_u64(), it.as_i64()) {
                (Some(it), _) => Self::Unsigned(it),
                (None, Some(it)) => Self::Signed(it),
                (None, None) => Self::Float(it.as_f64().unwrap_or_default()),
            },
            Value::String(it) => Self::Text(it.into()),
            Value::Array(it) => Self::List(it.into_iter().map(Self::from).collect()),
            Value::Object(it) => {
                let fields = it.into_iter();
                Self::Fields(fields.map(|(key, it)| (key.into(), it.into())).collect())
            }
        }
    }
}

impl<'de> Deserialize<'de> for Buffer<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Filling)
    }
}

struct Filling;

impl<'de> Visitor<'de> for Filling {
    type Value = Buffer<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Buffer::Null)
    }
    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(Buffer::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, it: D) -> Result<Self::Value, D::Error> {
        Buffer::deserialize(it)
    }
    fn visit_newtype_struct<D: Deserializer<'de>>(self, it: D) -> Result<Self::Value, D::Error> {
        Buffer::deserialize(it)
    }
    fn visit_bool<E>(self, it: bool) -> Result<Self::Value, E> {
        Ok(Buffer::Bool(it))
    }
    fn visit_u64<E>(self, it: u64) -> Result<Self::Value, E> {
        Ok(Buffer::Unsigned(it))
    }
    fn visit_i64<E>(self, it: i64) -> Result<Self::Value, E> {
        Ok(u64::try_from(it).map_or(Buffer::Signed(it), Buffer::Unsigned))
    }
    fn visit_f64<E>(self, it: f64) -> Result<Self::Value, E> {
        Ok(Buffer::Float(it))
    }
    fn visit_str<E>(self, it: &str) -> Result<Self::Value, E> {
        Ok(Buffer::Text(it.to_owned().into()))
    }
    fn visit_borrowed_str<E>(self, it: &'de str) -> Result<Self::Value, E> {
        Ok(Buffer::Text(it.into()))
    }
    fn visit_string<E>(self, it: String) -> Result<Self::Value, E> {
        Ok(Buffer::Text(it.into()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::with_capacity(list.size_hint().unwrap_or_default().min(1024));
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(Buffer::List(values))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::with_capacity(map.size_hint().unwrap_or_default().min(1024));
        while let Some(Key(key)) = map.next_key()? {
            fields.push((key, map.next_value()?));
        }
        Ok(Buffer::Fields(fields))
    }
}

/// The name of a field.
pub(crate) struct Key<'de>(pub(crate) Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let key = Buffer::deserialize(deserializer)?;
        match key {
            Buffer::Text(key) => Ok(Self(key)),
            other => Err(D::Error::invalid_type(other.unexpected(), &"a string")),
        }
    }
}

macro_rules! by_deserialize_any {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.deserialize_any(visitor)
        })*
    };
}

macro_rules! by_deserialize_number {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self {
                Self::Unsigned(it) => visitor.visit_u64(it),
                Self::Signed(it) => visitor.visit_i64(it),
                Self::Float(it) => visitor.visit_f64(it),
                other => Err(other.refused(&visitor)),
            }
        })*
    };
}

/// Each kind of type is asked for what it is written as and for nothing else, which is what keeps the code of types small.
impl<'de> Deserializer<'de> for Buffer<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Null => visitor.visit_unit(),
            Self::Bool(it) => visitor.visit_bool(it),
            Self::Unsigned(it) => visitor.visit_u64(it),
            Self::Signed(it) => visitor.visit_i64(it),
            Self::Float(it) => visitor.visit_f64(it),
            Self::Text(_) => self.deserialize_string(visitor),
            Self::List(_) => self.deserialize_seq(visitor),
            Self::Fields(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Bool(it) => visitor.visit_bool(it),
            other => Err(other.refused(&visitor)),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_string(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Text(Cow::Borrowed(it)) => visitor.visit_borrowed_str(it),
            Self::Text(Cow::Owned(it)) => visitor.visit_string(it),
            other => Err(other.refused(&visitor)),
        }
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self {
            Self::Text(it) => visitor.visit_str(it),
            other => Err(other.refused(&visitor)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Null => visitor.visit_none(),
            other => visitor.visit_some(other),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::List(list) => {
                let length = list.len();
                let mut elements = Elements(list.into_iter());
                let read = visitor.visit_seq(&mut elements)?;
                match elements.0.len() {
                    0 => Ok(read),
                    left => Err(too_long(length, length - left)),
                }
            }
            other => Err(other.refused(&visitor)),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Fields(fields) => visitor.visit_map(Entries::of(fields)),
            other => Err(other.refused(&visitor)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let variant = match self {
            Self::Text(name) => Variant { name, value: None },
            Self::Fields(mut fields) if fields.len() == 1 => {
                let (name, value) = fields.remove(0);
                Variant {
                    name,
                    value: Some(value),
                }
            }
            Self::Fields(_) => {
                let expected = &"map with a single key";
                return Err(Error::invalid_value(Unexpected::Map, expected));
            }
            other => return Err(other.refused(&"string or map")),
        };
        visitor.visit_enum(variant)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }

    by_deserialize_any!(deserialize_unit deserialize_char deserialize_bytes deserialize_byte_buf);
    by_deserialize_number!(
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
        deserialize_f32 deserialize_f64
    );
}

/// In serde's words.
fn too_long(length: usize, expected: usize) -> Error {
    let expected = match expected {
        1 => "1 element in sequence".to_owned(),
        more => format!("{more} elements in sequence"),
    };
    Error::invalid_length(length, &expected.as_str())
}

struct Elements<'de>(std::vec::IntoIter<Buffer<'de>>);

impl<'de> SeqAccess<'de> for &mut Elements<'de> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        self.0.next().map(|it| seed.deserialize(it)).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct Entries<'de> {
    left: std::vec::IntoIter<(Cow<'de, str>, Buffer<'de>)>,
    value: Buffer<'de>,
}

impl<'de> Entries<'de> {
    fn of(fields: Fields<'de>) -> Self {
        Self {
            left: fields.into_iter(),
            value: Buffer::Null,
        }
    }

    /// Goes on to the next field, and returns its name. Here once, not in each type that is read.
    #[inline(never)]
    fn advance(&mut self) -> Option<Buffer<'de>> {
        let (key, value) = self.left.next()?;
        self.value = value;
        Some(Buffer::Text(key))
    }

    #[inline(never)]
    fn take(&mut self) -> Buffer<'de> {
        std::mem::replace(&mut self.value, Buffer::Null)
    }
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        self.advance().map(|key| seed.deserialize(key)).transpose()
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(self.take())
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.len())
    }
}

/// The variant of an enum: its name, and what is in it.
struct Variant<'de> {
    name: Cow<'de, str>,
    value: Option<Buffer<'de>>,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Error> {
        let variant = seed.deserialize(StrDeserializer::new(&self.name))?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        match self.value {
            None | Some(Buffer::Null) => Ok(()),
            Some(other) => Err(other.refused(&"unit")),
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        let absent = || Error::invalid_type(Unexpected::UnitVariant, &"newtype variant");
        seed.deserialize(self.value.ok_or_else(absent)?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, Error> {
        let absent = || Error::invalid_type(Unexpected::UnitVariant, &"tuple variant");
        self.value.ok_or_else(absent)?.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let absent = || Error::invalid_type(Unexpected::UnitVariant, &"struct variant");
        self.value.ok_or_else(absent)?.deserialize_map(visitor)
    }
}

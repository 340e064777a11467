//! Enums whose variant is named by a field, the tag: `{"kind": "tool_done", "effect": 7, …}`.
//!
//! Serde reads them into a buffer and each variant from that, which generates the code of all contained types again. [`tagged`] reads
//! them through [`Buffer`] instead, with the same values and errors; they are serialised as by serde.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use crate::buffer::{Buffer, Fields, Key};

pub(crate) use outrigger_tagged::tagged;

/// What an enum with a tag is read from, as one without: its tag is the name of its variant, and the other fields are in it.
pub(crate) struct Tagged<D> {
    tag: &'static str,
    from: D,
}

impl<D> Tagged<D> {
    pub(crate) fn new(tag: &'static str, from: D) -> Self {
        Self { tag, from }
    }
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Tagged<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, D::Error> {
        Err(D::Error::custom("only enums have tags"))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let fields = Reading {
            tag: self.tag,
            name,
            variants,
        };
        let variant = self.from.deserialize_any(fields)?;
        visitor.visit_enum(variant).map_err(D::Error::custom)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// A variant: its name, and the fields beside the tag.
struct Variant<'de> {
    name: &'static str,
    fields: Fields<'de>,
}

/// Reads the tag, wherever it stands, and keeps the other fields. What is wrong with it is said where it stands.
struct Reading {
    tag: &'static str,
    name: &'static str,
    variants: &'static [&'static str],
}

/// The tag itself: the name of a variant.
struct Tag(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Tag {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, tag: D) -> Result<&'static str, D::Error> {
        tag.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Tag {
    type Value = &'static str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("variant identifier")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<&'static str, E> {
        self.0
            .iter()
            .find(|it| **it == name)
            .copied()
            .ok_or_else(|| E::unknown_variant(name, self.0))
    }
}

impl<'de> Visitor<'de> for Reading {
    type Value = Variant<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "internally tagged enum {}", self.name)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Variant<'de>, A::Error> {
        let (mut name, mut fields) = (None, Fields::new());
        while let Some(Key(key)) = map.next_key()? {
            if key != self.tag {
                fields.push((key, map.next_value()?));
            } else if name.is_some() {
                return Err(A::Error::duplicate_field(self.tag));
            } else {
                name = Some(map.next_value_seed(Tag(self.variants))?);
            }
        }
        match name {
            Some(name) => Ok(Variant { name, fields }),
            None => Err(A::Error::missing_field(self.tag)),
        }
    }
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = serde_json::Error;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self), Self::Error> {
        let variant = seed.deserialize(StrDeserializer::new(self.name))?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = serde_json::Error;

    /// Further fields are ignored, as serde does.
    fn unit_variant(self) -> Result<(), Self::Error> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<S::Value, Self::Error> {
        seed.deserialize(Buffer::Fields(self.fields))
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        Err(Buffer::Fields(self.fields).refused(&visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        Buffer::Fields(self.fields).deserialize_map(visitor)
    }
}

#[cfg(test)]
pub(crate) mod tests;

//! Values that logs write in several ways, or under keys that other logs give other values to.
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A list, or nothing where something else stands, as where a `response` is a text.
#[derive(Debug)]
pub(super) struct List<T>(pub(super) Vec<T>);

/// An object, or nothing where something else stands.
#[derive(Debug)]
pub(super) struct Object<T>(pub(super) Option<Box<T>>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_any(Nested::<Vec<T>, true>(PhantomData))
            .map(|list| Self(list.unwrap_or_default()))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = deserializer.deserialize_any(Nested::<T, false>(PhantomData))?;
        Ok(Self(object.map(Box::new)))
    }
}

/// Takes lists only, or objects only.
struct Nested<T, const LIST: bool>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const LIST: bool> Visitor<'de> for Nested<T, LIST> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Option<T>, A::Error> {
        if LIST {
            return T::deserialize(SeqAccessDeserializer::new(items)).map(Some);
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<T>, A::Error> {
        if !LIST {
            return T::deserialize(MapAccessDeserializer::new(map)).map(Some);
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

/// How much a token counts in the loss; some write only whether it does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weight(pub(super) f64);

impl<'de> Deserialize<'de> for Weight {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WeightVisitor)
    }
}

struct WeightVisitor;

impl Visitor<'_> for WeightVisitor {
    type Value = Weight;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or true or false")
    }

    fn visit_bool<E>(self, counts: bool) -> Result<Weight, E> {
        Ok(Weight(f64::from(u8::from(counts))))
    }

    fn visit_f64<E>(self, weight: f64) -> Result<Weight, E> {
        Ok(Weight(weight))
    }

    fn visit_u64<E>(self, weight: u64) -> Result<Weight, E> {
        Ok(Weight(weight as f64))
    }

    fn visit_i64<E>(self, weight: i64) -> Result<Weight, E> {
        Ok(Weight(weight as f64))
    }
}

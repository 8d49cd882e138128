use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{Extra, Record};

/// Reads the tag first where it stands first, so that long token lists are not buffered.
impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RecordVisitor)
    }
}

struct RecordVisitor;

impl<'de> Visitor<'de> for RecordVisitor {
    type Value = Record;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record, which is a JSON object with a tag \"t\"")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Record, A::Error> {
        let Some(first) = map.next_key::<String>()? else {
            return Err(A::Error::missing_field("t"));
        };
        if first == "t" {
            let tag: String = map.next_value()?;
            return tagged(&tag, MapAccessDeserializer::new(map));
        }
        let mut fields = Extra::new();
        fields.insert(first, map.next_value()?);
        while let Some((key, value)) = map.next_entry::<String, Value>()? {
            fields.insert(key, value);
        }
        let Some(Value::String(tag)) = fields.shift_remove("t") else {
            return Err(A::Error::missing_field("t"));
        };
        tagged(&tag, Value::Object(fields)).map_err(A::Error::custom)
    }
}

fn tagged<'de, D: Deserializer<'de>>(tag: &str, fields: D) -> Result<Record, D::Error> {
    let record = match tag {
        "header" => Record::Header(Deserialize::deserialize(fields)?),
        "segment" => Record::Segment(Deserialize::deserialize(fields)?),
        "append" => Record::Append(Deserialize::deserialize(fields)?),
        "evict" => Record::Evict(Deserialize::deserialize(fields)?),
        "replace" => Record::Replace(Deserialize::deserialize(fields)?),
        "fork" => Record::Fork(Deserialize::deserialize(fields)?),
        "generation" => Record::Generation(Deserialize::deserialize(fields)?),
        "outcome" => Record::Outcome(Deserialize::deserialize(fields)?),
        _ => {
            let mut unknown = Extra::deserialize(fields)?;
            if unknown.contains_key("t") {
                return Err(D::Error::duplicate_field("t"));
            }
            unknown.shift_insert(0, "t".into(), tag.into());
            return Ok(Record::Unknown(unknown));
        }
    };
    if record.extra().contains_key("t") {
        return Err(D::Error::duplicate_field("t"));
    }
    Ok(record)
}

#[derive(Serialize)]
struct Tagged<'a, T> {
    t: &'a str,
    #[serde(flatten)]
    record: &'a T,
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let t = self.tag();
        match self {
            Self::Header(record) => Tagged { t, record }.serialize(serializer),
            Self::Segment(record) => Tagged { t, record }.serialize(serializer),
            Self::Append(record) => Tagged { t, record }.serialize(serializer),
            Self::Evict(record) => Tagged { t, record }.serialize(serializer),
            Self::Replace(record) => Tagged { t, record }.serialize(serializer),
            Self::Fork(record) => Tagged { t, record }.serialize(serializer),
            Self::Generation(record) => Tagged { t, record }.serialize(serializer),
            Self::Outcome(record) => Tagged { t, record }.serialize(serializer),
            Self::Unknown(fields) if fields.contains_key("t") => fields.serialize(serializer),
            Self::Unknown(_) => {
                Err(S::Error::custom("a record of unknown type needs its tag \"t\""))
            }
        }
    }
}

use super::LARGEST_SIZE;
use crate::error::TrainError;
use serde_json::{Map, Value};
use std::{collections::BTreeSet, path::Path};

/// The keys of a JSON object, with a record of which ones were looked at.
///
/// What nobody looked at changes the function in a way that nobody honours, so it is an error at
/// the end.
pub(super) struct Keys<'a> {
    path: &'a Path,
    prefix: String,
    map: Map<String, Value>,
    seen: BTreeSet<String>,
}

impl<'a> Keys<'a> {
    pub(super) fn parse(text: &str, path: &'a Path) -> Result<Self, TrainError> {
        let damaged = |message: String| TrainError::File { path: path.to_owned(), message };
        let value = serde_json::from_str(text)
            .map_err(|error| damaged(format!("not JSON: {error}: copy the file again")))?;
        match value {
            Value::Object(map) => {
                Ok(Self { path, prefix: String::new(), map, seen: BTreeSet::new() })
            }
            _ => Err(damaged("not a JSON object: give the config.json of a checkpoint".to_owned())),
        }
    }

    /// An error about a key of this object.
    pub(super) fn problem(&self, key: &str, problem: &str) -> TrainError {
        TrainError::ConfigKey {
            path: self.path.to_owned(),
            key: format!("{}{key}", self.prefix),
            problem: problem.to_owned(),
        }
    }

    /// The value of a key, `None` if it is absent or null.
    fn value(&mut self, key: &str) -> Option<Value> {
        self.seen.insert(key.to_owned());
        self.map.get(key).filter(|value| !value.is_null()).cloned()
    }

    fn read<T>(
        &mut self,
        key: &str,
        expected: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, TrainError> {
        let Some(value) = self.value(key) else {
            return Ok(None);
        };
        match read(&value) {
            Some(value) => Ok(Some(value)),
            None => Err(self.problem(key, &format!("is {value}, expected {expected}"))),
        }
    }

    pub(super) fn size(&mut self, key: &str) -> Result<Option<usize>, TrainError> {
        self.size_up_to(key, LARGEST_SIZE)
    }

    pub(super) fn size_up_to(
        &mut self,
        key: &str,
        most: usize,
    ) -> Result<Option<usize>, TrainError> {
        self.read(key, &format!("a whole number of at most {most}"), |value| {
            value.as_u64().and_then(|size| usize::try_from(size).ok()).filter(|size| *size <= most)
        })
    }

    pub(super) fn number(&mut self, key: &str) -> Result<Option<f64>, TrainError> {
        self.read(key, "a number", Value::as_f64)
    }

    pub(super) fn flag(&mut self, key: &str) -> Result<Option<bool>, TrainError> {
        self.read(key, "true or false", Value::as_bool)
    }

    pub(super) fn string(&mut self, key: &str) -> Result<Option<String>, TrainError> {
        self.read(key, "a string", |value| value.as_str().map(str::to_owned))
    }

    pub(super) fn strings(&mut self, key: &str) -> Result<Option<Vec<String>>, TrainError> {
        self.read(key, "a list of strings", |value| {
            let items = value.as_array()?;
            items.iter().map(|item| item.as_str().map(str::to_owned)).collect()
        })
    }

    pub(super) fn object(&mut self, key: &str) -> Result<Option<Self>, TrainError> {
        let map = self.read(key, "an object", |value| value.as_object().cloned())?;
        Ok(map.map(|map| Self {
            path: self.path,
            prefix: format!("{}{key}.", self.prefix),
            map,
            seen: BTreeSet::new(),
        }))
    }

    pub(super) fn required_size(&mut self, key: &str) -> Result<usize, TrainError> {
        self.size(key)?.ok_or_else(|| self.missing(key))
    }

    pub(super) fn required_number(&mut self, key: &str) -> Result<f64, TrainError> {
        self.number(key)?.ok_or_else(|| self.missing(key))
    }

    pub(super) fn missing(&self, key: &str) -> TrainError {
        self.problem(key, "is missing: the model cannot be built without it")
    }

    /// Accepts a key only with one of some values, under which it does not change the function.
    pub(super) fn only(&mut self, key: &str, allowed: &[Value]) -> Result<(), TrainError> {
        match self.value(key) {
            Some(value) if !allowed.contains(&value) => {
                let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
                let problem = format!("{value} is not supported, only {}", allowed.join(" or "));
                Err(self.problem(key, &problem))
            }
            _ => Ok(()),
        }
    }

    /// Accepts keys that do not change the function, whatever they say.
    pub(super) fn neutral(&mut self, keys: &[&str]) {
        self.seen.extend(keys.iter().map(|&key| key.to_owned()));
    }

    /// Refuses what nobody looked at.
    pub(super) fn finish(self) -> Result<(), TrainError> {
        match self.map.keys().find(|&key| !self.seen.contains(key)) {
            None => Ok(()),
            Some(key) => Err(self.problem(
                key,
                "is not known: it may change what the model computes, so it is not ignored; remove it if you are sure that it does not",
            )),
        }
    }
}

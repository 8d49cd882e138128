//! Units that are parts of messages.
use indexmap::IndexMap;
use pleach_tree::{Origin, Part, ReplacementKind, Role, Segment};
use rustc_hash::FxBuildHasher;

use super::Units;
use crate::core::wording;

/// What makes two parts of messages the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    role: Role,
    part: Option<Part>,
    text: String,
    result_of: Option<String>,
}

/// Every part of a message that a log holds, once, with the number that stands for it.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    parts: IndexMap<Key, Segment, FxBuildHasher>,
}

impl Messages {
    /// The number of a part; parts that say the same in the same role are one.
    pub(crate) fn unit(&mut self, segment: &Segment) -> u32 {
        let key = Key {
            role: segment.role,
            part: segment.part,
            text: segment.text.clone().unwrap_or_default(),
            result_of: segment.result_of.clone(),
        };
        let entry = self.parts.entry(key);
        let at = entry.index();
        entry.or_insert_with(|| Segment { text: None, result_of: None, ..segment.clone() });
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    fn key(&self, unit: u32) -> Option<&Key> {
        self.parts.get_index(unit as usize).map(|(key, _)| key)
    }

    fn text(&self, unit: u32) -> &str {
        self.key(unit).map_or("", |key| key.text.as_str())
    }
}

/// What a summariser's text is quoted as: all of it, or what stands between its summary tags.
fn quotable(text: &str) -> impl Iterator<Item = &str> {
    let inner = text
        .split_once("<summary>")
        .map(|(_, rest)| rest.split_once("</summary>").map_or(rest, |(inner, _)| inner));
    [Some(text), inner]
        .into_iter()
        .flatten()
        .map(str::trim)
        .filter(|text| text.len() >= wording::SHORTEST_QUOTE)
}

impl Units for Messages {
    const RUN: usize = 1;
    const SPLITS: bool = false;

    fn segments(&self, run: &[u32], _: bool) -> Vec<(Segment, usize)> {
        let segment = |&unit: &u32| {
            let (key, segment) = self.parts.get_index(unit as usize)?;
            let mut segment = Segment {
                text: Some(key.text.clone()),
                result_of: key.result_of.clone(),
                ..segment.clone()
            };
            // What stands in a prompt and was said by no call of the log was said elsewhere.
            if segment.origin == Origin::Policy {
                segment.origin = Origin::ExternalModel;
            }
            Some((segment, 1))
        };
        run.iter().filter_map(segment).collect()
    }

    fn stands_for(&self, new: u32, old: u32) -> Option<ReplacementKind> {
        let (new, old) = (self.key(new)?, self.key(old)?);
        if new.role != old.role || new.part != old.part || new.result_of != old.result_of {
            return None;
        }
        let starts = new.text.char_indices().nth(16).map(|(end, _)| &new.text[..end]);
        let cut = starts.is_some_and(|start| old.text.starts_with(start))
            && new.text.len() < old.text.len();
        match (cut, &new.result_of) {
            (true, _) => Some(ReplacementKind::Truncation),
            (false, Some(_)) => Some(ReplacementKind::Placeholder),
            (false, None) if new.text.len() < old.text.len() && new.text.len() <= 200 => {
                Some(ReplacementKind::Placeholder)
            }
            _ => None,
        }
    }

    fn is_result(&self, unit: u32) -> bool {
        self.key(unit).is_some_and(|key| key.result_of.is_some())
    }

    fn is_system(&self, unit: u32) -> bool {
        self.key(unit).is_some_and(|key| key.role == Role::System)
    }

    fn is_answer(&self, unit: u32) -> bool {
        self.key(unit).is_some_and(|key| key.role == Role::Assistant)
    }

    fn quotes(&self, run: &[u32], said: &[u32]) -> bool {
        let said = said
            .iter()
            .filter(|&&unit| self.key(unit).is_some_and(|key| key.part != Some(Part::Reasoning)));
        said.flat_map(|&unit| quotable(self.text(unit)))
            .any(|quote| run.iter().any(|&unit| self.text(unit).contains(quote)))
    }

    fn opens_turn(&self, unit: u32) -> bool {
        self.key(unit).is_some_and(|key| key.role != Role::Assistant)
    }
}

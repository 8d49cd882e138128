//! Keys of a record that this version does not know.
use serde_json::Value;
use strsim::osa_distance;

use super::{Extra, Record, Segment};

/// A key that is not known, and where it stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnknownKey {
    /// Path of the object that holds it, empty for the record itself.
    pub(crate) path: &'static str,
    /// Index in the list at that path, where it is one.
    pub(crate) index: Option<usize>,
    /// The key.
    pub(crate) key: String,
    /// The optional key that it is nearly the name of, and that is absent.
    pub(crate) nearly: Option<&'static str>,
}

impl UnknownKey {
    /// The key with its path.
    pub(crate) fn location(&self) -> String {
        match (self.path, self.index) {
            ("", _) => self.key.clone(),
            (path, Some(index)) => format!("{path}[{index}].{}", self.key),
            (path, None) => format!("{path}.{}", self.key),
        }
    }

    /// The record read with the key spelt as [`UnknownKey::nearly`] says.
    pub(crate) fn respelt(&self, record: &Record) -> Result<Record, serde_json::Error> {
        let mut value = serde_json::to_value(record)?;
        let object = match (self.path, self.index) {
            ("", _) => Some(&mut value),
            (path, None) => value.get_mut(path),
            (path, Some(index)) => value.get_mut(path).and_then(|list| list.get_mut(index)),
        };
        if let (Some(Value::Object(fields)), Some(known)) = (object, self.nearly)
            && let Some(value) = fields.shift_remove(&self.key)
        {
            fields.insert(known.to_owned(), value);
        }
        serde_json::from_value(value)
    }
}

/// Keys that begin so are a harness's own, and pass without a word.
const OWN: &str = "x_";

/// What harnesses of this project write beside the fields of a segment: whether a result is an
/// error, and whether a text is the list of tools.
const OF_SEGMENT: [&str; 2] = ["is_error", "tools"];
/// The parts of a reward.
const OF_OUTCOME: [&str; 1] = ["rewards"];

/// The keys of a record that are not known; with none beside the fields it costs next to nothing.
pub(crate) fn unknown(record: &Record) -> Vec<UnknownKey> {
    let mut found = Vec::new();
    let mut look = |path, index, extra: &Extra, known: &[&str], absent: &[(&'static str, bool)]| {
        for key in extra.keys() {
            if key.starts_with(OWN) || known.contains(&key.as_str()) {
                continue;
            }
            let absent = absent.iter().filter(|(_, absent)| *absent).map(|&(name, _)| name);
            let nearly = absent.min_by_key(|name| distance(key, name));
            let nearly = nearly.filter(|name| is_near(key, name));
            found.push(UnknownKey { path, index, key: key.clone(), nearly });
        }
    };
    match record {
        Record::Header(header) => {
            let absent = [
                ("harness_version", header.harness_version.is_none()),
                ("files", header.files.is_empty()),
                ("cache", header.cache == Default::default()),
                ("tokenizer", header.tokenizer.is_none()),
            ];
            look("", None, &header.extra, &[], &absent);
            if let Some(tokenizer) = &header.tokenizer {
                let absent = [
                    ("sha256", tokenizer.sha256.is_none()),
                    ("chat_template_sha256", tokenizer.chat_template_sha256.is_none()),
                    ("vocab_size", tokenizer.vocab_size.is_none()),
                ];
                look("tokenizer", None, &tokenizer.extra, &[], &absent);
            }
        }
        Record::Segment(segment) => {
            look("", None, &segment.extra, &OF_SEGMENT, &absent_of_segment(segment));
        }
        Record::Append(append) => look("", None, &append.extra, &[], &[]),
        Record::Fork(fork) => look("", None, &fork.extra, &[], &[]),
        Record::Replace(replace) => {
            let absent = [("by", replace.by.is_none()), ("evidence", replace.evidence.is_none())];
            look("", None, &replace.extra, &[], &absent);
            if let Some(by) = &replace.by {
                look("by", None, &by.extra, &[], &absent_of_author(by));
            }
        }
        Record::Evict(evict) => {
            let absent = [
                ("replacement", evict.replacement.is_none()),
                ("by", evict.by.is_none()),
                ("trigger", evict.trigger.is_none()),
                ("evidence", evict.evidence.is_none()),
            ];
            look("", None, &evict.extra, &[], &absent);
            for (index, evicted) in evict.evicted.iter().enumerate() {
                let absent = [("tokens", evicted.tokens.is_none())];
                look("evicted", Some(index), &evicted.extra, &[], &absent);
            }
            if let Some(replacement) = &evict.replacement {
                let absent = [
                    ("place", replacement.place == Default::default()),
                    ("latent", replacement.latent.is_none()),
                ];
                look("replacement", None, &replacement.extra, &[], &absent);
            }
            if let Some(by) = &evict.by {
                look("by", None, &by.extra, &[], &absent_of_author(by));
            }
        }
        Record::Generation(generation) => {
            let absent = [
                ("rollout", generation.rollout == "r0"),
                ("thread", generation.thread == "main"),
                ("policy", generation.policy.is_none()),
                ("unrecorded", generation.unrecorded.is_empty()),
                ("prompt_tokens", generation.prompt_tokens.is_none()),
            ];
            look("", None, &generation.extra, &[], &absent);
        }
        Record::Outcome(outcome) => look("", None, &outcome.extra, &OF_OUTCOME, &[]),
        Record::Unknown(_) => {}
    }
    found
}

fn absent_of_segment(segment: &Segment) -> [(&'static str, bool); 9] {
    [
        ("tokens", segment.tokens.is_none()),
        ("text", segment.text.is_none()),
        ("logprobs", segment.logprobs.is_none()),
        ("loss", segment.loss.is_none()),
        ("source", segment.source.is_none()),
        ("part", segment.part.is_none()),
        ("open", !segment.open),
        ("calls", segment.calls.is_empty()),
        ("result_of", segment.result_of.is_none()),
    ]
}

fn absent_of_author(by: &super::By) -> [(&'static str, bool); 2] {
    [("generation", by.generation.is_none()), ("name", by.name.is_none())]
}

/// Edits between two names, case and separators aside.
fn distance(key: &str, known: &str) -> usize {
    let plain = |name: &str| name.to_lowercase().replace(['_', '-', ' '], "");
    osa_distance(&plain(key), &plain(known))
}

/// Whether a key is rather a slip of the pen than a name of its own: one edit, or two in a long
/// name.
fn is_near(key: &str, known: &str) -> bool {
    distance(key, known) <= if known.len() >= 8 { 2 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Vec<(String, Option<&'static str>)> {
        let record: Record = serde_json::from_str(line).unwrap();
        unknown(&record).into_iter().map(|key| (key.location(), key.nearly)).collect()
    }

    #[test]
    fn slips_of_the_pen_are_told_from_names_of_their_own() {
        let evict = r#"{"t":"evict","context":1,"from":0,"evicted":[{"segment":0,"token":[0,1]}],"replacment":{"kind":"none","segments":[]},"note":1}"#;
        assert_eq!(
            found(evict),
            [
                ("replacment".into(), Some("replacement")),
                ("note".into(), None),
                ("evicted[0].token".into(), Some("tokens")),
            ]
        );
        let header = r#"{"t":"header","version":1,"harness":"h","fidelity":"token","tokenizer":{"id":"t","vocabSize":9},"x_mine":1}"#;
        assert_eq!(found(header), [("tokenizer.vocabSize".into(), Some("vocab_size"))]);
    }

    #[test]
    fn a_key_is_no_misspelling_of_one_that_is_there() {
        let segment = r#"{"t":"segment","id":0,"role":"user","origin":"human","text":"a","test":1,"is_error":true}"#;
        assert_eq!(found(segment), [("test".into(), None)]);
        let generation =
            r#"{"t":"generation","id":0,"context":0,"output":[],"tread":"side","thread":"a"}"#;
        assert_eq!(found(generation), [("tread".into(), None)]);
    }

    #[test]
    fn a_record_is_read_again_with_the_right_spelling() {
        let line = r#"{"t":"generation","id":0,"context":0,"output":[],"tread":"side"}"#;
        let record: Record = serde_json::from_str(line).unwrap();
        let respelt = unknown(&record)[0].respelt(&record).unwrap();
        assert!(matches!(&respelt, Record::Generation(generation) if generation.thread == "side"));
        assert_eq!(unknown(&respelt), []);
    }
}

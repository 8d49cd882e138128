//! Segments as the messages that a chat template takes.
use std::collections::BTreeMap;

use minijinja::Value;
use pleach_tree::{BranchTree, GenerationId, Part, Record, Role, Segment, SegmentId};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value as Json;

use super::RenderError;
use super::argument::Argument;
use super::call::Marked;
use super::mark::{self, Marking};

/// What stands between several texts that become one field of a message.
const JOINT: &str = "\n\n";

/// The segments of a tree by number, and the message values made of them.
#[derive(Debug)]
pub(super) struct Messages<'t> {
    tree: &'t BranchTree,
    segments: Vec<&'t Segment>,
    numbers: FxHashMap<SegmentId, u32>,
    inputs: FxHashMap<u32, Call>,
    names: FxHashMap<String, String>,
    /// Definitions of tools, which are no message where the template takes them apart.
    tools: FxHashMap<u32, Value>,
    suspicious: FxHashSet<u32>,
    values: FxHashMap<(Box<[u32]>, Marking), Value>,
}

/// A tool call as its segment's text says it.
#[derive(Debug, serde::Deserialize)]
struct Call {
    #[serde(default)]
    id: String,
    name: String,
    #[serde(default)]
    input: Argument,
}

impl<'t> Messages<'t> {
    /// Numbers the segments of a tree and reads its tool calls.
    ///
    /// With `takes_tools`, definitions of tools are given to the template apart.
    pub(super) fn new(tree: &'t BranchTree, takes_tools: bool) -> Result<Self, RenderError> {
        let segments: Vec<&Segment> = tree
            .records()
            .iter()
            .filter_map(|record| match record {
                Record::Segment(segment) => Some(segment),
                _ => None,
            })
            .collect();
        let numbers =
            segments.iter().zip(0..).map(|(segment, number)| (segment.id, number)).collect();
        let (mut inputs, mut names) = (FxHashMap::default(), FxHashMap::default());
        for (&segment, number) in segments.iter().zip(0..) {
            if segment.text.is_none()
                && segment.tokens.as_ref().is_some_and(|tokens| !tokens.is_empty())
            {
                return Err(RenderError::TokensOnly {
                    place: place(tree, segment.id),
                    segment: segment.id,
                });
            }
            if segment.role == Role::Assistant && segment.part == Some(Part::ToolCall) {
                let call: Call =
                    serde_json::from_str(text(segment)).map_err(|error| RenderError::ToolCall {
                        place: place(tree, segment.id),
                        segment: segment.id,
                        message: error.to_string(),
                    })?;
                names.insert(call.id.clone(), call.name.clone());
                inputs.insert(number, call);
            }
        }
        let defines = |(number, segment): (u32, &&Segment)| {
            let named = segment.extra.get("tools").is_some_and(|value| value == true);
            let list = || serde_json::from_str::<Vec<Json>>(text(segment)).ok();
            let list = (takes_tools && named && segment.role == Role::System).then(list)??;
            Some((number, list.iter().map(super::call::plain).collect()))
        };
        let tools = (0..).zip(&segments).filter_map(defines).collect();
        let (suspicious, values) = (FxHashSet::default(), FxHashMap::default());
        Ok(Self { tree, segments, numbers, inputs, names, tools, suspicious, values })
    }

    /// Names the texts that hold one of `literals`, which [`Marking::Careful`] leaves unmarked.
    pub(super) fn suspect(&mut self, literals: &[String]) {
        let holds = |segment: &Segment| {
            literals.iter().any(|literal| text(segment).contains(literal.as_str()))
        };
        self.suspicious = (0..)
            .zip(&self.segments)
            .filter(|(_, segment)| holds(segment))
            .map(|(number, _)| number)
            .collect();
    }

    /// Number of a segment.
    pub(super) fn number(&self, id: SegmentId) -> Option<u32> {
        self.numbers.get(&id).copied()
    }

    /// A segment by its number.
    pub(super) fn segment(&self, number: u32) -> &'t Segment {
        self.segments[number as usize]
    }

    /// The text that the answer to `members` goes on in: what an assistant left open at the end.
    pub(super) fn open_end(&self, members: &[u32]) -> Option<u32> {
        let last = *members.last()?;
        let segment = self.segment(last);
        (segment.open && segment.role == Role::Assistant && !self.is_call(last)).then_some(last)
    }

    /// The definitions of tools among `members`, of several the last, as the template takes them.
    pub(super) fn tools(&self, members: &[u32]) -> Option<Value> {
        let last = members.iter().rev().find_map(|number| self.tools.get(number))?;
        Some(last.clone())
    }

    /// The call that a segment is output of.
    pub(super) fn sampled_by(&self, number: u32) -> Option<GenerationId> {
        self.tree.owner(self.segment(number).id)
    }

    /// What a tool call says, of a segment that is one: its name and its arguments.
    pub(super) fn call(&self, number: u32) -> Option<(&str, &Argument)> {
        self.inputs.get(&number).map(|call| (call.name.as_str(), &call.input))
    }

    /// Whether a segment is a tool call, whose text reaches a rendering in pieces.
    pub(super) fn is_call(&self, number: u32) -> bool {
        self.inputs.contains_key(&number)
    }

    /// The text of a segment, empty where it has none.
    pub(super) fn text(&self, number: u32) -> &'t str {
        text(self.segment(number))
    }

    /// Forgets message values, which are made again where they are asked for.
    pub(super) fn forget(&mut self) {
        self.values.clear();
    }

    /// Message values of the segments `members`, in order.
    pub(super) fn values(&mut self, members: &[u32], marking: Marking) -> Vec<Value> {
        let mut values = Vec::new();
        let mut rest = members;
        while !rest.is_empty() {
            if self.tools.contains_key(&rest[0]) {
                rest = &rest[1..];
                continue;
            }
            let (message, later) = rest.split_at(self.message_len(rest));
            let key = (Box::from(message), marking);
            let value = match self.values.get(&key) {
                Some(value) => value.clone(),
                None => {
                    let value = self.value(message, marking);
                    self.values.insert(key, value.clone());
                    value
                }
            };
            values.push(value);
            rest = later;
        }
        values
    }

    /// Where messages begin in `members`, behind those that `starts` knows of its beginning; the last
    /// message that it knows may go on.
    pub(super) fn starts(&self, members: &[u32], starts: &mut Vec<usize>) {
        let mut at = starts.pop().unwrap_or(0);
        while at < members.len() {
            starts.push(at);
            at += match self.tools.contains_key(&members[at]) {
                true => 1,
                false => self.message_len(&members[at..]),
            };
        }
    }

    /// How many of `members` the first message is made of: what one call of the policy, or one
    /// record of the harness, said, with what others wrote inside of it.
    fn message_len(&self, members: &[u32]) -> usize {
        let first = self.segment(members[0]);
        let joined = |pair: &[u32]| {
            if self.tools.contains_key(&pair[1]) {
                return false;
            }
            let (one, next) = (self.segment(pair[0]), self.segment(pair[1]));
            let takes = first.role == Role::Assistant || next.part != Some(Part::ToolCall);
            // What a call said runs on into the rest of what it said, which need not be here.
            let runs_on =
                one.open && one.result_of == next.result_of && self.tree.owner(one.id).is_none();
            takes && (runs_on || self.is_one_record(first, next) || self.is_one_record(one, next))
        };
        1 + members.windows(2).take_while(|pair| joined(pair)).count()
    }

    /// Whether two segments are parts of what one call or one record said; results are messages of
    /// their own.
    fn is_one_record(&self, one: &Segment, other: &Segment) -> bool {
        let owner = |segment: &Segment| self.tree.owner(segment.id);
        let same_source = || match (&one.source, &other.source) {
            (Some(one), Some(other)) => one.file == other.file && one.key == other.key,
            _ => false,
        };
        let same_owner = || owner(one).is_some() && owner(one) == owner(other);
        one.role == other.role && one.role != Role::Tool && (same_source() || same_owner())
    }

    /// The texts of the segments `numbers` as one: pieces of one text with nothing between, texts
    /// apart from each other.
    fn join(&self, numbers: impl Iterator<Item = u32>, marking: Marking) -> String {
        let mut joined = String::new();
        let mut before: Option<&Segment> = None;
        for number in numbers.filter(|&number| !self.text(number).is_empty()) {
            let segment = self.segment(number);
            if before.is_some_and(|before| !before.open && self.is_one_record(before, segment)) {
                joined.push_str(JOINT);
            }
            let plain = marking == Marking::Careful && self.suspicious.contains(&number);
            joined.push_str(&mark::wrap(
                self.text(number),
                number,
                if plain { Marking::Plain } else { marking },
            ));
            before = Some(segment);
        }
        joined
    }

    fn value(&self, message: &[u32], marking: Marking) -> Value {
        let first = self.segment(message[0]);
        let join = |part: Part| {
            let of = |number: &u32| self.segment(*number).part.unwrap_or(Part::Content) == part;
            self.join(message.iter().copied().filter(of), marking)
        };
        let mut fields: BTreeMap<&str, Value> = BTreeMap::new();
        let role = match first.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        };
        fields.insert("role", Value::from(role));
        if first.role != Role::Assistant {
            fields.insert("content", Value::from(self.join(message.iter().copied(), marking)));
            if let Some(call) = &first.result_of {
                fields.insert("tool_call_id", Value::from(call.as_str()));
                fields
                    .extend(self.names.get(call).map(|name| ("name", Value::from(name.as_str()))));
            }
            return Value::from_pairs(fields);
        }
        fields.insert("content", Value::from(join(Part::Content)));
        let reasoning = join(Part::Reasoning);
        if !reasoning.is_empty() {
            fields.insert("reasoning_content", Value::from(reasoning));
        }
        let calls = message.iter().filter_map(|number| Some((*number, self.inputs.get(number)?)));
        let calls: Vec<Value> = calls
            .map(|(number, call)| Marked::call(&call.id, &call.name, &call.input, number, marking))
            .collect();
        if !calls.is_empty() {
            fields.insert("tool_calls", Value::from(calls));
        }
        Value::from_pairs(fields)
    }
}

fn text(segment: &Segment) -> &str {
    segment.text.as_deref().unwrap_or_default()
}

/// File and line of a segment.
pub(super) fn place(tree: &BranchTree, segment: SegmentId) -> String {
    tree.segment_location(segment).map(ToString::to_string).unwrap_or_default()
}

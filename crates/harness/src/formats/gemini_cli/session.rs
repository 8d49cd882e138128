//! From the lines of a session to its script.
use std::sync::Arc;

use pleach_tree::{Origin, ReadOptions, ReplacementKind, Segment};
use rustc_hash::{FxHashMap, FxHashSet};

use super::line::{Line, Message, Spoken};
use crate::core::format::Format;
use crate::core::input::{Member, Relation};
use crate::core::script::{Back, Call, Change, Cursor, Item, List, Script, Spot, Step};
use crate::core::shape::{Kind, Shape};
use crate::{Conversion, HarnessError, Input};

/// How a session of Gemini CLI is told from other files.
pub(crate) const FORMAT: Format =
    Format::new("gemini-cli", "a Gemini CLI session", is_line, convert);

fn is_line(shape: &Shape) -> bool {
    let start = shape.has_all(&["sessionId", "projectHash"]);
    let message = shape.is("type", &["user", "gemini"])
        && shape.has_all(&["id", "timestamp"])
        && shape.kind("content").is_some();
    let message = message
        && !shape.has("uuid")
        && !shape.has("sessionId")
        && shape.kind("parentId").is_none();
    start
        || message
        || shape.kind("$set") == Some(Kind::Object)
        || shape.kind("$rewindTo") == Some(Kind::Text)
}

fn convert(input: &Input, options: ReadOptions) -> Result<Conversion, HarnessError> {
    let mut script = Script::new("gemini-cli", options);
    let main = input.main();
    let mut session = GeminiSession::default();
    session.read(&mut script, &main)?;
    let id = session.id.clone();
    session.write(&mut script, 0);
    // It names a folder, so one that would lead elsewhere names none.
    let is_name = |id: &String| {
        !id.is_empty()
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let agents = id.filter(is_name).map_or_else(|| Ok(Vec::new()), |id| input.beside(&id));
    let agents = agents.unwrap_or_else(|error| {
        script.draft.unread(&main, Relation::Part, &error);
        Vec::new()
    });
    for member in agents.iter().filter(|member| member.file_name().contains(".jsonl")) {
        let mut agent = GeminiSession::default();
        if let Err(error) = agent.read(&mut script, member) {
            script.draft.unread(member, Relation::Part, &error);
        }
        let conversation = script.conversation(member.stem());
        agent.write(&mut script, conversation);
    }
    script.play()
}

/// The session as far as it is read.
#[derive(Default)]
struct GeminiSession {
    id: Option<String>,
    steps: Vec<(Did, Spot)>,
    /// The step that holds a message now, by its id.
    places: FxHashMap<String, usize>,
}

/// What a line did.
enum Did {
    Say(Box<Message>),
    Rewind(String),
    Set(Vec<Message>),
}

impl GeminiSession {
    /// Reads a file; what is read of one that breaks off is kept.
    fn read(&mut self, script: &mut Script, member: &Member) -> Result<(), HarnessError> {
        // One that breaks off in its start is read line by line, up to there.
        let start = member.start(1 << 16).unwrap_or_default();
        let first = start
            .split(|&byte| byte == b'\n')
            .find(|line| !line.trim_ascii().is_empty())
            .unwrap_or_default();
        let begun = serde_json::from_slice::<serde::de::IgnoredAny>(first);
        if start.len() == first.len() || !begun.is_err_and(|error| error.is_eof()) {
            return script.lines(member, |script, line: Line, spot| self.take(script, line, spot));
        }
        let file = script.draft.file(member);
        let options = script.draft.options;
        let (documents, at) = member.document::<Line>(options, &mut script.draft.report)?;
        let spot = Spot { file, at };
        for document in documents {
            self.take(script, document, &spot);
        }
        Ok(())
    }

    fn take(&mut self, script: &mut Script, mut line: Line, spot: &Spot) {
        if let Some(id) = line.rewind_to.take() {
            // What is taken back is not there to be written again; a rewind to nowhere takes back
            // all.
            let from = self.places.get(&id).copied().unwrap_or(0);
            self.places.retain(|_, place| *place < from);
            self.steps.push((Did::Rewind(id), spot.clone()));
        } else if let Some(set) = line.set.take() {
            if let Some(messages) = set.messages {
                self.places.clear();
                self.steps.push((Did::Set(messages), spot.clone()));
            }
        } else if let Some(messages) = line.messages.take() {
            self.id = line.session_id.or(self.id.take());
            let message = "the document holds the messages as they were in the end; what a compression took out is not recorded";
            script.draft.warn(&spot.at, "messages", "compactions-not-recorded", message);
            for message in messages {
                self.say(script, message, spot);
            }
        } else {
            self.id = line.session_id.clone().or(self.id.take());
            if let Some(message) = line.message() {
                self.say(script, message, spot);
            }
        }
    }

    fn say(&mut self, script: &mut Script, message: Message, spot: &Spot) {
        match message.kind.as_deref() {
            Some("user" | "gemini") => {}
            Some("info" | "error" | "warning") => return,
            kind => {
                script.unknown(kind.unwrap_or_default(), &spot.at);
                return;
            }
        }
        let Some(id) = message.id.clone() else {
            script.draft.fault(
                &spot.at,
                "id",
                "no-id",
                "the message has no id; the number of the line stands for it",
            );
            self.steps.push((Did::Say(Box::new(message)), spot.clone()));
            return;
        };
        match self.places.get(&id) {
            Some(&place) => self.steps[place].0 = Did::Say(Box::new(message)),
            None => {
                self.places.insert(id, self.steps.len());
                self.steps.push((Did::Say(Box::new(message)), spot.clone()));
            }
        }
    }

    fn write(self, script: &mut Script, conversation: usize) {
        let mut at = Back::To(None);
        // Where the list ended before each message that is in it.
        let mut before: Vec<(String, Back)> = Vec::new();
        let mut answered = FxHashSet::default();
        for (did, spot) in self.steps {
            match did {
                Did::Say(message) => {
                    before.push((message.id.clone().unwrap_or_default(), at));
                    let from = at.node(script, conversation, &spot);
                    at = Back::To(say(script, conversation, from, *message, &mut answered, &spot));
                }
                Did::Rewind(id) => match before.iter().position(|(other, _)| *other == id) {
                    Some(place) => {
                        at = before[place].1;
                        before.truncate(place);
                    }
                    None => {
                        let message = format!(
                            "the message {id} is not in the list; the harness takes back all of it"
                        );
                        script.draft.fault(&spot.at, "$rewindTo", "rewind-missing", message);
                        (at, before) = (Back::To(None), Vec::new());
                    }
                },
                Did::Set(messages) => {
                    let from = at.node(script, conversation, &spot);
                    (at, before) = set(script, conversation, from, messages, &spot);
                }
            }
        }
    }
}

/// Takes calls that are made for calls without a result: an id, or the name that stands for one, may
/// be that of an earlier call too.
fn opened(said: &[Segment], answered: &mut FxHashSet<String>) {
    for call in said.iter().flat_map(|segment| &segment.calls) {
        answered.remove(call);
    }
}

/// Adds a message; the node behind it.
fn say(
    script: &mut Script,
    conversation: usize,
    from: Option<usize>,
    message: Message,
    answered: &mut FxHashSet<String>,
    spot: &Spot,
) -> Option<usize> {
    let (is_model, model) =
        (message.kind.as_deref() == Some("gemini"), message.model.clone().map(Arc::from));
    let Spoken { mut said, results } = message.spoken(Origin::Human, spot);
    opened(&said, answered);
    answered.extend(results.iter().filter_map(|result| result.result_of.clone()));
    // Results that stand with the message that called are not told again by a message of their own.
    said.retain(|segment| {
        is_model || segment.result_of.as_ref().is_none_or(|call| !answered.contains(call))
    });
    let mut cursor = Cursor { conversation, at: from };
    if is_model {
        let call = Call { output: said, model, ..Call::default() };
        cursor.push(script, spot, Step::Call(call));
    } else if !said.is_empty() {
        cursor.push(script, spot, Step::Put(said));
    }
    if !results.is_empty() {
        cursor.push(script, spot, Step::Put(results));
    }
    cursor.at
}

/// Adds a whole list; where it ends, and where it ended before each of its messages.
fn set(
    script: &mut Script,
    conversation: usize,
    from: Option<usize>,
    messages: Vec<Message>,
    spot: &Spot,
) -> (Back, Vec<(String, Back)>) {
    let node = script.nodes.len();
    if from.is_none() {
        let message = "nothing stands before the list in the file; it is all that is known";
        script.draft.warn(&spot.at, "$set.messages", "no-predecessor", message);
    }
    let (mut items, mut before, mut count) = (Vec::new(), Vec::new(), 0);
    let mut answered = FxHashSet::default();
    for message in messages {
        if matches!(message.kind.as_deref(), Some("info" | "error" | "warning")) {
            continue;
        }
        before.push((message.id.clone().unwrap_or_default(), Back::Into(node, count)));
        let Spoken { mut said, results } = message.spoken(Origin::ExternalModel, spot);
        opened(&said, &mut answered);
        said.retain(|segment| {
            segment.result_of.as_ref().is_none_or(|call| !answered.contains(call))
        });
        answered.extend(results.iter().chain(&said).filter_map(|result| result.result_of.clone()));
        count += said.len() + results.len();
        items.extend(
            [said, results].into_iter().filter(|segments| !segments.is_empty()).map(Item::Told),
        );
    }
    let change = Change::new(ReplacementKind::Summary).quiet();
    script.push(from, conversation, spot, Step::List(Box::new(List { items, change })));
    (Back::To(Some(node)), before)
}
